"""Algorithm 1's output: phi[i] / Z[i] = sum pi(S) ig_i / sum pi(S) over the rays drawn for feature i."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from gralis.arrays import Array, Masks
from gralis.estimators.design import Design, Estimator
from gralis.estimators.estimate import Estimate, carriers
from gralis.estimators.plain import WeightedRays, per_replicate
from gralis.estimators.ray_weights import effective_rays
from gralis.kernels import Kernel
from gralis.ledger import AnyLedger, Ledger

_TINY = np.finfo(np.float64).tiny


class Ratio(Estimator):
    """The self-normalised ratio for each baseline, averaged over the baselines.

    If every weight of a feature underflows, so that Z[i] = 0, its value is the undivided phi[i], as the paper says. Its
    error is then unknown.
    """

    name = "ratio"
    method: ClassVar[str] = "ratio (Algorithm 1)"
    page_formula: ClassVar[str | None] = "ratio"
    bound: ClassVar[str | None] = "paper"

    def estimates(self, ledgers: Sequence[Ledger], designs: Sequence[Design]) -> tuple[Estimate, ...]:
        return tuple(self._estimate(ledger, design) for ledger, design in zip(ledgers, designs, strict=True))

    def _estimate(self, ledger: Ledger, design: Design) -> Estimate:
        """phi of Algorithm 1. The departures are those of the linearised ratio."""
        values = np.zeros(ledger.n_features)
        departures = np.zeros((ledger.n_replicates, ledger.n_features))
        parts = []
        for number, share in enumerate(design.baseline_weights):
            part = ledger.take((ledger.baseline == number) & (ledger.owner >= 0))
            value, departure, rays = _one_baseline(
                part, design.kernel, design.squared_distance[number], ledger.n_replicates
            )
            values += share * value
            departures += share * departure
            parts.append(share * rays)
        return Estimate(values, departures, self.method, carriers=carriers(np.concatenate(parts)))

    def total_of_values(self, ledger: Ledger, design: Design) -> Estimate:
        return WeightedRays().total_of_values(ledger, design)

    def effective_rays(self, ledger: AnyLedger, design: Design) -> Array:
        return effective_rays(_kernel_weights(ledger.require_rows("Counting effective rays"), design))

    def shares(self, ledger: Ledger, design: Design) -> Array:
        weights = _kernel_weights(ledger, design) * (ledger.replicate >= 0)[:, None]
        shares = np.zeros_like(weights)
        for number, share in enumerate(design.baseline_weights):
            drawn = ledger.baseline == number
            total = weights[drawn].sum(0)
            shares[drawn] = share * weights[drawn] / np.where(total == 0, 1.0, total)
        return shares

    def serving(self, ledger: Ledger) -> Array:
        return np.asarray(_owned(ledger)[ledger.replicate >= 0].sum(0))


class GivenRatio(Ratio):
    """The same ratio over orders that the user gave. They were not drawn at random, so the errors are unknown."""

    name = "ratio of given orders"
    method = "ratio (Algorithm 1) over given orders"
    page_formula = None  # the page would compute errors from the replicates
    bound = None
    no_certificate = (
        "The orders of this plan were given, not drawn at random, so no certificate holds for them; explain with "
        "plans.permutation(n_permutations=...), which draws its orders."
    )

    def _estimate(self, ledger: Ledger, design: Design) -> Estimate:
        return _without_error(super()._estimate(ledger, design))

    def total_of_values(self, ledger: Ledger, design: Design) -> Estimate:
        return _without_error(super().total_of_values(ledger, design))


def _without_error(estimate: Estimate) -> Estimate:
    return estimate.unknown_where(np.ones(len(estimate.values), dtype=bool))


def _owned(ledger: Ledger) -> Masks:
    """Which feature each ray was drawn for, (n_rays, n_features)."""
    return np.asarray(ledger.owner[:, None] == np.arange(ledger.n_features))


def _weights(ledger: Ledger, own: Masks, kernel: Kernel, squared_distance: Array) -> Array:
    """pi(S) of the predecessors of each ray, (n_rays,). A weight below the least normal number counts as zero."""
    weights = np.exp(kernel.log_weight(ledger.masks & ~own, squared_distance))
    return np.where(weights < _TINY, 0.0, weights)


def _kernel_weights(ledger: Ledger, design: Design) -> Array:
    """pi(S) of every ray for the feature for which it was drawn, zero for the others, (n_rays, n_features)."""
    own = _owned(ledger)
    weights = np.stack([_weights(ledger, own, design.kernel, row) for row in design.squared_distance])
    return np.asarray(own * weights[ledger.baseline, np.arange(ledger.n_rays)][:, None])


def _one_baseline(
    ledger: Ledger, kernel: Kernel, squared_distance: Array, n_replicates: int
) -> tuple[Array, Array, Array]:
    """The values, the departures of the replicates, and what every ray adds to them."""
    own = _owned(ledger)
    weight = own * _weights(ledger, own, kernel, squared_distance)[:, None]
    numerator, normaliser = per_replicate(ledger, weight * ledger.rays), per_replicate(ledger, weight)
    total = normaliser.sum(0)
    empty = total == 0
    if empty.any():
        warnings.warn(
            f"The kernel underflowed to zero on every coalition drawn for features {np.flatnonzero(empty).tolist()}: "
            f"their values are the undivided sums (Algorithm 1's rule for Z = 0), and their errors are unknown; use a "
            f"larger sigma or distance='relative'.",
            stacklevel=2,
        )
    divisor = np.where(empty, 1.0, total)
    value = numerator.sum(0) / divisor
    departures = (numerator - value * normaliser) / (divisor / n_replicates)
    return value, np.where(empty, np.nan, departures), weight * (ledger.rays - value) / divisor
