"""Arithmetic on ledger rows; no model.

adjusted   the shared plan: surrogate + cross-fitted remainder + checksum
plain      weighted rays: exhaustive and independent plans
ratio      Algorithm 1
endpoint   marginal differences of coalition values
shapley    Shapley values from any coalition values: the games that the rows make likely
"""

from __future__ import annotations

from gralis.estimators import adjusted, endpoint, plain, ratio, shapley
from gralis.estimators.result import Estimate
from gralis.estimators.weights import effective_rays, importance, unsampled, unvisited
from gralis.kernels import Kernel, Uniform
from gralis.laws import Array
from gralis.ledger import Ledger

__all__ = ["Estimate", "effective_rays", "estimate", "importance", "total_of_values", "unsampled"]


def estimate(ledger: Ledger, kernel: Kernel, squared_distance: Array, weights: Array, method: str) -> Estimate:
    """phi of one kernel from a ledger, by the estimator of its plan; squared_distance (n_baselines, n_features)."""
    if method == "ratio":
        return ratio.estimate(ledger, kernel, squared_distance, weights)
    if method == "shapley":  # whatever the kernel
        return shapley.estimate(ledger, squared_distance, weights)
    laws = [kernel.bind(row) for row in squared_distance]
    if method == "endpoint":
        return endpoint.estimate(ledger, laws, weights)
    if method == "exact":
        return plain.estimate(ledger, laws, weights, exact=True)
    found = adjusted.estimate(ledger, laws, weights) if method == "adjusted" else plain.estimate(ledger, laws, weights)
    moving = (squared_distance > 0).any(0)
    return found.unknown_where(moving & unvisited(ledger, laws, weights))


def total_of_values(ledger: Ledger, squared_distance: Array, weights: Array, method: str) -> Estimate:
    """sum_T v(T) / (|T| C(n, |T|)): what the uniform-kernel values sum to, from coalition values alone; one value."""
    laws = [Uniform().bind(row) for row in squared_distance]
    if method == "adjusted":
        return adjusted.total_of_values(ledger, laws, weights)
    return plain.total_of_values(ledger, laws, weights, exact=method == "exact")
