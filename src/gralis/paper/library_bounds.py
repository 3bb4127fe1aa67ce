"""The library's certificates against their formulas, with every constant enumerated or computed here.

The function is the one of Appendix E, or a cubic polynomial where quadrature must make an error.
"""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import Any

import numpy as np

from gralis import plans
from gralis.api.explain import explain
from gralis.arrays import Array
from gralis.certificates import Smoothness, calibrate
from gralis.errors import GralisError
from gralis.kernels import Gaussian
from gralis.paper import rational
from gralis.paper.appendix_e import BASE, TOY, X
from gralis.paper.claim_row import ClaimRow, at_most, collect, equal, near
from gralis.paper.rational import Coalition, Polynomial, subsets, without
from gralis.results.explanation import Explanation

N_FEATURES, SIGMA, _DELTA = 3, 0.7, 0.1
KERNEL = Gaussian(SIGMA, "euclidean")
CUBIC = Polynomial({(3, 0, 0): Fraction(2), (1, 2, 0): Fraction(-3), (0, 1, 1): Fraction(4), (0, 0, 3): Fraction(1)})
_ONES = np.ones(N_FEATURES)


def rows() -> list[ClaimRow]:
    return collect(_constants, _checksum, _bernstein, _paper)


def weight_of(s: Coalition) -> Fraction:
    return Fraction(float(np.exp(-len(s) / (2 * SIGMA**2))))  # x - x' is 1 in every feature


def explained(F: Polynomial = TOY, **options: Any) -> Explanation:
    """The explanation of F at x = (1, 1, 1)."""
    found: Explanation = explain(F.of_rows, _ONES, **{"kernel": KERNEL, **options})
    return found


def gradients(F: Polynomial, nodes: list[Fraction]) -> Array:
    """x_i dF/dx_i at every node of the ray of every coalition, 0 outside it: (n_coalitions, n_nodes, n)."""
    table = []
    for t in subsets(range(N_FEATURES))[1:]:
        points = [[a if j in t else Fraction(0) for j in range(N_FEATURES)] for a in nodes]
        table.append([[float(F.derivative(i)(z)) if i in t else 0.0 for i in range(N_FEATURES)] for z in points])
    return np.array(table)


def _constants() -> list[ClaimRow]:
    """B, and the differences between neighbouring nodes, over all rays with four midpoints."""
    nodes = [Fraction(2 * k + 1, 8) for k in range(4)]
    g = gradients(CUBIC, nodes)
    slope = (2.0, -0.5, 3.0)
    run = explained(CUBIC, plan="exhaustive", budget=None, quadrature="midpoint", n_nodes=4)
    affine = Polynomial.multilinear(3, {(0,): 4, (1,): -1, (2,): 6})
    source = "Explanation.calibration"
    return [
        near(
            "calibrate: B of an affine function",
            np.abs(slope),
            lambda: calibrate(affine.of_rows, _ONES / 2, budget=64).slope,
            "certificates.calibrate",
        ),
        equal(
            "calibrate: as many points as the budget",
            64,
            lambda: calibrate(affine.of_rows, _ONES / 2, budget=64).n_points,
            "certificates.calibrate",
        ),
        near("B = max |x_i dF/dx_i| over the points", np.abs(g).max((0, 1)), lambda: run.calibration.slope, source),
        near(
            "largest first difference",
            np.abs(np.diff(g, axis=1)).max((0, 1)),
            lambda: run.calibration.first_difference,
            source,
        ),
        near(
            "largest second difference",
            np.abs(np.diff(g, n=2, axis=1)).max((0, 1)),
            lambda: run.calibration.second_difference,
            source,
        ),
    ]


def _checksum() -> list[ClaimRow]:
    """sum_i ray_i - v(T) with two midpoints, which are not enough for a cubic."""
    v = CUBIC.game(X, BASE)
    at_nodes = gradients(CUBIC, [Fraction(1, 4), Fraction(3, 4)])
    off = at_nodes.mean(1).sum(1) - [float(v[t]) for t in subsets(range(N_FEATURES))[1:]]
    run = explained(CUBIC, plan="exhaustive", budget=None, quadrature="midpoint", n_nodes=2)
    drawn = explained(CUBIC, plan=plans.permutation(24), budget=None, quadrature="midpoint", n_nodes=2)
    given = explained(CUBIC, plan=plans.permutation(orders=np.array([[0, 1, 2], [2, 1, 0]])), budget=None)

    def found() -> tuple[float, float, float]:
        check = run.certificate().checksum
        return (check.mean, check.rms, check.largest) if check else (np.nan,) * 3

    sets = subsets(range(N_FEATURES))[1:]
    # What two nodes show of their own error, and the checksum, which is charged to every member.
    shown = np.abs(at_nodes[:, 1] - at_nodes[:, 0]) / 4 + np.abs(off)[:, None]
    shares = np.array([[float(share(t, i)) * (len(t) > 1) for i in range(N_FEATURES)] for t in sets])
    return [
        near(
            "checksum: mean, rms, largest",
            (off.mean(), np.sqrt((off**2).mean()), np.abs(off).max()),
            found,
            "certificates.Checksum",
        ),
        near(
            "quadrature error: mean of what the nodes and |checksum| show under q_i, single features without",
            (shown * shares).sum(0),
            lambda: run.certificate().quadrature,
            "Explanation.certificate",
        ),
        near(
            "the same of Algorithm 1: weighted by pi over the drawn orders",
            _by_owner(drawn, dict(zip(sets, shown, strict=True))),
            lambda: drawn.certificate().quadrature,
            "Explanation.certificate",
        ),
        equal(
            "orders that were given have no certificate",
            "The orders of this plan were given, not drawn at random, so no certificate holds for them",
            lambda: _refusal(given).partition(";")[0],
            "Explanation.certificate",
        ),
    ]


def _by_owner(run: Explanation, errors: dict[Coalition, Array]) -> Array:
    """sum of pi(S) error_i(S with i) / sum of pi(S) over the rays that Algorithm 1 drew for feature i."""
    ledger = run.ledger.require_rows("The weights of rays")
    over, under = np.zeros(N_FEATURES), np.zeros(N_FEATURES)
    for mask, i in zip(ledger.masks, ledger.owner, strict=True):
        t = frozenset(np.flatnonzero(mask).tolist())
        weight = float(weight_of(t - {int(i)}))
        over[i] += weight * errors[t][i]
        under[i] += weight
    return np.asarray(over / under)


def _refusal(run: Explanation) -> str:
    """The sentence with which a certificate is refused."""
    try:
        return str(run.certificate())
    except GralisError as error:
        return str(error)


def share(t: Coalition, i: int) -> Fraction:
    """q(T | i in T)."""
    if i not in t:
        return Fraction(0)
    weight = {s: rational.shapley_weight(N_FEATURES, len(s)) * weight_of(s) for s in without(N_FEATURES, i)}
    return weight[t - {i}] / sum(weight.values(), Fraction(0))


def _bernstein() -> list[ClaimRow]:
    """Maurer and Pontil's bound from the rows of the ledger, with q(i in T) by enumeration."""
    bound = (6.0, 9.0, 3.0)  # of |x_i dF/dx_i| on the box: 2 + 4, 3 + 4 + 2, 1 + 2
    run = explained(plan="independent", budget=400)
    ledger, m = run.ledger.require_rows("Bernstein's bound"), 400
    q = {t: weight_of(t) / (len(t) * comb(N_FEATURES, len(t))) for t in subsets(range(N_FEATURES)) if t}
    inside = np.array([float(sum(p for t, p in q.items() if i in t) / sum(q.values())) for i in range(N_FEATURES)])
    draws = ledger.rays / inside
    log = np.log(4 * N_FEATURES / _DELTA)
    half = np.sqrt(2 * draws.var(0, ddof=1) * log / m) + 7 * (2 * np.array(bound) / inside) * log / (3 * (m - 1))
    phi = np.array(rational.gralis(TOY, X, BASE, weight_of), dtype=float)

    def certificate() -> Any:
        return run.certificate(delta=_DELTA, method="bernstein", bound=bound)

    source = "Explanation.certificate"
    return [
        near("independent: the mean of ray_i / q(i in T)", draws.mean(0), lambda: run.values, "plans.independent"),
        near("Bernstein: half-widths", half, lambda: certificate().half_widths, source),
        near("Bernstein: the bound on the sum is their sum", half.sum(), lambda: certificate().aggregate, source),
        equal(
            "Bernstein with a bound, without one",
            ("guaranteed", "calibrated"),
            lambda: (certificate().kind, run.certificate(method="bernstein").kind),
            source,
        ),
        at_most(
            "Bernstein: |error| / half-width, largest",
            1.0,
            lambda: float((np.abs(run.values - phi) / certificate().half_widths).max()),
            source,
        ),
        near(
            "effective rays: those that contain the feature",
            ledger.masks.sum(0),
            lambda: run.effective_rays,
            "Explanation.effective_rays",
        ),
    ]


def _paper() -> list[ClaimRow]:
    """Theorem 3 and its corollaries with every constant from its definition."""
    m, k, d = 12, 5, _DELTA / N_FEATURES
    plan = plans.permutation(2 * m)
    run = explained(CUBIC, plan=plan, budget=None, n_nodes=k)
    coarse = explained(CUBIC, plan=plan, budget=None, n_nodes=k, quadrature="riemann")
    bound = np.array([9.0, 10.0, 7.0])
    third, second = 12.0, 12.0
    pi_min = np.array([min(float(weight_of(s)) for s in without(N_FEATURES, i)) for i in range(N_FEATURES)])
    e_quad, e_riemann = np.full(N_FEATURES, 9 * third / (24 * k**2)), np.full(N_FEATURES, 3 * second / (2 * k))
    wide = 1 / np.sqrt(m * d / 2)
    sampling = bound * wide / pi_min + bound * wide / pi_min**2
    nodes = [Fraction(2 * j + 1, 2 * k) for j in range(k)]
    sets = subsets(range(N_FEATURES))[1:]
    weight = np.array([[float(weight_of(t - {i})) if i in t else 0.0 for i in range(N_FEATURES)] for t in sets])
    seen = (np.abs(gradients(CUBIC, nodes)).max(1) * weight).max(0)
    everything = explained(CUBIC, plan=plans.permutation(100), budget=None, n_nodes=k)  # all six orders are among them

    smoothness = Smoothness(second, third)

    def certificate(of: Explanation = run, smooth: Smoothness | None = smoothness, b: Any = bound) -> Any:
        return of.certificate(delta=_DELTA, method="paper", bound=b, smoothness=smooth)

    source = "Explanation.certificate"
    return [
        near("paper: sampling half-widths", sampling, lambda: certificate().sampling, source),
        near("paper: E_quad / pi_min of midpoints", e_quad / pi_min, lambda: certificate().quadrature, source),
        near(
            "paper: E_quad / pi_min of Riemann sums",
            e_riemann / pi_min,
            lambda: certificate(coarse).quadrature,
            "certificates.Smoothness",
        ),
        near(
            "paper: half-widths are sampling + quadrature",
            sampling + e_quad / pi_min,
            lambda: certificate().half_widths,
            source,
        ),
        near(
            "paper: the bound on the sum", (sampling + e_quad / pi_min).sum(), lambda: certificate().aggregate, source
        ),
        near(
            "paper: Theorem 3 for the numerator",
            bound / np.sqrt(m * d) + e_quad,
            lambda: certificate().constants["numerator"],
            source,
        ),
        equal(
            "paper: m counts a pair once, k nodes",
            (m, k),
            lambda: (certificate().constants["m"], certificate().constants["k"]),
            source,
        ),
        near(
            "paper: B without a bound, over all orders",
            seen,
            lambda: certificate(everything, None, None).constants["B_N"],
            source,
        ),
        equal(
            "paper: guaranteed only with both bounds",
            ("guaranteed", "calibrated", "calibrated"),
            lambda: (certificate().kind, certificate(smooth=None).kind, certificate(b=None).kind),
            source,
        ),
        equal("paper: it is vacuous here, and says so", True, lambda: certificate().vacuous, source),
    ]
