"""What an estimator returns: values, and how each replicate departs from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array

_LEAST_CONTRASTS = 40


@dataclass(frozen=True, eq=False)
class Estimate:
    """phi, and one departure per replicate, (n_replicates, n_features); their mean is zero.

    `exact` says that there is no sampling error: every coalition was evaluated.
    """

    values: Array
    departures: Array
    method: str
    exact: bool = False
    carriers: Array | None = None  # (n_features,) how many rays carry the variance; None: very many

    @property
    def stderr(self) -> Array:
        """Sampling error: 0 if exact, NaN if a single replicate cannot tell."""
        n = len(self.departures)
        if self.exact:
            return np.zeros_like(self.values)
        if n < 2:
            return np.full_like(self.values, np.nan)
        return np.asarray(np.sqrt((self.departures**2).sum(0) / (n * (n - 1))))

    @property
    def dof(self) -> Array:
        """Degrees of freedom of stderr^2: its relative variance is 2 / (R - 1) + 1 / carriers, set equal to 2 / dof.

        R normal replicates alone would give R - 1. Where a few heavy rays make the variance, a sample often lacks
        them and the error looks too small: the second term. (Fewer than two carriers: the one heavy ray was seen.)
        """
        n = len(self.departures)
        heavy = np.zeros(len(self.values)) if self.carriers is None else 1 / np.maximum(self.carriers, 2.0)
        return np.asarray(2 / (2 / max(n - 1, 1) + heavy))

    def unknown_where(self, features: NDArray[np.bool_]) -> Estimate:
        """The same with no error at all to be had for these features: theirs is NaN, not 0."""
        if not features.any():
            return self
        return replace(self, departures=np.where(features, np.nan, self.departures))

    def widened(self, factor: float) -> Estimate:
        """The same values with larger departures."""
        return replace(self, departures=self.departures * factor)

    def combined(self, rows: Array) -> Estimate:
        """Linear combinations of the values, one per row of `rows` (n_combinations, n_features)."""
        used = rows != 0
        carriers = self.carriers
        if carriers is not None:
            carriers = np.array([carriers[row].min(initial=np.inf) for row in used])
        return Estimate(rows @ self.values, self.departures @ rows.T, self.method, self.exact, carriers)

    @staticmethod
    def beside(parts: Sequence[Estimate]) -> Estimate:
        """Several estimates from the same replicates as one."""
        carriers = [np.full(len(e.values), np.inf) if e.carriers is None else e.carriers for e in parts]
        return Estimate(
            np.concatenate([e.values for e in parts]),
            np.concatenate([e.departures for e in parts], axis=1),
            parts[0].method,
            all(e.exact for e in parts),
            np.concatenate(carriers),
        )

    @staticmethod
    def mean(estimates: Array, method: str, exact: bool = False, rays: Array | None = None) -> Estimate:
        """The mean of independent estimates, one row per replicate; `rays` are the contributions they are sums of."""
        values = estimates.mean(0)
        carriers = None
        if rays is not None:
            squares = (rays**2).sum(0)
            fourth = (rays**4).sum(0)
            carriers = np.divide(squares**2, fourth, out=np.full_like(squares, np.inf), where=fourth > 0)
        return Estimate(values, estimates - values, method, exact, carriers)

    @staticmethod
    def normal(values: Array, covariance: Array, method: str, n_rows: int) -> Estimate:
        """Values with a normal error of this covariance, its scale learnt from n_rows; departures that add up to it."""
        n = len(values)
        count = max(n + 1, _LEAST_CONTRASTS)
        variances, directions = np.linalg.eigh(covariance)
        place = (np.arange(count) + 0.5)[:, None] * np.arange(1, n + 1)
        contrasts = np.sqrt(2 / count) * np.cos(np.pi / count * place)  # orthonormal, each of mean zero
        roots = np.sqrt(np.maximum(variances, 0.0) * count * (count - 1))
        departures = contrasts @ (roots[:, None] * directions.T)
        departures[:, np.diag(covariance) == 0] = 0.0  # not even rounding where nothing is uncertain
        return Estimate(values, departures, method, carriers=np.full(n, n_rows / 2))
