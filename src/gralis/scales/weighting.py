"""How `multiscale` chooses weights from the replicates, and the error that this choice adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.scales.weights import between_levels, checked_weights, minimum_variance

__all__ = ["Weighting", "covariances"]


@dataclass(frozen=True, eq=False)
class Weighting:
    """How the weights of levels are chosen.

    Attributes
    ----------
    method : str or sequence of float
        The name of a method of `minimum_variance`, or the weights themselves.
    per_feature : bool
        Whether each feature has its own weights.
    disagreement : bool
        Whether the variance between levels counts.
    numerical : array of shape (n_levels, n_features)
        The quadrature errors of the levels.
    """

    method: str | Sequence[float]
    per_feature: bool
    disagreement: bool
    numerical: Array

    def weights(self, values: Array, departures: Array) -> tuple[Array, str]:
        """The weights, (n_levels, n_features or 1), and the name of the method.

        Parameters
        ----------
        values : array of shape (n_levels, n_features)
            The value of every level.
        departures : array of shape (n_levels, n_replicates, n_features)
            The departures of the replicates of every level.
        """
        n_levels, n_replicates, _ = departures.shape
        if not isinstance(self.method, str):
            return checked_weights(self.method, n_levels)[:, None], "given"
        sigma = covariances(departures)
        sigma[:, np.arange(n_levels), np.arange(n_levels)] += self.numerical.T**2
        if self.method == "uniform" or not self.per_feature:
            return self._least(sigma.mean(0), values, departures, self.numerical)[:, None], self.method
        if n_levels >= n_replicates:
            raise GralisError(
                f"Weights per feature for {n_levels} levels need more replicates than the {n_replicates} there are; "
                f"raise replicates=, or leave per_feature=False."
            )
        parts = [slice(i, i + 1) for i in range(values.shape[1])]
        each = [self._least(sigma[i.start], values[:, i], departures[..., i], self.numerical[:, i]) for i in parts]
        return np.stack(each, axis=1), self.method

    def jackknife(self, values: Array, departures: Array) -> Array:
        """The variance of the combination, leaving out each replicate in turn and choosing the weights again.

        It includes the error of the weights: they depend on the sample, and the levels do not estimate the same
        quantity.
        """
        n = departures.shape[1]
        kept = []
        for left_out in range(n):
            others = np.delete(departures, left_out, axis=1)
            rest = values - departures[:, left_out] / (n - 1)
            chosen, _ = self.weights(rest, others - others.mean(1, keepdims=True))
            kept.append((chosen * rest).sum(0))
        return np.asarray((n - 1) ** 2 / n * np.var(kept, axis=0, ddof=1))

    def _least(self, sigma: Array, values: Array, departures: Array, numerical: Array) -> Array:
        """The weights with the least variance for this covariance of the errors, with that between levels added."""
        between = between_levels(values, departures, numerical) if self.disagreement else 0.0
        return minimum_variance(sigma + between * np.eye(len(sigma)), str(self.method))


def covariances(departures: Array) -> Array:
    """The covariance of the levels' values for every feature, (n_features, n_levels, n_levels)."""
    n = departures.shape[1]
    return np.asarray(np.einsum("arf,brf->fab", departures, departures) / (n * max(n - 1, 1)))
