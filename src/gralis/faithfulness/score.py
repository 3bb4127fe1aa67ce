"""What a metric returns for one input, and the mean over several inputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from gralis.arrays import Array
from gralis.checks import probability, several
from gralis.errors import bad

__all__ = ["Better", "Curve", "Score", "Summary", "over"]

Better = Literal["higher", "lower"]


@dataclass(frozen=True, eq=False)
class Curve:
    """The numbers behind a score: one value at every place.

    Parameters
    ----------
    at : array of shape (n,)
        The places, for example the fraction of features that are removed.
    values : array of shape (n,)
        The value at each place.
    """

    at: Array
    values: Array

    def area(self) -> float:
        """The area under the curve, by trapezoids.

        Returns
        -------
        float

        Examples
        --------
        >>> Curve(np.array([0.0, 0.5, 1.0]), np.array([2.0, 1.0, 0.0])).area()
        1.0
        """
        values = np.asarray(self.values)
        return float((np.diff(self.at) * (values[1:] + values[:-1]) / 2.0).sum())


@dataclass(frozen=True, eq=False)
class Score:
    """One number for one attribution of one input, and the direction that is better.

    Parameters
    ----------
    name : str
        The name of the metric.
    value : float
        The score itself.
    better : {"higher", "lower"}
        Which direction is better.
    curve : Curve or None, default=None
        The numbers that the score summarises, if there are any.
    n_forwards : int, default=0
        The forward passes that the metric made, without those of methods that it ran.
    note : str, default=""
        What else is to be said about the number.

    Examples
    --------
    >>> Score("deletion", 0.25, "lower", n_forwards=51)
    deletion 0.25 (lower is better)
    """

    name: str
    value: float
    better: Better
    curve: Curve | None = None
    n_forwards: int = 0
    note: str = ""

    def __repr__(self) -> str:
        return f"{self.name} {self.value:.5g} ({self.better} is better{'; ' + self.note if self.note else ''})"


@dataclass(frozen=True, eq=False)
class Summary:
    """The mean of a metric over inputs, with its error.

    Parameters
    ----------
    name : str
        The name of the metric.
    better : {"higher", "lower"}
        Which direction is better.
    values : array of shape (n_inputs,)
        The score of each input.
    curve : Curve or None, default=None
        The mean curve, if the curves of all inputs have the same places.
    curve_stderr : array or None, default=None
        The standard error of the mean curve at each place.
    """

    name: str
    better: Better
    values: Array
    curve: Curve | None = None
    curve_stderr: Array | None = None

    @property
    def n(self) -> int:
        """The number of inputs."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """The mean score."""
        return float(self.values.mean())

    @property
    def stderr(self) -> float:
        """The standard error of the mean; NaN for a single input."""
        return float(self.values.std(ddof=1) / np.sqrt(self.n)) if self.n > 1 else float("nan")

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Student's interval for the mean over inputs.

        Parameters
        ----------
        level : float, default=0.95
            The probability that the interval covers the mean.

        Returns
        -------
        tuple of float
            The lower and the upper end.
        """
        level = probability(level, "level", "interval")
        half = self.stderr * float(stdtrit(max(self.n - 1, 1), (1 + level) / 2))
        return self.mean - half, self.mean + half

    def __repr__(self) -> str:
        half = self.interval()[1] - self.mean
        return f"{self.name} {self.mean:.5g} +- {half:.2g} over {self.n} images ({self.better} is better)"


def over(scores: Iterable[Score]) -> Summary:
    """The mean of one metric over inputs, with error bars.

    Parameters
    ----------
    scores : iterable of Score
        The scores of one metric, one for each input.

    Returns
    -------
    Summary

    Examples
    --------
    >>> over([Score("gini", value, "higher") for value in (0.2, 0.4, 0.6)])
    gini 0.4 +- 0.5 over 3 images (higher is better)
    """
    listed = several(scores, "scores", "faithfulness.over", "scores of one metric, at least one")
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
