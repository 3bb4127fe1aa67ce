"""How few features carry an attribution, and how close together they lie; the model is not called."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from gralis.arrays import Array
from gralis.faithfulness.score import Score
from gralis.faithfulness.scored_input import case
from gralis.methods.method import Words


def gini(
    model: object,
    x: object,
    attribution: object,
    **asked: Unpack[Words],
) -> Score:
    """The Gini index of |phi|: 0 if all features have the same, 1 - 1/n if one has all; higher is sparser.

    >>> gini(lambda z: z.sum(1), np.ones(4), np.array([0.0, -3.0, 0.0, 0.0])).value
    0.75
    """
    with case(gini, model, x, attribution, asked) as found:
        sizes = np.sort(np.abs(found.values))
        n, total = len(sizes), sizes.sum()
        value = float((2 * np.arange(1, n + 1) - n - 1) @ sizes / (n * total)) if total > 0 else 0.0
        return Score("gini", value, "higher")


def entropy(
    model: object,
    x: object,
    attribution: object,
    **asked: Unpack[Words],
) -> Score:
    """- sum of p_i log p_i / log n, p = |phi| / sum |phi|: 0 if one feature has all, 1 if all alike; lower is sparser.

    >>> round(entropy(lambda z: z.sum(1), np.ones(4), np.array([1.0, -1.0, 0.0, 0.0])).value, 12)
    0.5
    """
    with case(entropy, model, x, attribution, asked) as found:
        share = _shares(found.values)
        value = float(-(share * np.log(share)).sum() / np.log(len(found.values))) if len(found.values) > 1 else 0.0
        return Score("entropy", value, "lower")


def locality(
    model: object,
    x: object,
    attribution: object,
    **asked: Unpack[Words],
) -> Score:
    """1 - spread / spread of a flat map: 1 if |phi| sits on one pixel, 0 if it is spread evenly; higher is more local.

    The spread is the root mean squared distance of the pixels, weighted by |phi|, from their weighted centre. A pixel
    sums its channels with their signs before the magnitude is taken; a region's value is shared by its pixels.
    """
    with case(locality, model, x, attribution, asked) as found:
        weights = np.abs(found.picture())
        flat = _spread(np.ones_like(weights))
        value = 0.0 if not weights.any() or flat == 0 else 1 - _spread(weights) / flat
        return Score("locality", value, "higher")


def _spread(weights: Array) -> float:
    share = weights / weights.sum()
    total = 0.0
    for axis in (0, 1):
        along, places = share.sum(1 - axis), np.arange(share.shape[axis])
        total += float(along @ (places - along @ places) ** 2)
    return float(np.sqrt(total))


def _shares(values: Array) -> Array:
    """|phi| as probabilities, without zeros; of nothing at all, even ones."""
    sizes = np.abs(values)
    if not sizes.any():
        sizes = np.ones_like(sizes)
    return np.asarray(sizes[sizes > 0] / sizes.sum())
