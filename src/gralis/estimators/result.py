"""What an estimator returns: values, and how each replicate departs from them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gralis.laws import Array


@dataclass(frozen=True, eq=False)
class Total:
    """One number, and its departure in each replicate."""

    value: float
    departures: Array  # (n_replicates,)

    def widened(self, factor: float) -> Total:
        """The same value with larger departures."""
        return replace(self, departures=self.departures * factor)

    @staticmethod
    def mean(rows: Array) -> Total:
        """The mean of independent estimates, one per replicate."""
        value = float(rows.mean())
        return Total(value, rows - value)


@dataclass(frozen=True, eq=False)
class Estimate:
    """phi, and one departure per replicate, (n_replicates, n_features); their mean is zero.

    `exact` says that there is no sampling error: every coalition was evaluated.
    """

    values: Array
    departures: Array
    method: str
    exact: bool = False

    @property
    def stderr(self) -> Array:
        """Sampling error: 0 if exact, NaN if a single replicate cannot tell."""
        n = len(self.departures)
        if self.exact:
            return np.zeros_like(self.values)
        if n < 2:
            return np.full_like(self.values, np.nan)
        return np.asarray(np.sqrt((self.departures**2).sum(0) / (n * (n - 1))))

    def widened(self, factor: float) -> Estimate:
        """The same values with larger departures."""
        return replace(self, departures=self.departures * factor)

    @staticmethod
    def mean(estimates: Array, method: str, exact: bool = False) -> Estimate:
        """The mean of independent estimates, one row per replicate."""
        values = estimates.mean(0)
        return Estimate(values, estimates - values, method, exact)
