"""Every number of Appendix E, computed from the definitions in rational arithmetic.

The function is F = 2a + 3b + c + 4ab - ac + 2bc, the input x = (1, 1, 1), the baseline x' = 0. For Theorems 5 and 6 the
inputs are uniform on [0, 1]^3.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np

from gralis.api.explain import explain
from gralis.kernels import Uniform
from gralis.paper import rational
from gralis.paper.claim_row import ClaimRow, arithmetic, collect, equal, exceeds, near
from gralis.paper.rational import Polynomial, subsets
from gralis.results.explanation import Explanation
from gralis.scales import minimum_variance
from gralis.sobol import Sensitivity, sensitivity
from gralis.sobol import hoeffding as at_point

TOY = Polynomial.multilinear(3, {(0,): 2, (1,): 3, (2,): 1, (0, 1): 4, (0, 2): -1, (1, 2): 2})
X, BASE = (Fraction(1),) * 3, (Fraction(0),) * 3

_ORDER = [frozenset(t) for size in (1, 2, 3) for t in combinations(range(3), size)]
_PHI = (Fraction(11, 4), Fraction(9, 2), Fraction(5, 4))
_SHAPLEY = (Fraction(7, 2), Fraction(6), Fraction(3, 2))


def rows() -> list[ClaimRow]:
    return collect(_attributions, _interactions, _hoeffding, _levels, _library)


@arithmetic
def _attributions() -> list[ClaimRow]:
    v, phi = TOY.game(X, BASE), rational.gralis(TOY, X, BASE)
    m, shapley = rational.moebius(v), rational.endpoint(v, 3)
    everyone = frozenset(range(3))
    lost = sum(m[t] * Fraction(len(t) - 1, len(t)) for t in _ORDER)
    checks = [sum(TOY.ray(X, BASE, t)) - v[t] for t in subsets(range(3))]
    ratios = [a / b for a, b in zip(phi, shapley, strict=True)]
    of_first = [t for t in _ORDER if 0 in t]
    parts = [(m[t] / len(t), m[t] / len(t) ** 2) for t in of_first if m[t]]
    return [
        equal("F(x) - F(x')", 11, v[everyone], "Appendix E"),
        equal("Moebius coefficients 1, 2, 3, 12, 13, 23, 123", (2, 3, 1, 4, -1, 2, 0), [m[t] for t in _ORDER]),
        equal("phi by path integration, uniform kernel", _PHI, phi, "Cor. mobius-correction"),
        equal("sum of phi", Fraction(17, 2), sum(phi)),
        equal("11 - [4/2 - 1/2 + 2/2 + 0]", Fraction(17, 2), v[everyone] - lost, "Cor. mobius-correction"),
        equal("Lemma A: sum of a ray minus v, all 8 coalitions", [0] * 8, checks, "Lemma A"),
        equal("Shapley values", _SHAPLEY, shapley, "Cor. siv-gralis-relation"),
        equal("sum of the Shapley values", 11, sum(shapley)),
        equal("phi / Shapley: 0.786, 0.75, 0.833", (Fraction(11, 14), Fraction(3, 4), Fraction(5, 6)), ratios),
        equal("feature 1 in Shapley, by order", (2, 2, Fraction(-1, 2)), [a for a, _ in parts]),
        equal("feature 1 in phi, by order", (2, 1, Fraction(-1, 4)), [b for _, b in parts]),
    ]


@arithmetic
def _interactions() -> list[ClaimRow]:
    v = TOY.game(X, BASE)
    m, pairs = rational.moebius(v), list(combinations(range(3), 2))
    by_moebius = [sum(m[t] / (len(t) - 1) for t in _ORDER if t.issuperset(pair)) for pair in pairs]
    direct = [rational.interaction(v, 3, i, j) for i, j in pairs]
    return [
        equal("interactions 12, 13, 23 by Moebius", (4, -1, 2), by_moebius, "Prop. mobius"),
        equal("interactions 12, 13, 23 by Grabisch and Roubens", (4, -1, 2), direct, "Thm. siv"),
    ]


def hoeffding(F: Polynomial) -> dict[frozenset[int], Polynomial]:
    """f_T = sum over S within T of (-1)^(|T| - |S|) E[F | z_S] for inputs uniform on [0, 1]; f_empty is E F."""
    n = F.n_features
    conditional = {s: F.averaged(set(range(n)) - s) for s in subsets(range(n))}
    terms = {}
    for t in subsets(range(n)):
        total = Polynomial({(0,) * n: Fraction(0)})
        for s in subsets(t):
            total = total.plus(conditional[s], Fraction((-1) ** (len(t) - len(s))))
        terms[t] = total
    return terms


@arithmetic
def _hoeffding() -> list[ClaimRow]:
    terms = hoeffding(TOY)
    variance = TOY.times(TOY).mean() - TOY.mean() ** 2
    parts = {t: f.times(f).mean() for t, f in terms.items() if t}
    first = [parts[frozenset({i})] / variance for i in range(3)]
    return [
        equal("E F", Fraction(17, 4), TOY.mean(), "Thm. anova"),
        equal("E F + sum of f_T(x) = F(x)", 11, sum(f(X) for f in terms.values()), "Thm. anova"),
        equal("Var F", Fraction(209, 48), variance, "Thm. sobol"),
        equal("sum of Var f_T", Fraction(209, 48), sum(parts.values()), "Thm. sobol"),
        equal("Sobol indices", (Fraction(49, 209), Fraction(144, 209), Fraction(9, 209)), first, "Thm. sobol"),
    ]


@arithmetic
def _levels() -> list[ClaimRow]:
    spread = (Fraction(1), Fraction(4), Fraction(1, 4))
    precision = [1 / s for s in spread]
    best = [p / sum(precision) for p in precision]
    least = _variance(best, spread)
    weights = np.random.default_rng(0).dirichlet(np.ones(3), 2000)
    rivals = (weights**2) @ np.array([float(s) for s in spread])
    return [
        equal("weights for variances 1, 4, 1/4", (Fraction(4, 21), Fraction(1, 21), Fraction(16, 21)), best, "Thm. ms"),
        equal("their variance, 0.190", Fraction(4, 21), least, "Thm. ms"),
        equal("the variance of equal weights, 0.583", Fraction(7, 12), _variance([Fraction(1, 3)] * 3, spread)),
        exceeds("least variance of 2000 random weightings", float(least), float(rivals.min()), "Thm. ms"),
    ]


def _variance(weights: list[Fraction], spread: tuple[Fraction, ...]) -> Fraction:
    return sum((w**2 * s for w, s in zip(weights, spread, strict=True)), Fraction(0))


def _library() -> list[ClaimRow]:
    """The same numbers from the library, in floating point."""
    explanation = explain(TOY.of_rows, np.ones(3), kernel=Uniform(), plan="exhaustive", budget=None)
    rows = explanation.ledger.require_rows("Lemma A")
    box = [(0.0, 1.0)] * 3
    half = np.array([1.0, 4.0, 0.25])
    terms = hoeffding(TOY)
    return [
        near("explain: F(x) - F(x')", 11, lambda: explanation.delta),
        near("explain: phi", _PHI, lambda: explanation.values),
        near("explain: Moebius coefficients", (2, 3, 1, 4, -1, 2, 0), lambda: list(explanation.moebius(3).values())),
        near("explain: sum of each ray minus v(T)", [0] * 7, lambda: rows.rays.sum(1) - rows.value, "Lemma A"),
        near("explain: Shapley values from the same ledger", _SHAPLEY, lambda: explanation.shapley().values),
        near("explain: interactions from the same ledger", (4, -1, 2), lambda: _pairs(explanation)),
        near("explain: joint-path part of the residual", Fraction(5, 2), lambda: explanation.residual.path.value),
        near(
            "sensitivity: E F, Var F",
            (Fraction(17, 4), Fraction(209, 48)),
            lambda: _moments(sensitivity(TOY.of_rows, box)),
        ),
        near(
            "sensitivity: Sobol indices",
            [Fraction(k, 209) for k in (49, 144, 9)],
            lambda: sensitivity(TOY.of_rows, box).first,
            "Thm. sobol",
        ),
        near(
            "hoeffding: f_T(x), up to three features",
            [terms[t](X) for t in _ORDER],
            lambda: list(at_point(TOY.of_rows, [1.0] * 3, box, max_order=3).terms.values()),
            "Thm. anova",
        ),
        near(
            "minimum_variance: weights for variances 1, 4, 1/4",
            [Fraction(k, 21) for k in (4, 1, 16)],
            lambda: minimum_variance(half, "inverse-variance"),
            "Thm. ms",
        ),
        near(
            "minimum_variance: their variance",
            Fraction(4, 21),
            lambda: float(minimum_variance(half) ** 2 @ half),
            "Thm. ms",
        ),
    ]


def _pairs(explanation: Explanation) -> list[float]:
    found = explanation.interactions(2)
    return [found[pair] for pair in combinations(range(3), 2)]


def _moments(found: Sensitivity) -> tuple[float, float]:
    return found.mean, found.variance
