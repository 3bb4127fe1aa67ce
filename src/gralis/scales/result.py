"""What `multiscale` returns: the combination, its levels, and the predicted and the measured variance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gralis.arrays import Array
from gralis.estimators import Estimate
from gralis.features import Features
from gralis.results.explanation import Explanation
from gralis.results.result import FeatureResult, InputForm
from gralis.results.tables import doubt_lines, united

__all__ = ["LevelResult", "MultiScale"]


@dataclass(frozen=True, eq=False)
class LevelResult:
    """One level of a combination.

    Attributes
    ----------
    name : str
        The name of the level.
    explanation : Explanation
        The explanation of the level, on the features of the level.
    estimate : Estimate
        The same values brought to the common features; their sum is kept.
    """

    name: str
    explanation: Explanation
    estimate: Estimate


@dataclass(frozen=True, eq=False, repr=False)
class MultiScale(FeatureResult):
    """sum_l lambda_l phi_l on common features.

    Attributes
    ----------
    estimate : Estimate
        The combined values and their departures.
    features : Features
        The common features.
    levels : tuple of LevelResult
        The levels.
    weights : array of shape (n_levels,) or (n_levels, n_features)
        The weight of each level, for all features together or for each feature.
    weighting : str
        How the weights were chosen.
    predicted_if_independent : array of shape (n_features,)
        sum_l lambda_l^2 sigma_l^2: the variance if the levels were independent.
    measured : array of shape (n_features,)
        The variance by a jackknife over replicates that chooses the weights again each time.
    own : tuple of str, default=()
        The names of the rows after the common features: parts of levels that have no place in the input.
    form : InputForm or None
        How the user packs the arrays of the input.
    """

    estimate: Estimate
    features: Features
    levels: tuple[LevelResult, ...]
    weights: Array
    weighting: str
    predicted_if_independent: Array
    measured: Array
    own: tuple[str, ...] = ()
    form: InputForm | None = None

    @property
    def method(self) -> str:
        """How the weights were chosen."""
        return self.weighting

    @property
    def names(self) -> Sequence[str]:  # type: ignore[override]
        """The names of the common features, and of the rows without a place after them."""
        return (*self.features.names, *self.own) if self.own else self.features.names

    @property
    def variance(self) -> Array:
        """lambda' Sigma lambda of every feature: it counts the covariance between levels and takes weights as given."""
        return np.asarray(self.estimate.sampling_error**2)

    @property
    def stderr(self) -> Array:
        """The standard error of every value, including that of the weights."""
        margin = 0.0 if self.estimate.margin is None else self.estimate.margin
        return np.asarray(np.sqrt(np.maximum(self.variance, self.measured) + margin**2))

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why the intervals may not hold, in sentences: those of all levels."""
        return united(level.explanation.doubts for level in self.levels)

    def _half_widths(self, level: float) -> Array:
        half, allowance = super()._half_widths(level), self.estimate.allowance
        measured = np.sqrt(np.maximum(self.variance, self.measured))
        sampling = self.estimate.sampling_error
        ratio = np.divide(measured, sampling, out=np.ones_like(half), where=sampling > 0)
        return (half - allowance) * ratio + allowance

    @property
    def between(self) -> Array:
        """The variance of the levels' values around their mean, per feature: what the choice of level decides.

        It includes the sampling errors of the levels; `between_beyond_noise` subtracts their mean.
        """
        values = np.stack([level.estimate.values for level in self.levels])
        return np.asarray(values.var(0, ddof=1)) if len(values) > 1 else np.zeros(values.shape[1])

    @property
    def between_beyond_noise(self) -> Array:
        """The variance between levels beyond what their sampling errors explain."""
        noise = np.mean([level.estimate.stderr**2 for level in self.levels], axis=0)
        return np.asarray(np.maximum(self.between - noise, 0.0))

    @property
    def optimism(self) -> float:
        """The measured variance over that predicted for independent levels; above 1 the prediction is too small."""
        predicted = float(self.predicted_if_independent.sum())
        return float(self.measured.sum() / predicted) if predicted else 1.0

    def __repr__(self) -> str:
        first = self.levels[0].explanation
        beside = f" and {len(self.own)} without a place in it" if self.own else ""
        width = max(5, *(len(level.name) for level in self.levels))
        lines = [
            f"{len(self.levels)} levels on {self.features!r}{beside}, {self.method} weights",
            f"sum {self.values.sum():.5g}   F(x) - F(x') = {first.delta:.5g}",
            f"{'level':<{width}}  {'regions':>7}  {'weight':>8}  {'rms error':>9}",
        ]
        weights = self.weights if self.weights.ndim == 1 else self.weights.mean(1)
        for level, weight in zip(self.levels, weights, strict=True):
            error = float(np.sqrt(np.mean(level.estimate.stderr**2)))
            lines.append(f"{level.name:<{width}}  {level.explanation.n_features:>7}  {weight:>8.4f}  {error:>9.3g}")
        kinds = (self.predicted_if_independent, self.variance, self.measured)
        independent, predicted, measured = (f"{np.sqrt(kind.mean()):.3g}" for kind in kinds)
        lines += [
            f"rms error of the combination: {independent} if levels were independent, {predicted} with their "
            f"covariance, {measured} measured (measured / independent variance {self.optimism:.2f})",
            f"between levels, beyond sampling error: {np.sqrt(self.between_beyond_noise.mean()):.3g} (rms)",
        ]
        return "\n".join([*lines, *doubt_lines(self.doubts)])
