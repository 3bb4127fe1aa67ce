"""|phi_hat_i - phi_i| <= c stderr_i, where c comes from the joint behaviour of the replicates (max-t).

This is the sharp certificate. With random nodes each replicate is unbiased, whatever the surrogate learnt from the
other replicates. The replicates are independent, so their mean is asymptotically normal. The kind is therefore
`asymptotic`.
"""

from __future__ import annotations

import numpy as np

from gralis.arrays import Array
from gralis.certificates.certificate import Certificate, Checksum
from gralis.certificates.simultaneous import half_widths, single_half_widths
from gralis.estimators import Design, Estimate
from gralis.estimators.ray_weights import importance
from gralis.ledger import AnyLedger


def certificate(
    estimate: Estimate,
    ledger: AnyLedger,
    design: Design,
    rule: str | None,
    difference: float,
    delta: float,
    price: float,
) -> Certificate:
    """The certificate for all features together at delta. `price` is the cost of the look at which the run stopped."""
    level = 1 - delta / price
    quadrature = quadrature_error(ledger, rule, design)
    sampling = half_widths(estimate, level)
    together = estimate.combined(np.ones((1, len(estimate.values))))
    aggregate = float(single_half_widths(together, level)[0] + np.nan_to_num(quadrature).sum())
    n = len(estimate.departures)
    ground = "exact enumeration of all coalitions" if estimate.exact else design.estimator.evidence(n)
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
        None if ledger.kept_rows is None else Checksum.of(ledger.kept_rows),
    )


def quadrature_error(ledger: AnyLedger, rule: str | None, design: Design) -> Array:
    """The mean of |sum_i ray_i - v(T)| over the rays, with the weights of phi_i, for fixed nodes.

    Each member of a ray is charged with the whole checksum of the ray. The result is not a bound, but it is what the
    rows can show. It is NaN if coalition values are missing. It is 0 for random nodes, which have no bias and whose
    noise is already in the replicates, and for plans without nodes.
    """
    n, rows = design.n_features, ledger.kept_rows
    if rule in (None, "random"):
        return np.zeros(n)
    if rows is None or not np.isfinite(rows.value[rows.nodes_per_ray > 0]).all():
        return np.full(n, np.nan)
    known = rows.nodes_per_ray > 0
    check = np.abs(np.where(known, rows.checksum, 0.0))
    own = rows.owner[:, None] == np.arange(n)
    if own.any():  # in Algorithm 1 a ray counts only for the feature for which it was drawn
        shares = np.zeros(own.shape)
        for number, of_baseline in enumerate(design.squared_distance):
            drawn = rows.baseline == number
            log = design.kernel.log_weight((rows.masks & ~own)[drawn], of_baseline)
            shares[drawn] = own[drawn] * np.exp(log)[:, None]
    else:
        shares = importance(rows, design.laws, design.baseline_weights) * known[:, None]
    total = shares.sum(0)
    return np.asarray(np.divide(check @ shares, total, out=np.zeros(n), where=total > 0))
