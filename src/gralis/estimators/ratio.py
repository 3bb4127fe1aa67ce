"""Algorithm 1's output: phi[i] / Z[i] = sum pi(S) ig_i / sum pi(S) over the rays drawn for feature i."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from gralis.arrays import Array, Masks
from gralis.estimators.design import Design, Estimator
from gralis.estimators.estimate import Estimate
from gralis.estimators.plain import WeightedRays, per_replicate
from gralis.estimators.ray_weights import effective_rays
from gralis.kernels import Kernel
from gralis.ledger import AnyLedger, Ledger


class Ratio(Estimator):
    """The self-normalised ratio for each baseline, averaged over the baselines."""

    name = "ratio"
    page_formula = "ratio"
    bound = "paper"

    def estimates(self, ledgers: Sequence[Ledger], designs: Sequence[Design]) -> tuple[Estimate, ...]:
        return tuple(self._estimate(ledger, design) for ledger, design in zip(ledgers, designs, strict=True))

    def _estimate(self, ledger: Ledger, design: Design) -> Estimate:
        """phi of Algorithm 1. The departures are those of the linearised ratio."""
        values = np.zeros(ledger.n_features)
        departures = np.zeros((ledger.n_replicates, ledger.n_features))
        for number, share in enumerate(design.baseline_weights):
            part = ledger.take((ledger.baseline == number) & (ledger.owner >= 0))
            value, departure = _one_baseline(part, design.kernel, design.squared_distance[number], ledger.n_replicates)
            values += share * value
            departures += share * departure
        return Estimate(values, departures, "ratio (Algorithm 1)")

    def total_of_values(self, ledger: Ledger, design: Design) -> Estimate:
        return WeightedRays().total_of_values(ledger, design)

    def effective_rays(self, ledger: AnyLedger, design: Design) -> Array:
        rows = ledger.require_rows("Counting effective rays")
        own = _owned(rows)
        log = [design.kernel.log_weight(rows.masks & ~own, row) for row in design.squared_distance]
        return effective_rays(np.asarray(own * np.exp(np.choose(rows.baseline, log))[:, None], dtype=np.float64))

    def serving(self, ledger: Ledger) -> Array:
        return np.asarray(_owned(ledger)[ledger.replicate >= 0].sum(0))


def _owned(ledger: Ledger) -> Masks:
    """Which feature each ray was drawn for, (n_rays, n_features)."""
    return np.asarray(ledger.owner[:, None] == np.arange(ledger.n_features))


def _one_baseline(ledger: Ledger, kernel: Kernel, squared_distance: Array, n_replicates: int) -> tuple[Array, Array]:
    own = _owned(ledger)
    weight = own.astype(np.float64) * np.exp(kernel.log_weight(ledger.masks & ~own, squared_distance))[:, None]
    numerator, normaliser = per_replicate(ledger, weight * ledger.rays), per_replicate(ledger, weight)
    total = normaliser.sum(0)
    if (total == 0).any():
        features = np.flatnonzero(total == 0).tolist()
        warnings.warn(
            f"The kernel underflowed to zero on every coalition drawn for features {features}: their values are the "
            f"undivided sums (Algorithm 1's rule for Z = 0); use a larger sigma or distance='relative'.",
            stacklevel=2,
        )
    divisor = np.where(total == 0, 1.0, total)
    value = numerator.sum(0) / divisor
    return value, (numerator - value * normaliser) / (divisor / n_replicates)
