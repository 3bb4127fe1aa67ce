"""Infidelity and completeness: do the values of features add up to what F loses without them?"""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gralis.api.signature import keywords_of
from gralis.arrays import Array, real_numbers
from gralis.checks import flag, whole
from gralis.errors import GralisError, bad
from gralis.faithfulness.score import Score
from gralis.faithfulness.scored_input import ScoredInput
from gralis.methods.settings import SharedKeywords, SharedSettings

__all__ = ["completeness", "infidelity", "losses", "misfit"]


@keywords_of(SharedSettings)
def infidelity(
    model: object,
    x: object,
    attribution: object,
    *,
    n_perturbations: int = 200,
    removed: ArrayLike | None = None,
    normalise: bool = False,
    **keywords: Unpack[SharedKeywords],
) -> Score:
    """E_S[(sum over S of phi_i - (F(x) - F(x without S)))^2] over random sets S of features; lower is better.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis.
    attribution : Attribution, Explanation or array
        What is scored: a result with `.values`, or an array with one number per feature or shaped like x.
    n_perturbations : int, default=200
        The number of random sets. A set holds each feature with probability 1/2.
    removed : array of shape (n_sets, n_features) or None, default=None
        The sets themselves as 0/1 rows, in place of random ones.
    normalise : bool, default=False
        Whether phi is first scaled by the factor that fits best. Use it for methods whose values do not have the unit
        of F, such as GradCAM.

    Returns
    -------
    Score

    Examples
    --------
    >>> import torch
    >>> infidelity(lambda z: z[:, 0] - 2 * z[:, 1], np.ones(2), np.array([1.0, -2.0])).value
    0.0
    """
    with ScoredInput.open(infidelity, model, x, attribution, keywords) as scored:
        value = misfit(*losses(scored, n_perturbations, removed), scored.values, normalise)
        return Score("infidelity", value, "lower", n_forwards=scored.n_forwards)


def losses(
    scored: ScoredInput, n_perturbations: int = 200, removed: ArrayLike | None = None
) -> tuple[NDArray[np.bool_], Array]:
    """Sets of features, and what F loses without each of them: the same for every attribution of one input."""
    sets = _sets(removed, n_perturbations, scored.features.n_features, scored.seed)
    return sets, scored.endpoints()[0] - scored.outputs(~sets)


def misfit(sets: NDArray[np.bool_], lost: Array, values: Array, normalise: bool = False) -> float:
    """The mean squared difference between the values of the sets and what F lost."""
    claimed = sets @ values
    if flag(normalise, "normalise", "infidelity"):
        squares = claimed @ claimed
        claimed = claimed * (claimed @ lost / squares) if squares > 0 else claimed
    return float(np.mean((claimed - lost) ** 2))


@keywords_of(SharedSettings)
def completeness(model: object, x: object, attribution: object, **keywords: Unpack[SharedKeywords]) -> Score:
    """|sum of phi - (F(x) - F(x'))| / |F(x) - F(x')|: the completeness residual; lower is better.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis.
    attribution : Attribution, Explanation or array
        What is scored: a result with `.values`, or an array with one number per feature or shaped like x.

    Returns
    -------
    Score

    Examples
    --------
    >>> completeness(lambda z: z.sum(1), np.ones(4), np.array([1.0, 1.0, 1.0, 0.0])).value
    0.25
    """
    with ScoredInput.open(completeness, model, x, attribution, keywords) as scored:
        f_x, f_baseline = scored.endpoints()
        if f_x == f_baseline:
            raise GralisError("F(x) = F(x'), so a residual has no scale; choose another baseline.")
        value = abs(float(scored.values.sum()) - (f_x - f_baseline)) / abs(f_x - f_baseline)
        return Score("completeness", value, "lower", n_forwards=scored.n_forwards)


def _sets(removed: ArrayLike | None, n_perturbations: int, n_features: int, seed: int) -> NDArray[np.bool_]:
    """The sets that the user gave, checked, or random ones."""
    if removed is None:
        shape = (whole(n_perturbations, "n_perturbations", 1, "infidelity", most=10**6), n_features)
        return np.random.default_rng(seed).random(shape) < 0.5
    sets = real_numbers(removed, "removed", "infidelity", "rows of 0 and 1")
    if sets.ndim != 2 or sets.shape[1] != n_features or not len(sets) or not np.isin(sets, (0, 1)).all():
        allowed = f"0/1 rows, one column for each of {n_features} features"
        raise bad("removed", "infidelity", allowed, f"shape {sets.shape} and dtype {sets.dtype}")
    return sets.astype(bool)
