"""Arithmetic on ledger rows; no model.

adjusted   the shared plan: surrogate + cross-fitted remainder + checksum
plain      weighted rays: exhaustive and independent plans
ratio      Algorithm 1
endpoint   marginal differences of coalition values
shapley    Shapley values from any coalition values: the games that the rows make likely
"""

from __future__ import annotations

from collections.abc import Sequence

from gralis.arrays import Array
from gralis.estimators import adjusted, endpoint, plain, ratio, shapley
from gralis.estimators.estimate import Estimate
from gralis.estimators.importance import effective_rays, importance, unsampled, unvisited
from gralis.kernels import Kernel, Uniform
from gralis.ledger import Ledger

__all__ = ["Estimate", "effective_rays", "estimate", "estimates", "importance", "total_of_values", "unsampled"]


def estimate(ledger: Ledger, kernel: Kernel, squared_distance: Array, weights: Array, method: str) -> Estimate:
    """phi of one kernel from a ledger, by the estimator of its plan; squared_distance (n_baselines, n_features)."""
    return estimates([ledger], kernel, [squared_distance], weights, method)[0]


def estimates(
    ledgers: Sequence[Ledger], kernel: Kernel, squared_distances: Sequence[Array], weights: Array, method: str
) -> tuple[Estimate, ...]:
    """The same for several questions asked on the same rays; questions of one input have one squared_distance."""
    questions = list(zip(ledgers, squared_distances, strict=True))
    if method == "ratio":
        return tuple(ratio.estimate(ledger, kernel, distance, weights) for ledger, distance in questions)
    if method == "shapley":  # whatever the kernel
        return tuple(shapley.estimate(ledger, distance, weights) for ledger, distance in questions)
    bound = {id(distance): [kernel.bind(row) for row in distance] for distance in squared_distances}
    laws = [bound[id(distance)] for distance in squared_distances]
    if method == "endpoint":
        return tuple(endpoint.estimate(ledger, own, weights) for ledger, own in zip(ledgers, laws, strict=True))
    if method == "exact":
        return tuple(
            plain.estimate(ledger, own, weights, exact=True) for ledger, own in zip(ledgers, laws, strict=True)
        )
    if method == "adjusted":
        found = adjusted.estimate(ledgers, laws, weights)
    else:
        found = tuple(plain.estimate(ledger, own, weights) for ledger, own in zip(ledgers, laws, strict=True))
    return tuple(
        one.unknown_where((distance > 0).any(0) & unvisited(ledger, own, weights))
        for one, (ledger, distance), own in zip(found, questions, laws, strict=True)
    )


def total_of_values(ledger: Ledger, squared_distance: Array, weights: Array, method: str) -> Estimate:
    """sum_T v(T) / (|T| C(n, |T|)): what the uniform-kernel values sum to, from coalition values alone; one value."""
    laws = [Uniform().bind(row) for row in squared_distance]
    if method == "adjusted":
        return adjusted.total_of_values(ledger, laws, weights)
    return plain.total_of_values(ledger, laws, weights, exact=method == "exact")
