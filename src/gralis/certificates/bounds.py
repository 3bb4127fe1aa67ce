"""The bounds as functions of their constants: the paper's, and Bernstein's. They serve before a run and after it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gralis.arrays import Array, describe, length, real_numbers
from gralis.checks import one_of, positive, probability, whole
from gralis.errors import GralisError, bad
from gralis.kernels import Gaussian, Kernel, SizeKernel, Uniform, as_kernel
from gralis.laws.law import all_masks
from gralis.laws.table import MOST_FEATURES

__all__ = [
    "Smoothness",
    "aggregate_bound",
    "bernstein_bound",
    "empirical_bernstein_bound",
    "kernel_range",
    "numerator_bound",
    "quadrature_bound",
    "ratio_bound",
]


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


def _constants(owner: str, m: object, delta: object, **arrays: object) -> tuple[list[Array], float, float]:
    """The checked constants of a bound: arrays that fit each other, the number of draws, and a probability."""
    checked = [real_numbers(value, name, owner, "a real number or an array of them") for name, value in arrays.items()]
    try:
        np.broadcast_shapes(*(array.shape for array in checked))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in zip(arrays, checked, strict=True))
        raise GralisError(f"The arrays of {owner} must have one shape, or be single numbers. Got {shapes}.") from None
    return checked, positive(m, "m", owner), probability(delta, "delta", owner)


def numerator_bound(b_n: Array, e_quad: Array, m: float, delta: float) -> Array:
    """B_N / sqrt(m delta) + E_quad: Theorem 3, for the unnormalised accumulator N_i of one feature.

    Parameters
    ----------
    b_n : array or float
        B_N: the largest |pi(S) (x_i - x'_i) dF/dx_i| over the coalitions and the points of their rays.
    e_quad : array or float
        E_quad: the error of the quadrature on a ray, as `quadrature_bound` gives it.
    m : int
        The number of independent permutations. An antithetic pair counts once.
    delta : float
        The probability with which the bound of one feature may fail.

    Returns
    -------
    array
        The bound of every feature.

    Examples
    --------
    >>> float(numerator_bound(2.0, 0.1, 400, 0.04))
    0.6
    """
    (b_n, e_quad), m, delta = _constants("numerator_bound", m, delta, b_n=b_n, e_quad=e_quad)
    return np.asarray(b_n / np.sqrt(m * delta) + e_quad)


def ratio_bound(b_n: Array, b_z: Array, pi_min: Array, e_quad: Array, m: float, delta: float) -> Array:
    """(B_N / sqrt(m d/2) + E_quad) / pi_min + B_N B_Z / (pi_min^2 sqrt(m d/2)): the paper's ratio corollary.

    It bounds the output phi[i] / Z[i] of Algorithm 1, one feature at a time.

    Parameters
    ----------
    b_n, e_quad, m, delta
        As for `numerator_bound`.
    b_z : array or float
        B_Z: the largest kernel weight pi(S) over the predecessor sets of the feature.
    pi_min : array or float
        The least kernel weight; `kernel_range` gives both.

    Returns
    -------
    array
        The bound of every feature.

    Examples
    --------
    >>> ratio_bound(np.array([2.0]), np.array([1.0]), np.array([0.5]), np.array([0.1]), 200, 0.04).tolist()
    [6.2]
    """
    given = {"b_n": b_n, "b_z": b_z, "pi_min": pi_min, "e_quad": e_quad}
    (b_n, b_z, pi_min, e_quad), m, delta = _constants("ratio_bound", m, delta, **given)
    chebyshev = 1 / np.sqrt(m * delta / 2)
    return np.asarray((b_n * chebyshev + e_quad) / pi_min + b_n * b_z * chebyshev / pi_min**2)


def aggregate_bound(b_n: Array, b_z: Array, pi_min: Array, e_quad: Array, m: float, delta: float) -> float:
    """sum_i epsilon_i(delta / n): the paper's aggregate corollary, a bound on |R_obs - R_pop| by a union bound.

    Parameters
    ----------
    b_n : array of shape (n_features,)
        B_N of every feature.
    b_z, pi_min, e_quad : array or float
        As for `ratio_bound`.
    m : int
        The number of independent permutations.
    delta : float
        The probability with which any of the features, and therefore the sum, may be outside.

    Returns
    -------
    float
        The bound on |sum phi_hat - sum phi|.

    Examples
    --------
    >>> aggregate_bound(np.array([2.0, 2.0]), 1.0, 0.5, 0.1, 200, 0.08)
    12.4
    """
    probability(delta, "delta", "aggregate_bound")
    if not length(b_n):
        raise bad("b_n", "aggregate_bound", "an array with one number per feature", describe(b_n))
    return float(ratio_bound(b_n, b_z, pi_min, e_quad, m, delta / len(b_n)).sum())


def quadrature_bound(rule: str, k: int, absolute_distance: Array, smoothness: Smoothness) -> Array | None:
    """|x_i - x'_i| ||x - x'||_1^2 sup|D3 F| / (24 k^2) for midpoints: the quadrature error E_quad of every feature.

    For the endpoint rule it is |x_i - x'_i| ||x - x'||_1 sup|D2 F| / (2 k), and 0 for random nodes, which are unbiased.

    Parameters
    ----------
    rule : {"midpoint", "riemann", "random"}
        The rule that places the nodes.
    k : int
        The number of nodes on a ray.
    absolute_distance : array of shape (n_features,)
        |x_i - x'_i|, summed over the coordinates of a feature.
    smoothness : Smoothness
        The derivatives of F.

    Returns
    -------
    array of shape (n_features,), or None
        The bounds; None if the derivative that the rule needs is not known.

    Examples
    --------
    >>> quadrature_bound("midpoint", 10, np.array([1.0, 2.0]), Smoothness(third=8.0)).round(3).tolist()
    [0.03, 0.06]
    """
    one_of(rule, ("midpoint", "riemann", "random"), "quadrature", "certificate(method='paper')")
    k = whole(k, "k", 1, "quadrature_bound", most=10**9)
    absolute_distance = real_numbers(absolute_distance, "absolute_distance", "quadrature_bound", kinds="iuf")
    if not isinstance(smoothness, Smoothness):
        raise bad("smoothness", "quadrature_bound", "a Smoothness", describe(smoothness))
    if rule == "random":
        return np.zeros_like(absolute_distance)
    if rule == "midpoint":
        if smoothness.third is None:
            return None
        return np.asarray(absolute_distance * absolute_distance.sum() ** 2 * smoothness.third / (24 * k**2))
    if smoothness.second is None:
        return None
    return np.asarray(absolute_distance * absolute_distance.sum() * smoothness.second / (2 * k))


def kernel_range(kernel: Kernel, squared_distance: Array) -> tuple[Array, Array]:
    """pi_min and pi_max: the least and the largest pi(S) over all S without feature i, for every i.

    Parameters
    ----------
    kernel : Kernel
        A Gaussian kernel or a kernel of the size; any other one for up to 16 features.
    squared_distance : array of shape (n_features,)
        The squared distance of every feature from its baseline.

    Returns
    -------
    tuple of two arrays of shape (n_features,)
        The least weight, which is 0 if it underflows, and the largest.

    Examples
    --------
    >>> low, high = kernel_range(Gaussian(1.0, "euclidean"), np.array([2.0, 4.0]))
    >>> np.log(low).tolist(), high.tolist()
    ([-2.0, -1.0], [1.0, 1.0])
    """
    kernel = as_kernel(kernel)
    squared_distance = real_numbers(squared_distance, "squared_distance", "kernel_range", kinds="iuf")
    if squared_distance.ndim != 1 or not squared_distance.size:
        raise bad("squared_distance", "kernel_range", "one number per feature", describe(squared_distance))
    n = len(squared_distance)
    if isinstance(kernel, Gaussian):
        log_p = kernel.log_p(squared_distance)
        before = np.concatenate([[0.0], np.cumsum(log_p)[:-1]])
        after = np.concatenate([np.cumsum(log_p[::-1])[-2::-1], [0.0]])
        return np.exp(before + after), np.ones(n)
    if isinstance(kernel, Uniform | SizeKernel):
        weights = np.ones(n) if isinstance(kernel, Uniform) else kernel.weights(n)  # of the sizes 0 .. n - 1
        return np.full(n, weights.min()), np.full(n, weights.max())
    if n > MOST_FEATURES:
        raise GralisError(
            f"certificate(method='paper') needs the least weight of the kernel; for a function of masks it takes "
            f"enumeration, up to n_features = {MOST_FEATURES}; here n_features = {n}."
        )
    masks = np.concatenate([np.zeros((1, n), dtype=bool), all_masks(n)[:-1]])
    weights = np.where(masks, np.nan, np.exp(kernel.log_weight(masks, squared_distance))[:, None])
    return np.nanmin(weights, axis=0), np.nanmax(weights, axis=0)


def bernstein_bound(variance: Array, reach: Array, m: float, delta: float) -> Array:
    """sqrt(2 V ln(2/d) / m) + 2 R ln(2/d) / (3 m): Bernstein's inequality for a mean of m draws of variance <= V.

    It holds before any draw is made. For one ray of the law q, Y = ray_i 1[i in T] / q(i in T) has the mean phi_i,
    |Y| <= R = B / q(i in T) and a variance of at most V = B^2 / q(i in T).

    Parameters
    ----------
    variance : array or float
        V: a bound on the variance of one draw.
    reach : array or float
        R: a bound on the magnitude of one draw.
    m : int
        The number of independent draws.
    delta : float
        The probability with which the bound of one feature may fail.

    Returns
    -------
    array
        The bound of every feature.

    Examples
    --------
    >>> float(bernstein_bound(4.0, 3.0, 100, 0.05).round(4))
    0.617
    """
    (variance, reach), m, delta = _constants("bernstein_bound", m, delta, variance=variance, reach=reach)
    log = np.log(2 / delta)
    return np.asarray(np.sqrt(2 * variance * log / m) + 2 * reach * log / (3 * m))


def empirical_bernstein_bound(variance: Array, reach: Array, m: float, delta: float) -> Array:
    """sqrt(2 V ln(4/d) / m) + 14 R ln(4/d) / (3 (m - 1)): Maurer and Pontil's bound, with the variance of the sample.

    Parameters
    ----------
    variance : array or float
        V: the sample variance of the m draws, with the divisor m - 1.
    reach, m, delta
        As for `bernstein_bound`.

    Returns
    -------
    array
        The bound of every feature, on both sides.

    Examples
    --------
    >>> float(empirical_bernstein_bound(4.0, 3.0, 100, 0.05).round(4))
    1.2118
    """
    (variance, reach), m, delta = _constants("empirical_bernstein_bound", m, delta, variance=variance, reach=reach)
    log = np.log(4 / delta)
    return np.asarray(np.sqrt(2 * variance * log / m) + 7 * 2 * reach * log / (3 * (m - 1)))
