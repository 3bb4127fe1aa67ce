"""What a metric returns for one image, and what several images make of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from gralis.arrays import Array
from gralis.checks import probability
from gralis.errors import bad

Better = Literal["higher", "lower"]


@dataclass(frozen=True, eq=False)
class Curve:
    """The numbers behind a score: `values` at the places `at`, both (n,)."""

    at: Array
    values: Array

    def area(self) -> float:
        """The area under the curve, by trapezoids.

        >>> Curve(np.array([0.0, 0.5, 1.0]), np.array([2.0, 1.0, 0.0])).area()
        1.0
        """
        return float(np.trapezoid(self.values, self.at))


@dataclass(frozen=True, eq=False)
class Score:
    """One number for one attribution of one input, and which direction is better.

    >>> Score("deletion", 0.25, "lower", n_forwards=51)
    deletion 0.25 (lower is better)
    """

    name: str
    value: float
    better: Better
    curve: Curve | None = None
    n_forwards: int = 0  # forward evaluations that the metric made itself
    note: str = ""

    def __repr__(self) -> str:
        return f"{self.name} {self.value:.5g} ({self.better} is better{'; ' + self.note if self.note else ''})"


@dataclass(frozen=True, eq=False)
class Summary:
    """The mean of a metric over images, with its error."""

    name: str
    better: Better
    values: Array  # (n_images,)
    curve: Curve | None = None  # the mean curve, where all images have the same places
    curve_stderr: Array | None = None

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def mean(self) -> float:
        return float(self.values.mean())

    @property
    def stderr(self) -> float:
        """Of the mean; NaN for a single image."""
        return float(self.values.std(ddof=1) / np.sqrt(self.n)) if self.n > 1 else float("nan")

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Student's interval for the mean over images."""
        level = probability(level, "level", "interval")
        half = self.stderr * float(stdtrit(max(self.n - 1, 1), (1 + level) / 2))
        return self.mean - half, self.mean + half

    def __repr__(self) -> str:
        half = self.interval()[1] - self.mean
        return f"{self.name} {self.mean:.5g} +- {half:.2g} over {self.n} images ({self.better} is better)"


def over(scores: Iterable[Score]) -> Summary:
    """The mean of one metric over images, with error bars.

    >>> over([Score("gini", value, "higher") for value in (0.2, 0.4, 0.6)])
    gini 0.4 +- 0.5 over 3 images (higher is better)
    """
    listed = list(scores)
    names = {score.name for score in listed if isinstance(score, Score)}
    if len(names) != 1 or not all(isinstance(score, Score) for score in listed):
        raise bad("scores", "faithfulness.over", "scores of one metric, at least one", f"{sorted(names) or 'none'}")
    values = np.array([score.value for score in listed])
    curves = [score.curve for score in listed if score.curve is not None]
    same = len(curves) == len(listed) and all(np.array_equal(curve.at, curves[0].at) for curve in curves)
    if not same:
        return Summary(listed[0].name, listed[0].better, values)
    table = np.stack([curve.values for curve in curves])
    error = table.std(0, ddof=1) / np.sqrt(len(table)) if len(table) > 1 else np.full(table.shape[1], np.nan)
    return Summary(listed[0].name, listed[0].better, values, Curve(curves[0].at, table.mean(0)), error)
