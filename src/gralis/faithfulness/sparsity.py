"""How few features carry an attribution, and how close together they lie; the model is not called."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from gralis.api.signature import keywords_of
from gralis.arrays import Array
from gralis.faithfulness.score import Score
from gralis.faithfulness.scored_input import ScoredInput
from gralis.methods.settings import SharedKeywords, SharedSettings

__all__ = ["entropy", "gini", "locality"]


@keywords_of(SharedSettings)
def gini(model: object, x: object, attribution: object, **keywords: Unpack[SharedKeywords]) -> Score:
    """The Gini index of |phi|: 0 if all features have the same value, 1 - 1/n if one has all; higher is sparser.

    Parameters
    ----------
    model : object
        The model F. It is not called.
    x : object
        One input, without a batch axis.
    attribution : Attribution, Explanation or array
        What is scored: a result with `.values`, or an array with one number per feature or shaped like x.

    Returns
    -------
    Score

    Examples
    --------
    >>> gini(lambda z: z.sum(1), np.ones(4), np.array([0.0, -3.0, 0.0, 0.0])).value
    0.75
    """
    with ScoredInput.open(gini, model, x, attribution, keywords) as scored:
        sizes = np.sort(np.abs(scored.values))
        n, total = len(sizes), sizes.sum()
        value = float((2 * np.arange(1, n + 1) - n - 1) @ sizes / (n * total)) if total > 0 else 0.0
        return Score("gini", value, "higher")


@keywords_of(SharedSettings)
def entropy(model: object, x: object, attribution: object, **keywords: Unpack[SharedKeywords]) -> Score:
    """- sum of p_i log p_i / log n, p = |phi| / sum |phi|: 0 if one feature has all, 1 if all have the same.

    Lower is sparser.

    Parameters
    ----------
    model : object
        The model F. It is not called.
    x : object
        One input, without a batch axis.
    attribution : Attribution, Explanation or array
        What is scored: a result with `.values`, or an array with one number per feature or shaped like x.

    Returns
    -------
    Score

    Examples
    --------
    >>> round(entropy(lambda z: z.sum(1), np.ones(4), np.array([1.0, -1.0, 0.0, 0.0])).value, 12)
    0.5
    """
    with ScoredInput.open(entropy, model, x, attribution, keywords) as scored:
        share = _shares(scored.values)
        value = float(-(share * np.log(share)).sum() / np.log(len(scored.values))) if len(scored.values) > 1 else 0.0
        return Score("entropy", value, "lower")


@keywords_of(SharedSettings)
def locality(model: object, x: object, attribution: object, **keywords: Unpack[SharedKeywords]) -> Score:
    """1 - spread / spread of a flat map: 1 if |phi| sits on one pixel, 0 if it is spread evenly.

    Higher is more local. The spread is the root mean squared distance of the pixels from their centre, both weighted
    by |phi|. The channels of a pixel are summed with their signs before the magnitude is taken. The value of a region
    is divided equally among its pixels.

    Parameters
    ----------
    model : object
        The model F. It is not called.
    x : object
        One input, without a batch axis. Its last two axes are rows and columns.
    attribution : Attribution, Explanation or array
        What is scored: a result with `.values`, or an array with one number per feature or shaped like x.

    Returns
    -------
    Score
    """
    with ScoredInput.open(locality, model, x, attribution, keywords) as scored:
        weights = np.abs(scored.picture())
        flat = _spread(np.ones_like(weights))
        value = 0.0 if not weights.any() or flat == 0 else 1 - _spread(weights) / flat
        return Score("locality", value, "higher")


def _spread(weights: Array) -> float:
    """The root mean squared distance of the pixels from their centre, both weighted."""
    share = weights / weights.sum()
    total = 0.0
    for axis in (0, 1):
        along, places = share.sum(1 - axis), np.arange(share.shape[axis])
        total += float(along @ (places - along @ places) ** 2)
    return float(np.sqrt(total))


def _shares(values: Array) -> Array:
    """|phi| as probabilities, without zeros; equal probabilities if all values are zero."""
    sizes = np.abs(values)
    if not sizes.any():
        sizes = np.ones_like(sizes)
    return np.asarray(sizes[sizes > 0] / sizes.sum())
