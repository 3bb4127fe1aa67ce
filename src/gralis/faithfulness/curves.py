"""Curves of F as features are removed or added in the order of an attribution: deletion, insertion, ROAD."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from gralis.api.signature import keywords_of
from gralis.arrays import Array
from gralis.checks import flag, whole
from gralis.errors import GralisError, bad
from gralis.faithfulness.impute import NoisyLinear
from gralis.faithfulness.score import Better, Curve, Score
from gralis.faithfulness.scored_input import Level, ScoredInput
from gralis.methods.settings import SharedKeywords, SharedSettings

__all__ = ["deletion", "insertion", "road_gap", "road_lerf", "road_morf"]

_FRACTIONS = (0.1, 0.3, 0.5, 0.7, 0.9)


@dataclass(frozen=True, kw_only=True)
class _RoadSettings(SharedSettings):
    """The shared keywords of the ROAD metrics, which impute removed pixels unless they get another baseline.

    Parameters
    ----------
    baseline : object, default=NoisyLinear(noise=0.01)
        What removed pixels become. The default makes each of them the weighted mean of its neighbours, with noise.
        Any other baseline of a metric is allowed: a number, an array, the name of a recipe.
    """

    baseline: object = NoisyLinear()


@keywords_of(SharedSettings)
def deletion(
    model: object,
    x: object,
    attribution: object,
    *,
    level: Level = "region",
    steps: int = 50,
    normalise: bool = False,
    **keywords: Unpack[SharedKeywords],
) -> Score:
    """The area under F(x with the fraction t of largest attribution replaced), t from 0 to 1; lower is better.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis.
    attribution : Attribution, Explanation or array
        What is scored: a result with `.values`, or an array with one number per feature or shaped like x.
    level : {"region", "pixel"}, default="region"
        Whether features are removed one after the other, or single pixels with all their channels.
    steps : int, default=50
        The largest number of steps from nothing removed to everything removed.
    normalise : bool, default=False
        Whether the curve is (F - F(all replaced)) / (F(x) - F(all replaced)). Areas of different images can then be
        compared also if F is a logit.

    Returns
    -------
    Score
        The area, with the curve.

    Examples
    --------
    >>> weights = np.array([4.0, 2.0, 0.0, -1.0])
    >>> import torch
    >>> deletion(lambda z: z @ torch.from_numpy(weights), np.ones(4), weights).value  # of 5, 1, -1, -1, 0
    0.375
    """
    with ScoredInput.open(deletion, model, x, attribution, keywords) as scored:
        return _area("deletion", "lower", scored.at(level, "deletion"), steps, normalise, adding=False)


@keywords_of(SharedSettings)
def insertion(
    model: object,
    x: object,
    attribution: object,
    *,
    level: Level = "region",
    steps: int = 50,
    normalise: bool = False,
    **keywords: Unpack[SharedKeywords],
) -> Score:
    """The area under F(x' with the fraction t of largest attribution put back), t from 0 to 1; higher is better.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis.
    attribution : Attribution, Explanation or array
        What is scored: a result with `.values`, or an array with one number per feature or shaped like x.
    level : {"region", "pixel"}, default="region"
        Whether features are put back one after the other, or single pixels with all their channels.
    steps : int, default=50
        The largest number of steps from nothing put back to everything put back.
    normalise : bool, default=False
        Whether the curve is (F - F(all replaced)) / (F(x) - F(all replaced)).

    Returns
    -------
    Score
        The area, with the curve.
    """
    with ScoredInput.open(insertion, model, x, attribution, keywords) as scored:
        return _area("insertion", "higher", scored.at(level, "insertion"), steps, normalise, adding=True)


@keywords_of(_RoadSettings)
def road_morf(
    model: object,
    x: object,
    attribution: object,
    *,
    level: Level = "pixel",
    fractions: Sequence[float] = _FRACTIONS,
    **keywords: Unpack[SharedKeywords],
) -> Score:
    """ROAD, most relevant first: the mean of F over these fractions of imputed pixels; lower is better.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis. Its last two axes are rows and columns.
    attribution : Attribution, Explanation or array
        What is scored: a result with `.values`, or an array with one number per feature or shaped like x.
    level : {"pixel", "region"}, default="pixel"
        Whether single pixels are removed, or features.
    fractions : sequence of float, default=(0.1, 0.3, 0.5, 0.7, 0.9)
        The fractions of pixels that are removed, increasing from 0 to 1.

    Returns
    -------
    Score
        The mean, with F at every fraction as the curve.
    """
    with ScoredInput.open(road_morf, model, x, attribution, keywords, _RoadSettings) as scored:
        return _road("road_morf", "lower", (1,), scored.at(level, "road_morf"), fractions)


@keywords_of(_RoadSettings)
def road_lerf(
    model: object,
    x: object,
    attribution: object,
    *,
    level: Level = "pixel",
    fractions: Sequence[float] = _FRACTIONS,
    **keywords: Unpack[SharedKeywords],
) -> Score:
    """ROAD, least relevant first: the mean of F over these fractions of imputed pixels; higher is better.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis. Its last two axes are rows and columns.
    attribution : Attribution, Explanation or array
        What is scored: a result with `.values`, or an array with one number per feature or shaped like x.
    level : {"pixel", "region"}, default="pixel"
        Whether single pixels are removed, or features.
    fractions : sequence of float, default=(0.1, 0.3, 0.5, 0.7, 0.9)
        The fractions of pixels that are removed, increasing from 0 to 1.

    Returns
    -------
    Score
        The mean, with F at every fraction as the curve.
    """
    with ScoredInput.open(road_lerf, model, x, attribution, keywords, _RoadSettings) as scored:
        return _road("road_lerf", "higher", (-1,), scored.at(level, "road_lerf"), fractions)


@keywords_of(_RoadSettings)
def road_gap(
    model: object,
    x: object,
    attribution: object,
    *,
    level: Level = "pixel",
    fractions: Sequence[float] = _FRACTIONS,
    **keywords: Unpack[SharedKeywords],
) -> Score:
    """LeRF - MoRF: how far F distinguishes the least relevant pixels from the most relevant; higher is better.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis. Its last two axes are rows and columns.
    attribution : Attribution, Explanation or array
        What is scored: a result with `.values`, or an array with one number per feature or shaped like x.
    level : {"pixel", "region"}, default="pixel"
        Whether single pixels are removed, or features.
    fractions : sequence of float, default=(0.1, 0.3, 0.5, 0.7, 0.9)
        The fractions of pixels that are removed, increasing from 0 to 1.

    Returns
    -------
    Score
        The mean difference, with the difference at every fraction as the curve.
    """
    with ScoredInput.open(road_gap, model, x, attribution, keywords, _RoadSettings) as scored:
        return _road("road_gap", "higher", (1, -1), scored.at(level, "road_gap"), fractions)


def _area(name: str, better: Better, scored: ScoredInput, steps: int, normalise: bool, *, adding: bool) -> Score:
    """The area under F from nothing to everything added, or removed."""
    normalise = flag(normalise, "normalise", name)
    order = scored.order()
    n = len(order)
    counts = np.unique(np.round(np.linspace(0, n, min(n, whole(steps, "steps", 1, name)) + 1)).astype(np.int64))
    values = scored.outputs(_first(order, counts) == adding)
    if normalise:
        empty, full = (values[0], values[-1]) if adding else (values[-1], values[0])
        if full == empty:
            raise GralisError(f"F(x) is F with everything replaced, so {name} has no scale to be normalised by.")
        values = (values - empty) / (full - empty)
    curve = Curve(counts / n, values)
    return Score(name, curve.area(), better, curve, scored.n_forwards, "normalised" if normalise else "")


def _road(
    name: str, better: Better, directions: Sequence[int], scored: ScoredInput, fractions: Sequence[float]
) -> Score:
    """The mean of F over the fractions, or of the difference of two directions: 1 most relevant first, -1 least."""
    at, order = _increasing(fractions, name), scored.order()
    counts = np.round(at * len(order)).astype(np.int64)
    curves = [scored.outputs(~_first(order[::direction], counts)) for direction in directions]
    values = curves[0] if len(curves) == 1 else curves[1] - curves[0]
    return Score(name, float(values.mean()), better, Curve(at, values), scored.n_forwards)


def _first(order: NDArray[np.int64], counts: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which features are among the first `count` of the order, one row for every count."""
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return np.asarray(rank < counts[:, None])


def _increasing(fractions: object, owner: str) -> Array:
    """The fractions as an array, checked."""
    try:
        at = np.asarray(fractions, dtype=np.float64)
    except (TypeError, ValueError):
        at = np.empty(0)
    if at.ndim != 1 or not at.size or not ((at >= 0) & (at <= 1)).all() or (np.diff(at) <= 0).any():
        raise bad("fractions", owner, "numbers from 0 to 1 that increase", repr(fractions))
    return at
