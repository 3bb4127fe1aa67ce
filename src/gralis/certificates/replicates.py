"""|phi_hat_i - phi_i| <= c stderr_i, where c comes from the joint behaviour of the replicates (max-t).

This is the narrowest certificate. With random nodes each replicate is unbiased, whatever the surrogate learnt from the
other replicates. The replicates are nearly independent, so their mean is asymptotically normal. The kind is therefore
`asymptotic`.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gralis.certificates.certificate import Certificate, Checksum
from gralis.certificates.simultaneous import half_widths, single_half_widths
from gralis.estimators import Design, Estimate
from gralis.ledger import AnyLedger


def certificate(
    estimate: Estimate,
    ledger: AnyLedger,
    design: Design,
    difference: float,
    delta: float,
    price: float,
) -> Certificate:
    """The certificate for all features together at delta. `price` divides delta if the run looked at its errors."""
    level = 1 - delta / price
    quadrature = np.zeros(len(estimate.values)) if estimate.margin is None else estimate.margin
    sampling = half_widths(replace(estimate, margin=None, rounding=None), level)
    together = estimate.combined(np.ones((1, len(estimate.values))))
    aggregate = float(single_half_widths(together, level)[0])
    n = len(estimate.departures)
    sampled = estimate.sampling_error.any()  # NaN, an unknown error, counts too
    ground = design.estimator.evidence(n) if sampled else design.estimator.without_sampling
    return Certificate(
        "replicates",
        "asymptotic",
        delta,
        sampling,
        quadrature,
        aggregate,
        difference,
        {"n_replicates": n, "price": price, "stderr": estimate.stderr},
        ground if price == 1 else f"{ground}, with delta / {price:.3g} because the run looked at its errors to stop",
        None if ledger.kept_rows is None else Checksum.of(ledger.kept_rows),
        0.0 if estimate.rounding is None else estimate.rounding,
    )
