"""phi_hat = mean over replicates of sum W_i(T) ray_i(T): unbiased, no adjustment; exact on an exhaustive ledger."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gralis.arrays import Array
from gralis.estimators.estimate import Estimate
from gralis.estimators.importance import importance
from gralis.laws import Law
from gralis.ledger import Ledger


def estimate(ledger: Ledger, laws: Sequence[Law], baseline_weights: Array, *, exact: bool = False) -> Estimate:
    """The weighted sum of each replicate's rays."""
    contributions = importance(ledger, laws, baseline_weights) * ledger.rays
    return Estimate.mean(per_replicate(ledger, contributions), "weighted rays", exact)


def total_of_values(ledger: Ledger, laws: Sequence[Law], baseline_weights: Array, *, exact: bool = False) -> Estimate:
    """sum_T v(T) / (|T| C(n, |T|)), for the laws of the uniform kernel: the weighted sum of each replicate's values."""
    rate = importance(ledger, laws, baseline_weights).max(1)  # all members of T have one weight
    return Estimate.mean(per_replicate(ledger, (rate * ledger.value)[:, None]), "weighted values", exact)


def per_replicate(ledger: Ledger, rows: Array) -> Array:
    """Sum rows (n_rays, ...) over the rays of each replicate; pilot and census are left out."""
    counted = ledger.replicate >= 0
    total = np.zeros((ledger.n_replicates, *rows.shape[1:]))
    np.add.at(total, ledger.replicate[counted], rows[counted])
    return total
