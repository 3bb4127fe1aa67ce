"""The bounds as functions of their constants, and what they promise before a run, against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from math import comb, log, sqrt
from typing import Any

import numpy as np

from gralis import certificates
from gralis.certificates import Smoothness, before
from gralis.kernels import Gaussian, Uniform
from gralis.paper.claim_row import ClaimRow, collect, equal, near
from gralis.paper.library_bounds import KERNEL, N_FEATURES, weight_of
from gralis.paper.rational import subsets, without

#: B_N, B_Z, pi_min and E_quad; with m delta / 2 = 100 no root has to be rounded.
_B, _Z, _LEAST, _QUAD = Fraction(7, 3), Fraction(4, 5), Fraction(2, 7), Fraction(1, 11)
_M, _DELTA, _ROOT = 2500, Fraction(2, 25), 10


def rows() -> list[ClaimRow]:
    return collect(_formulas, _kernel_range, _beforehand)


def _formulas() -> list[ClaimRow]:
    b, z, least, quad = (np.asarray(float(part)) for part in (_B, _Z, _LEAST, _QUAD))
    ratio = (_B / _ROOT + _QUAD) / _LEAST + _B * _Z / (_LEAST**2 * _ROOT)
    double = (2 * _B / _ROOT + _QUAD) / _LEAST + 2 * _B * _Z / (_LEAST**2 * _ROOT)
    distance, k = (Fraction(1), Fraction(2), Fraction(1, 2)), 7
    array, total = np.array(distance, dtype=float), sum(distance)
    v, r, m, d = 4.0, 3.0, 100, 0.05
    known = sqrt(2 * v * log(2 / d) / m) + 2 * r * log(2 / d) / (3 * m)
    seen = sqrt(2 * v * log(4 / d) / m) + 14 * r * log(4 / d) / (3 * (m - 1))
    variance, reach = np.asarray(v), np.asarray(r)
    return [
        near(
            "Theorem 3: B_N / sqrt(m delta) + E_quad",
            _B / _ROOT + _QUAD,
            lambda: float(certificates.numerator_bound(b, quad, _M, float(_DELTA / 2))),
            "certificates.numerator_bound",
        ),
        near(
            "the ratio corollary",
            ratio,
            lambda: float(certificates.ratio_bound(b, z, least, quad, _M, float(_DELTA))),
            "certificates.ratio_bound",
        ),
        near(
            "the aggregate corollary: each of two features at delta / 2",
            ratio + double,
            lambda: certificates.aggregate_bound(np.stack([b, 2 * b]), z, least, quad, _M, float(2 * _DELTA)),
            "certificates.aggregate_bound",
        ),
        near(
            "E_quad of midpoints",
            [d_i * total**2 * 6 / (24 * k**2) for d_i in distance],
            lambda: certificates.quadrature_bound("midpoint", k, array, Smoothness(third=6.0)),
            "certificates.quadrature_bound",
        ),
        near(
            "E_quad of Riemann sums",
            [d_i * total * 5 / (2 * k) for d_i in distance],
            lambda: certificates.quadrature_bound("riemann", k, array, Smoothness(second=5.0)),
            "certificates.quadrature_bound",
        ),
        near(
            "Bernstein",
            known,
            lambda: float(certificates.bernstein_bound(variance, reach, m, d)),
            "certificates.bernstein_bound",
        ),
        near(
            "empirical Bernstein",
            seen,
            lambda: float(certificates.empirical_bernstein_bound(variance, reach, m, d)),
            "certificates.empirical_bernstein_bound",
        ),
    ]


def _kernel_range() -> list[ClaimRow]:
    """pi_min and pi_max over all predecessor sets, one by one."""
    sigma, distance = 0.8, np.array([0.5, 2.0, 1.0, 0.25])

    def weight(s: frozenset[int]) -> float:
        return float(np.exp(-sum(distance[j] for j in s) / (2 * sigma**2)))

    least = [min(weight(s) for s in without(4, i)) for i in range(4)]
    found = certificates.kernel_range
    kernel = Gaussian(sigma, "euclidean")
    source = "certificates.kernel_range"
    return [
        near("pi_min of a Gaussian kernel", least, lambda: found(kernel, distance)[0], source),
        near("pi_max of a Gaussian kernel", np.ones(4), lambda: found(kernel, distance)[1], source),
        near("both of the uniform kernel", np.ones((2, 4)), lambda: np.array(found(Uniform(), distance)), source),
    ]


def _beforehand() -> list[ClaimRow]:
    """Three features at distance one, with pi(S) = exp(-|S| / (2 sigma^2)) by enumeration."""
    n, m, k, bound, third, delta = N_FEATURES, 40, 5, 4.0, 12.0, 0.1
    least = float(weight_of(frozenset(range(n - 1))))
    wide = 1 / sqrt(m * delta / n / 2)
    sampling, quadrature = bound * wide / least + bound * wide / least**2, 9 * third / (24 * k**2) / least
    q = {t: weight_of(t) / (len(t) * comb(n, len(t))) for t in subsets(range(n)) if t}
    inside = float(sum(p for t, p in q.items() if 0 in t) / sum(q.values()))
    logarithm = log(2 * n / delta)
    bernstein = sqrt(2 * bound**2 / inside * logarithm / m) + 2 * bound / inside * logarithm / (3 * m)

    def promised(**options: Any) -> Any:
        return before(
            bound,
            n,
            kernel=KERNEL,
            delta=delta,
            smoothness=Smoothness(third=third),
            squared_distance=np.ones(n),
            **options,
        )

    epsilon = 1.7
    source = "certificates.before"
    return [
        near("before: sampling half-widths", [sampling] * n, lambda: promised(m=m, k=k).paper.sampling, source),
        near("before: quadrature", [quadrature] * n, lambda: promised(m=m, k=k).paper.quadrature, source),
        near("before: the aggregate", n * (sampling + quadrature), lambda: promised(m=m, k=k).paper.aggregate, source),
        near("before: Bernstein", [bernstein] * n, lambda: promised(m=m, k=k).bernstein.half_widths, source),
        equal(
            "the m of an epsilon promises it, one draw less does not",
            [True, True, False, False],
            lambda: _promises(promised, promised(epsilon=epsilon), epsilon),
            source,
        ),
    ]


def _promises(promised: Any, found: Any, epsilon: float) -> list[bool]:
    """Whether the paper's and Bernstein's half-widths are within epsilon, with the m found and with one less."""

    def keeps(name: str, less: int) -> bool:
        constants = getattr(found, name).constants
        fewer = getattr(promised(m=constants["m"] - less, k=constants["k"]), name)
        return bool((fewer.half_widths <= epsilon).all())

    return [keeps(name, less) for less in (0, 1) for name in ("paper", "bernstein")]
