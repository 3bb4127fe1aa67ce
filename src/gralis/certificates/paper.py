"""The paper's bounds for Algorithm 1, as printed: Theorem 3, the ratio corollary and the aggregate corollary.

    |N_hat_i - N_i|    <= B_N / sqrt(m d) + E_quad                                                     (Theorem 3)
    |phi_hat_i - phi_i| <= (B_N / sqrt(m d/2) + E_quad) / pi_min + B_N B_Z / (pi_min^2 sqrt(m d/2))    (ratio)
    all features together, and their sum: d = delta / n, and the sum of the right-hand sides           (aggregate)

m counts an antithetic pair once. E_quad_i is |x_i - x'_i| ||x - x'||_1^2 sup|D3 F| / (24 k^2) for midpoints and
|x_i - x'_i| ||x - x'||_1 sup|D2 F| / (2 k) for the endpoint rule. If the derivatives come from a calibration, the
largest second (first) difference between neighbouring nodes replaces k^-2 (k^-1) times the derivative along the ray.
"""

from __future__ import annotations

import numpy as np

from gralis.arrays import Array
from gralis.certificates.bounds import Smoothness, kernel_range, numerator_bound, quadrature_bound, ratio_bound
from gralis.certificates.calibration import Calibration
from gralis.certificates.certificate import Certificate, Checksum, Kind
from gralis.errors import GralisError
from gralis.kernels import Kernel
from gralis.ledger import Ledger


def certificate(
    ledger: Ledger,
    kernel: Kernel,
    squared_distance: Array,
    absolute_distance: Array,
    rule: str,
    difference: float,
    delta: float,
    bound: tuple[Array, bool] | None,
    calibration: Calibration,
    smoothness: Smoothness,
) -> Certificate:
    """The certificate of the paper, with every feature at delta / n.

    `bound` holds a bound on |(x_i - x'_i) dF/dx_i| for every feature, and whether it comes from a calibration.
    """
    m, k = ledger.n_replicates, int(ledger.nodes_per_ray.max())
    pi_min, pi_max = kernel_range(kernel, squared_distance)
    if (pi_min == 0).any():
        raise GralisError(
            "certificate(method='paper') divides by pi_min, the least kernel weight, which underflows to zero here; "
            "use a larger sigma, or distance='relative'."
        )
    if bound is None:
        b_n, calibrated = _seen(ledger, kernel, squared_distance), True
    else:
        b_n, calibrated = pi_max * bound[0], bound[1]
    e_quad = quadrature_bound(rule, k, absolute_distance, smoothness)
    known = not calibrated and e_quad is not None
    if e_quad is None:
        e_quad = calibration.second_difference / 24 if rule == "midpoint" else calibration.first_difference / 2
    kind: Kind = "guaranteed" if known else "calibrated"
    return of_constants(b_n, pi_max, pi_min, e_quad, m, k, delta, kind, difference, Checksum.of(ledger))


def of_constants(
    b_n: Array,
    b_z: Array,
    pi_min: Array,
    e_quad: Array,
    m: int,
    k: int,
    delta: float,
    kind: Kind,
    difference: float,
    checksum: Checksum | None = None,
) -> Certificate:
    """The certificate that follows from the constants alone, with every feature at delta / n.

    It needs no ledger, so it also serves before the run. E_quad is NaN where it is not known.
    """
    n, each = len(b_n), delta / len(b_n)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # the bound is infinite if pi_min underflows
        stochastic = ratio_bound(b_n, b_z, pi_min, np.zeros(n), m, each)
        stochastic = np.where(b_n == 0, 0.0, stochastic)
        quadrature = np.where(e_quad == 0, 0.0, e_quad / pi_min)
    constants = {
        "B_N": b_n,
        "B_Z": b_z,
        "pi_min": pi_min,
        "E_quad": e_quad,
        "m": m,
        "k": k,
        "numerator": numerator_bound(b_n, e_quad, m, each),  # Theorem 3
    }
    return Certificate(
        "paper",
        kind,
        delta,
        stochastic,
        quadrature,
        float((stochastic + np.nan_to_num(quadrature, posinf=np.inf)).sum()),
        difference,
        constants,
        f"Chebyshev's inequality (Theorem 3 and its corollaries as printed) with m = {m}, k = {k}",
        checksum,
    )


def _seen(ledger: Ledger, kernel: Kernel, squared_distance: Array) -> Array:
    """max of pi(S) |(x_i - x'_i) dF/dx_i| over the points on the rays that were drawn for feature i."""
    own = ledger.owner[:, None] == np.arange(ledger.n_features)
    weight = np.exp(kernel.log_weight(ledger.masks & ~own, squared_distance))
    rows = np.abs(ledger.gradient) * weight[ledger.ray, None]
    return np.asarray(np.where(own[ledger.ray], rows, 0.0).max(0))
