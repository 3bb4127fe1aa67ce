"""Infidelity and completeness: do the values of features add up to what F loses without them?"""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gralis.arrays import Array
from gralis.checks import whole
from gralis.errors import GralisError, bad
from gralis.faithfulness.score import Score
from gralis.faithfulness.scored_input import Case, case
from gralis.methods.method import Words


def infidelity(
    model: object,
    x: object,
    attribution: object,
    *,
    n_perturbations: int = 200,
    removed: ArrayLike | None = None,
    normalise: bool = False,
    **asked: Unpack[Words],
) -> Score:
    """E_S[(sum over S of phi_i - (F(x) - F(x without S)))^2] over random sets S of features; lower is better.

    A set holds each feature with probability 1/2, or is a row of `removed` (n_perturbations, n_features). `normalise`
    first scales phi by the one factor that fits best, for methods whose unit is not that of F (GradCAM, random).

    >>> import torch
    >>> infidelity(lambda z: z[:, 0] - 2 * z[:, 1], np.ones(2), np.array([1.0, -2.0])).value
    0.0
    """
    with case(infidelity, model, x, attribution, asked) as found:
        sets, lost = losses(found, n_perturbations, removed)
        return Score("infidelity", misfit(sets, lost, found.values, normalise), "lower", n_forwards=found.n_forwards)


def losses(
    found: Case, n_perturbations: int = 200, removed: ArrayLike | None = None
) -> tuple[NDArray[np.bool_], Array]:
    """Sets of features, and what F loses without each of them: the same for every attribution of one input."""
    sets = _sets(removed, n_perturbations, found.features.n_features, found.seed)
    return sets, found.endpoints()[0] - found.outputs(~sets)


def misfit(sets: NDArray[np.bool_], lost: Array, values: Array, normalise: bool = False) -> float:
    """The mean squared difference between the values of the sets and what F lost."""
    said = sets @ values
    if normalise:
        squares = said @ said
        said = said * (said @ lost / squares) if squares > 0 else said
    return float(np.mean((said - lost) ** 2))


def completeness(
    model: object,
    x: object,
    attribution: object,
    **asked: Unpack[Words],
) -> Score:
    """|sum of phi - (F(x) - F(x'))| / |F(x) - F(x')|: the completeness residual; lower is better.

    >>> completeness(lambda z: z.sum(1), np.ones(4), np.array([1.0, 1.0, 1.0, 0.0])).value
    0.25
    """
    with case(completeness, model, x, attribution, asked) as found:
        f_x, f_baseline = found.endpoints()
        if f_x == f_baseline:
            raise GralisError("F(x) = F(x'), so a residual has no scale; choose another baseline.")
        value = abs(float(found.values.sum()) - (f_x - f_baseline)) / abs(f_x - f_baseline)
        return Score("completeness", value, "lower", n_forwards=found.n_forwards)


def _sets(removed: ArrayLike | None, n_perturbations: int, n_features: int, seed: int) -> NDArray[np.bool_]:
    if removed is None:
        shape = (whole(n_perturbations, "n_perturbations", 1, "infidelity"), n_features)
        return np.random.default_rng(seed).random(shape) < 0.5
    sets = np.asarray(removed)
    if sets.ndim != 2 or sets.shape[1] != n_features or not len(sets) or not np.isin(sets, (0, 1)).all():
        allowed = f"0/1 rows, one column for each of {n_features} features"
        raise bad("removed", "infidelity", allowed, f"shape {sets.shape} and dtype {sets.dtype}")
    return sets.astype(bool)
