"""The paper's bounds for Algorithm 1, as printed: Theorem 3, the ratio corollary and the aggregate corollary.

    |N_hat_i - N_i|    <= B_N / sqrt(m d) + E_quad                                                     (Theorem 3)
    |phi_hat_i - phi_i| <= (B_N / sqrt(m d/2) + E_quad) / pi_min + B_N B_Z / (pi_min^2 sqrt(m d/2))    (ratio)
    all features together, and their sum: d = delta / n, and the sum of the right-hand sides           (aggregate)

m counts an antithetic pair once. E_quad_i is |x_i - x'_i| ||x - x'||_1^2 sup|D3 F| / (24 k^2) for midpoints and
|x_i - x'_i| ||x - x'||_1 sup|D2 F| / (2 k) for the endpoint rule. If the derivatives come from a calibration, the
largest second (first) difference between neighbouring nodes replaces k^-2 (k^-1) times the derivative along the ray.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gralis.arrays import Array
from gralis.certificates.calibration import Calibration
from gralis.certificates.certificate import Certificate, Checksum
from gralis.errors import GralisError, bad
from gralis.kernels import Gaussian, Kernel, SizeKernel, Uniform
from gralis.laws.law import all_masks
from gralis.laws.table import MOST_FEATURES
from gralis.ledger import Ledger


@dataclass(frozen=True)
class Smoothness:
    """Bounds on the derivatives of F over the box between x' and x, if the user knows them.

    Parameters
    ----------
    second : float, optional
        The largest entry of the second derivative in magnitude; Riemann sums need it.
    third : float, optional
        The largest entry of the third derivative in magnitude; the midpoint rule needs it.
    """

    second: float | None = None
    third: float | None = None


def numerator_bound(b_n: Array, e_quad: Array, m: int, delta: float) -> Array:
    """B / sqrt(m delta) + E_quad: Theorem 3, for the unnormalised accumulator of one feature."""
    return np.asarray(b_n / np.sqrt(m * delta) + e_quad)


def ratio_bound(b_n: Array, b_z: Array, pi_min: Array, e_quad: Array, m: int, delta: float) -> Array:
    """The ratio corollary: a bound for the output of Algorithm 1, one feature at a time.

    >>> ratio_bound(np.array([2.0]), np.array([1.0]), np.array([0.5]), np.array([0.1]), 200, 0.04).tolist()
    [6.2]
    """
    chebyshev = 1 / np.sqrt(m * delta / 2)
    return np.asarray((b_n * chebyshev + e_quad) / pi_min + b_n * b_z * chebyshev / pi_min**2)


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
    n, m = ledger.n_features, ledger.n_replicates
    k = int(ledger.nodes_per_ray.max())
    with np.errstate(under="ignore"):
        pi_min, pi_max = (np.exp(end) for end in extremes(kernel, squared_distance))
    if (pi_min == 0).any():
        raise GralisError(
            "certificate(method='paper') divides by pi_min, the least kernel weight, which underflows to zero here; "
            "use a larger sigma, or distance='relative'."
        )
    if bound is None:
        b_n, calibrated = _seen(ledger, kernel, squared_distance), True
    else:
        b_n, calibrated = pi_max * bound[0], bound[1]
    e_quad, quadrature_known = _quadrature(rule, k, absolute_distance, calibration, smoothness)
    stochastic = ratio_bound(b_n, pi_max, pi_min, np.zeros(n), m, delta / n)
    quadrature = e_quad / pi_min
    total = stochastic + np.nan_to_num(quadrature)
    constants = {
        "B_N": b_n,
        "B_Z": pi_max,
        "pi_min": pi_min,
        "E_quad": e_quad,
        "m": m,
        "k": k,
        "numerator": numerator_bound(b_n, e_quad, m, delta / n),  # Theorem 3
    }
    guaranteed = not calibrated and quadrature_known
    return Certificate(
        "paper",
        "guaranteed" if guaranteed else "calibrated",
        delta,
        stochastic,
        quadrature,
        float(total.sum()),
        difference,
        constants,
        f"Chebyshev's inequality (Theorem 3 and its corollaries as printed) with m = {m}, k = {k}",
        Checksum.of(ledger),
    )


def extremes(kernel: Kernel, squared_distance: Array) -> tuple[Array, Array]:
    """The logarithms of the least and the largest pi(S) over all S without feature i, for every i.

    >>> low, high = extremes(Gaussian(1.0, "euclidean"), np.array([2.0, 4.0]))
    >>> low.tolist(), high.tolist()
    ([-2.0, -1.0], [0.0, 0.0])
    """
    n = len(squared_distance)
    if isinstance(kernel, Gaussian):
        log_p = kernel.log_p(squared_distance)
        return log_p.sum() - log_p, np.zeros(n)
    if isinstance(kernel, Uniform | SizeKernel):
        nested = np.tri(n, n, -1, dtype=bool)  # one coalition of every size 0 .. n - 1
        weights = kernel.log_weight(nested, squared_distance)
        return np.full(n, weights.min()), np.full(n, weights.max())
    if n > MOST_FEATURES:
        raise GralisError(
            f"certificate(method='paper') needs the least weight of the kernel; for a function of masks it takes "
            f"enumeration, up to n_features = {MOST_FEATURES}; here n_features = {n}."
        )
    masks = np.concatenate([np.zeros((1, n), dtype=bool), all_masks(n)[:-1]])
    weights = np.where(masks, np.nan, kernel.log_weight(masks, squared_distance)[:, None])
    return np.nanmin(weights, axis=0), np.nanmax(weights, axis=0)


def _seen(ledger: Ledger, kernel: Kernel, squared_distance: Array) -> Array:
    """max of pi(S) |(x_i - x'_i) dF/dx_i| over the points on the rays that were drawn for feature i."""
    own = ledger.owner[:, None] == np.arange(ledger.n_features)
    weight = np.exp(kernel.log_weight(ledger.masks & ~own, squared_distance))
    rows = np.abs(ledger.gradient) * weight[ledger.ray, None]
    return np.asarray(np.where(own[ledger.ray], rows, 0.0).max(0))


def _quadrature(
    rule: str, k: int, distance: Array, calibration: Calibration, smoothness: Smoothness
) -> tuple[Array, bool]:
    """E_quad of every feature, and whether it is a bound; NaN if there is neither a bound nor a calibration."""
    if rule == "random":
        return np.zeros_like(distance), True
    if rule == "midpoint":
        if smoothness.third is not None:
            return distance * distance.sum() ** 2 * smoothness.third / (24 * k**2), True
        return calibration.second_difference / 24, False
    if rule == "riemann":
        if smoothness.second is not None:
            return distance * distance.sum() * smoothness.second / (2 * k), True
        return calibration.first_difference / 2, False
    raise bad("quadrature", "certificate(method='paper')", "'midpoint', 'riemann' or 'random'", repr(rule))
