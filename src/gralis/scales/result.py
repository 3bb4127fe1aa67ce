"""What `multiscale` returns: the combination, its levels, and what was predicted of its variance and measured."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gralis.arrays import Array
from gralis.certificates.simultaneous import half_widths
from gralis.checks import probability
from gralis.estimators import Estimate
from gralis.features import Features
from gralis.results.explanation import Explanation


@dataclass(frozen=True, eq=False)
class LevelResult:
    """One level: its own explanation, and the same brought to the common features (sums are kept)."""

    name: str
    explanation: Explanation
    estimate: Estimate


@dataclass(frozen=True, eq=False)
class MultiScale:
    """sum_l lambda_l phi_l on common features."""

    estimate: Estimate
    features: Features
    levels: tuple[LevelResult, ...]
    weights: Array  # (n_levels,), or (n_levels, n_features) where every feature has its own
    method: str
    predicted_if_independent: Array  # (n_features,) sum lambda_l^2 sigma_l^2
    measured: Array  # (n_features,) by jackknife over replicates, weights chosen anew each time

    @property
    def values(self) -> Array:
        return self.estimate.values

    @property
    def variance(self) -> Array:
        """lambda' Sigma lambda of every feature: with the covariance between levels, the weights taken as given."""
        return np.asarray(self.estimate.stderr**2)

    @property
    def stderr(self) -> Array:
        """Sampling error, that of the weights included."""
        return np.asarray(np.sqrt(np.maximum(self.variance, self.measured)))

    @property
    def names(self) -> Sequence[str]:
        return self.features.names

    @property
    def between(self) -> Array:
        """The variance of the levels' values around their mean, per feature: what the choice of level decides.

        It holds the levels' sampling errors too; `between_beyond_noise` takes their mean off.
        """
        values = np.stack([level.estimate.values for level in self.levels])
        return np.asarray(values.var(0, ddof=1)) if len(values) > 1 else np.zeros(values.shape[1])

    @property
    def between_beyond_noise(self) -> Array:
        noise = np.mean([level.estimate.stderr**2 for level in self.levels], axis=0)
        return np.asarray(np.maximum(self.between - noise, 0.0))

    @property
    def optimism(self) -> float:
        """Measured variance over that predicted for independent levels, summed over features: above 1 is optimism."""
        predicted = float(self.predicted_if_independent.sum())
        return float(self.measured.sum() / predicted) if predicted else 1.0

    def interval(self, level: float = 0.95) -> Array:
        """Simultaneous intervals for the combination, (n_features, 2)."""
        half = half_widths(self.estimate, probability(level, "level", "interval"))
        spread = np.divide(self.stderr, self.estimate.stderr, out=np.ones_like(half), where=self.estimate.stderr > 0)
        return np.stack([self.values - half * spread, self.values + half * spread], axis=1)

    def to_input(self) -> Any:
        """The combination on the input's own shape."""
        return self.features.to_input(self.values)[0]

    def __repr__(self) -> str:
        first = self.levels[0].explanation
        width = max(5, *(len(level.name) for level in self.levels))
        lines = [
            f"{len(self.levels)} levels on {self.features!r}, {self.method} weights",
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
        return "\n".join(lines)
