"""|phi_hat_i - phi_i| <= c stderr_i, c from the joint behaviour of the replicates (max-t): the sharp certificate.

Replicates are independent and each is unbiased for random nodes, whatever the surrogate learnt from the others; so
their mean is asymptotically normal, and the kind is `asymptotic`.
"""

from __future__ import annotations

import numpy as np

from gralis.arrays import Array
from gralis.certificates.certificate import Certificate, Checksum
from gralis.certificates.simultaneous import half_widths, single_half_widths
from gralis.estimators import Estimate, importance, shapley
from gralis.kernels import Kernel
from gralis.ledger import FoldedLedger, Ledger


def certificate(
    estimate: Estimate, ledger: Ledger | FoldedLedger, quadrature: Array, difference: float, delta: float, price: float
) -> Certificate:
    """All features together at delta; `price` is what the look at which the run stopped costs."""
    level = 1 - delta / price
    sampling = half_widths(estimate, level)
    together = estimate.combined(np.ones((1, len(estimate.values))))
    aggregate = float(single_half_widths(together, level)[0] + np.nan_to_num(quadrature).sum())
    n = len(estimate.departures)
    ground = f"the max-t quantile of {n} replicates"
    if estimate.exact:
        ground = "exact enumeration of all coalitions"
    elif estimate.method == shapley.METHOD:
        ground = "the spread of the games that the coalitions seen make likely"
    return Certificate(
        "replicates",
        "asymptotic",
        delta,
        sampling,
        quadrature,
        aggregate,
        difference,
        {"n_replicates": n, "price": price, "stderr": estimate.stderr},
        ground if price == 1 else f"{ground}, at the price of {price:.3g} for looking before stopping",
        Checksum.of(ledger) if isinstance(ledger, Ledger) else None,
    )


def quadrature_error(
    ledger: Ledger | FoldedLedger, rule: str | None, kernel: Kernel, squared_distance: Array, weights: Array
) -> Array:
    """0 for random nodes (no bias, their noise is in the replicates) and where there are no nodes at all.

    For fixed nodes the whole checksum of a ray, |sum_i ray_i - v(T)|, is laid at the door of each member, averaged
    over the rays with the weights of phi_i: not a bound, but what the rows themselves can show. NaN without values.
    """
    n = squared_distance.shape[1]
    if rule in (None, "random"):
        return np.zeros(n)
    if isinstance(ledger, FoldedLedger) or not np.isfinite(ledger.value[ledger.nodes_per_ray > 0]).all():
        return np.full(n, np.nan)
    known = ledger.nodes_per_ray > 0
    check = np.abs(np.where(known, ledger.checksum, 0.0))
    own = ledger.owner[:, None] == np.arange(n)
    if own.any():  # Algorithm 1: a ray counts for the feature it was drawn for
        shares = np.zeros(own.shape)
        for number, of_baseline in enumerate(squared_distance):
            rows = ledger.baseline == number
            log = kernel.log_weight((ledger.masks & ~own)[rows], of_baseline)
            shares[rows] = own[rows] * np.exp(log)[:, None]
    else:
        shares = importance(ledger, [kernel.bind(row) for row in squared_distance], weights) * known[:, None]
    total = shares.sum(0)
    return np.asarray(np.divide(check @ shares, total, out=np.zeros(n), where=total > 0))
