"""Algorithm 1's output: phi[i] / Z[i] = sum pi(S) ig_i / sum pi(S) over the rays drawn for feature i."""

from __future__ import annotations

import warnings

import numpy as np

from gralis.arrays import Array
from gralis.estimators.estimate import Estimate
from gralis.estimators.plain import per_replicate
from gralis.kernels import Kernel
from gralis.ledger import Ledger


def estimate(ledger: Ledger, kernel: Kernel, squared_distance: Array, baseline_weights: Array) -> Estimate:
    """The self-normalised ratio, per baseline, then averaged; departures by linearising the ratio."""
    values = np.zeros(ledger.n_features)
    departures = np.zeros((ledger.n_replicates, ledger.n_features))
    for number, share in enumerate(baseline_weights):
        part = ledger.take((ledger.baseline == number) & (ledger.owner >= 0))
        value, departure = _one_baseline(part, kernel, squared_distance[number], ledger.n_replicates)
        values += share * value
        departures += share * departure
    return Estimate(values, departures, "ratio (Algorithm 1)")


def _one_baseline(ledger: Ledger, kernel: Kernel, squared_distance: Array, n_replicates: int) -> tuple[Array, Array]:
    own = ledger.owner[:, None] == np.arange(ledger.n_features)
    weight = own * np.exp(kernel.log_weight(ledger.masks & ~own, squared_distance))[:, None]
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
