"""Curves of F as features are removed or added in the order of an attribution: deletion, insertion, ROAD."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.checks import whole
from gralis.errors import GralisError, bad
from gralis.faithfulness.impute import NoisyLinear
from gralis.faithfulness.score import Better, Curve, Score
from gralis.faithfulness.scored_input import Case, Level, case
from gralis.methods.method import Words

FRACTIONS = (0.1, 0.3, 0.5, 0.7, 0.9)


def deletion(
    model: object,
    x: object,
    attribution: object,
    *,
    level: Level = "region",
    steps: int = 50,
    normalise: bool = False,
    **asked: Unpack[Words],
) -> Score:
    """The area under F(x with the fraction t of largest attribution replaced), t from 0 to 1; lower is better.

    `level`: remove features, or single pixels with all their channels. `steps`: at most this many steps. `normalise`:
    as a share, (F - F(all replaced)) / (F(x) - F(all replaced)), so that images can be compared when F is a logit.

    >>> weights = np.array([4.0, 2.0, 0.0, -1.0])
    >>> import torch
    >>> deletion(lambda z: z @ torch.from_numpy(weights), np.ones(4), weights).value  # of 5, 1, -1, -1, 0
    0.375
    """
    with case(deletion, model, x, attribution, asked) as found:
        here = found.at(level, "deletion")
        return _area("deletion", "lower", here, here.order(), steps, normalise, adding=False)


def insertion(
    model: object,
    x: object,
    attribution: object,
    *,
    level: Level = "region",
    steps: int = 50,
    normalise: bool = False,
    **asked: Unpack[Words],
) -> Score:
    """The area under F(x' with the fraction t of largest attribution put back), t from 0 to 1; higher is better."""
    with case(insertion, model, x, attribution, asked) as found:
        here = found.at(level, "insertion")
        return _area("insertion", "higher", here, here.order(), steps, normalise, adding=True)


def road_morf(
    model: object,
    x: object,
    attribution: object,
    *,
    level: Level = "pixel",
    fractions: Sequence[float] = FRACTIONS,
    **asked: Unpack[Words],
) -> Score:
    """ROAD, most relevant first: the mean of F over these fractions of imputed pixels; lower is better."""
    with case(road_morf, model, x, attribution, asked, NoisyLinear()) as found:
        here = found.at(level, "road_morf")
        return _road("road_morf", "lower", here, here.order(), fractions)


def road_lerf(
    model: object,
    x: object,
    attribution: object,
    *,
    level: Level = "pixel",
    fractions: Sequence[float] = FRACTIONS,
    **asked: Unpack[Words],
) -> Score:
    """ROAD, least relevant first: the mean of F over these fractions of imputed pixels; higher is better."""
    with case(road_lerf, model, x, attribution, asked, NoisyLinear()) as found:
        here = found.at(level, "road_lerf")
        return _road("road_lerf", "higher", here, here.order()[::-1], fractions)


def road_gap(
    model: object,
    x: object,
    attribution: object,
    *,
    level: Level = "pixel",
    fractions: Sequence[float] = FRACTIONS,
    **asked: Unpack[Words],
) -> Score:
    """LeRF - MoRF: how far F tells the least relevant pixels from the most relevant; higher is better."""
    with case(road_gap, model, x, attribution, asked, NoisyLinear()) as found:
        here = found.at(level, "road_gap")
        first = _road("road_morf", "lower", here, here.order(), fractions).curve
        last = _road("road_lerf", "higher", here, here.order()[::-1], fractions).curve
        assert first is not None
        assert last is not None
        curve = Curve(first.at, last.values - first.values)
        return Score("road_gap", float(curve.values.mean()), "higher", curve, here.n_forwards)


def _area(
    name: str, better: Better, here: Case, order: NDArray[np.int64], steps: int, normalise: bool, *, adding: bool
) -> Score:
    n = len(order)
    counts = np.unique(np.round(np.linspace(0, n, min(n, whole(steps, "steps", 1, name)) + 1)).astype(np.int64))
    values = here.outputs(_first(order, counts) == adding)
    if normalise:
        empty, full = (values[0], values[-1]) if adding else (values[-1], values[0])
        if full == empty:
            raise GralisError(f"F(x) is F with everything replaced, so {name} has no scale to be normalised by.")
        values = (values - empty) / (full - empty)
    curve = Curve(counts / n, values)
    return Score(name, curve.area(), better, curve, here.n_forwards, "normalised" if normalise else "")


def _road(name: str, better: Better, here: Case, order: NDArray[np.int64], fractions: Sequence[float]) -> Score:
    at = _fractions(fractions, name)
    values = here.outputs(~_first(order, np.round(at * len(order)).astype(np.int64)))
    return Score(name, float(values.mean()), better, Curve(at, values), here.n_forwards)


def _first(order: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which features are among the first `count` of the order, one row for every count."""
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return np.asarray(rank < counts[:, None])


def _fractions(fractions: object, owner: str) -> Array:
    try:
        at = np.asarray(fractions, dtype=np.float64)
    except (TypeError, ValueError):
        at = np.empty(0)
    if at.ndim != 1 or not at.size or not ((at >= 0) & (at <= 1)).all() or (np.diff(at) <= 0).any():
        raise bad("fractions", owner, "numbers from 0 to 1 that increase", repr(fractions))
    return at
