"""LIME as a triple: a weighted ridge fit on a design that does not look at F is a fixed linear map of F."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from gralis.arrays import Array, Masks
from gralis.canonical.coalitions import problem_of
from gralis.canonical.triple import Triple
from gralis.errors import bad
from gralis.laws import all_masks
from gralis.targets import Target


def lime(
    model: object,
    x: object,
    *,
    baseline: object = 0.0,
    target: Target = None,
    features: object = None,
    masks: ArrayLike | None = None,
    ridge: float = 1.0,
    sigma: float = 0.25,
    intercept: bool = True,
    support: Iterable[int] | None = None,
) -> Triple:
    """phi_i = sum over the perturbations z of [(X'WX + ridge I)^-1 X'W]_{i,z} F(x_z).

    `masks` is the design X, by default every coalition; W = exp(-D^2 / 2 sigma^2) with D = 1 - sqrt(|z| / n), the
    cosine distance of z from all ones; the intercept is not penalised.
    `support` fits these features only: K-feature LIME, one triple for every support that the selection may find.

    >>> lime(lambda z: 2 * z[:, 0] - z[:, 1], np.array([1.0, 3.0]), ridge=0.0).attribution().round(12).tolist()
    [2.0, -3.0]
    """
    for value, name, least in ((ridge, "ridge", 0.0), (sigma, "sigma", 1e-12)):
        if isinstance(value, bool) or not isinstance(value, int | float | np.floating) or not least <= value < np.inf:
            raise bad(name, "canonical.lime", "a number >= 0" if name == "ridge" else "a number > 0", repr(value))
    limit = {} if masks is None else {"most": np.inf}  # a given design may have any number of features
    with problem_of(model, x, baseline, target, features, **limit) as (problem, evaluator):
        n = problem.n_features
        design = _design(masks, n)
        kept = _support(support, n)
        f_baseline = evaluator.endpoints()[1][0, 0]
        values = evaluator.values(design, np.zeros(len(design), dtype=np.int64))[0] + f_baseline
    weights = np.zeros((n, len(design)))
    weights[kept] = _fit(design[:, kept], _closeness(design, sigma), float(ridge), intercept)
    index = tuple(tuple(map(int, np.flatnonzero(row))) for row in design)
    method = "LIME" if support is None else f"LIME on {len(kept)} features"
    return Triple((index,) * n, weights, np.broadcast_to(values, weights.shape), method)


def _fit(columns: Masks, closeness: Array, ridge: float, intercept: bool) -> Array:
    """The rows of (X'WX + ridge I)^-1 X'W that belong to features, (n_kept, n_perturbations)."""
    design = columns.astype(np.float64)
    penalty = np.full(design.shape[1], ridge)
    if intercept:
        design = np.concatenate([np.ones((len(design), 1)), design], axis=1)
        penalty = np.append(0.0, penalty)
    weighted = design.T * closeness
    # Least squares, because without a penalty a small design may leave a direction undetermined.
    rows = np.linalg.lstsq(weighted @ design + np.diag(penalty), weighted, rcond=None)[0]
    return np.asarray(rows[int(intercept) :])


def _closeness(design: Masks, sigma: float) -> Array:
    """exp(-D^2 / 2 sigma^2), D = 1 - sqrt(|z| / n)."""
    distance = 1 - np.sqrt(design.sum(1) / design.shape[1])
    return np.asarray(np.exp(-((distance / sigma) ** 2) / 2))


def _design(masks: ArrayLike | None, n: int) -> Masks:
    if masks is None:
        return np.concatenate([all_masks(n), np.zeros((1, n), dtype=bool)])
    given = np.asarray(masks)
    if given.ndim != 2 or given.shape[1] != n or len(given) == 0 or not np.isin(given, (0, 1)).all():
        raise bad("masks", "canonical.lime", f"0/1 rows of shape (n_perturbations, {n})", f"shape {given.shape}")
    return np.asarray(given, dtype=bool)


def _support(support: Iterable[int] | None, n: int) -> list[int]:
    if support is None:
        return list(range(n))
    kept = sorted({int(i) for i in support})
    if not kept or kept[0] < 0 or kept[-1] >= n:
        raise bad("support", "canonical.lime", f"at least one feature out of 0 .. {n - 1}", repr(kept))
    return kept
