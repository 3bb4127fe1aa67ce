"""LIME as a triple: a weighted ridge fit on a design that does not look at F is a fixed linear map of F."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from gralis.arrays import Array, Masks, real_numbers
from gralis.canonical.coalitions import problem_of
from gralis.canonical.triple import Triple
from gralis.checks import non_negative, one_of, positive
from gralis.errors import bad
from gralis.laws import all_masks
from gralis.targets import Target

__all__ = ["lime"]


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

    X is the design and W = exp(-D^2 / 2 sigma^2), with the cosine distance D = 1 - sqrt(|z| / n) of z from all ones.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis.
    baseline : object, default=0.0
        The baseline x', in any form that `gralis.explain` takes, but a single one.
    target : int, tuple of int, callable or None, default=None
        Which number of the model's output is F.
    features : Features, array of int or None, default=None
        The features, at most 12 of them unless `masks` is given.
    masks : array of shape (n_perturbations, n_features) or None, default=None
        The design X as 0/1 rows. None means every coalition.
    ridge : float, default=1.0
        The penalty on the squared coefficients. The intercept is not penalised.
    sigma : float, default=0.25
        The width of the weights W.
    intercept : bool, default=True
        Whether the fit has an intercept.
    support : iterable of int or None, default=None
        The features that take part in the fit. LIME with K features is one triple for every support that its
        selection may choose.

    Returns
    -------
    Triple

    Examples
    --------
    >>> lime(lambda z: 2 * z[:, 0] - z[:, 1], np.array([1.0, 3.0]), ridge=0.0).attribution().round(12).tolist()
    [2.0, -3.0]
    """
    ridge, sigma = non_negative(ridge, "ridge", "canonical.lime"), positive(sigma, "sigma", "canonical.lime")
    one_of(intercept, (True, False), "intercept", "canonical.lime")
    limit = {} if masks is None else {"most": np.inf}  # a design of the user may have any number of features
    with problem_of(model, x, baseline, target, features, **limit) as (problem, evaluator):
        n = problem.n_features
        design = _design(masks, n)
        kept = _support(support, n)
        f_baseline = evaluator.endpoints()[1][0, 0]
        values = evaluator.values(design, np.zeros(len(design), dtype=np.int64))[0] + f_baseline
    weights = np.zeros((n, len(design)))
    weights[kept] = _fit(design[:, kept], _closeness(design, sigma), ridge, intercept)
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
    # Least squares, because a small design without a penalty may leave a direction undetermined.
    rows = np.linalg.lstsq(weighted @ design + np.diag(penalty), weighted, rcond=None)[0]
    return np.asarray(rows[int(intercept) :])


def _closeness(design: Masks, sigma: float) -> Array:
    """exp(-D^2 / 2 sigma^2), D = 1 - sqrt(|z| / n)."""
    distance = 1 - np.sqrt(design.sum(1) / design.shape[1])
    return np.asarray(np.exp(-((distance / sigma) ** 2) / 2))


def _design(masks: ArrayLike | None, n: int) -> Masks:
    """The design of the user, checked, or all coalitions."""
    if masks is None:
        return np.concatenate([all_masks(n), np.zeros((1, n), dtype=bool)])
    rows = real_numbers(masks, "masks", "canonical.lime", "rows of 0 and 1")
    if rows.ndim != 2 or rows.shape[1] != n or len(rows) == 0 or not np.isin(rows, (0, 1)).all():
        raise bad("masks", "canonical.lime", f"0/1 rows of shape (n_perturbations, {n})", f"shape {rows.shape}")
    return rows.astype(bool)


def _support(support: Iterable[int] | None, n: int) -> list[int]:
    """The features that take part, sorted."""
    if support is None:
        return list(range(n))
    try:
        kept = sorted({int(i) for i in support})
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise bad("support", "canonical.lime", f"features out of 0 .. {n - 1}", repr(support)) from None
    if not kept or kept[0] < 0 or kept[-1] >= n:
        raise bad("support", "canonical.lime", f"at least one feature out of 0 .. {n - 1}", repr(kept))
    return kept
