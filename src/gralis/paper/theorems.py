"""Theorems 2 and 4 to 7 with their lemmas and corollaries, on random polynomials in rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations
from math import prod

import numpy as np

from gralis.api.explain import explain
from gralis.kernels import Gaussian, Uniform
from gralis.paper import rational
from gralis.paper.claim_row import ClaimRow, arithmetic, collect, equal, exceeds, near, vanishes
from gralis.paper.networks import network, point
from gralis.paper.rational import Polynomial, largest, subsets, without

_N, _MODELS = 4, 5
_ZERO = Fraction(0)
X = tuple(Fraction(k, 2) for k in (3, -2, 1, 4))
BASE = tuple(Fraction(k, 4) for k in (1, 0, -3, 2))


def rows() -> list[ClaimRow]:
    return collect(_completeness, _multilinear, _library, _interactions, _kernel_limits, _affine, _levels, _reuse)


def multilinear(seed: int, n: int = _N) -> Polynomial:
    """A multilinear polynomial with random integer coefficients on every product of features."""
    rng = np.random.default_rng([seed, 3])
    sets = [t for size in range(1, n + 1) for t in combinations(range(n), size)]
    return Polynomial.multilinear(n, {t: int(rng.integers(-4, 5)) for t in sets})


def curved(seed: int, n: int = _N) -> Polynomial:
    """A random polynomial with squares and cubes."""
    return Polynomial.random(np.random.default_rng([seed, 4]), n)


@arithmetic
def _completeness() -> list[ClaimRow]:
    sums = [sum(rational.shapley_weight(n, len(s)) for s in without(n, 0)) for n in range(1, 11)]
    gaps, lemma = [], []
    for seed in range(_MODELS):
        F = curved(seed)
        v = F.game(X, BASE)
        orders = list(permutations(range(_N)))
        # The constraint of Definition 2 holds at every index here, because the differences along an order telescope.
        per_order = [[v[frozenset(o[: o.index(i) + 1])] - v[frozenset(o[: o.index(i)])] for i in o] for o in orders]
        gaps.append(sum(map(sum, per_order)) / len(orders) - v[frozenset(range(_N))])
        lemma += [sum(F.ray(X, BASE, t)) - v[t] for t in v]
    return [
        equal("Shapley weights sum to one, n = 1 .. 10", [1] * 10, sums, "Lemma shapley-weight"),
        equal("constraint met at every index: the sum is F(x) - F(x')", [0] * _MODELS, gaps, "Thm. completeness"),
        equal("sum of a ray = v(T), curved F, largest difference", 0, largest(lemma), "Lemma A"),
    ]


@arithmetic
def _multilinear() -> list[ClaimRow]:
    deficit, shares, classic = [], [], []
    for seed in range(_MODELS):
        F = multilinear(seed)
        v, phi = F.game(X, BASE), rational.gralis(F, X, BASE)
        m = {t: value for t, value in rational.moebius(v).items() if t}
        lost = sum(value * (1 - Fraction(1, len(t))) for t, value in m.items())
        deficit.append(v[frozenset(range(_N))] - lost - sum(phi))
        for i in range(_N):
            shares.append(phi[i] - sum(value / len(t) ** 2 for t, value in m.items() if i in t))
            classic.append(rational.endpoint(v, _N)[i] - sum(value / len(t) for t, value in m.items() if i in t))
    a, b, p1, p2 = Fraction(3), Fraction(5), Fraction(1, 3), Fraction(2, 7)
    chances = (p1, p2)
    product = Polynomial.multilinear(2, {(0, 1): 1})
    phi = rational.gralis(
        product, (a, b), (Fraction(0),) * 2, lambda s: prod((chances[j] for j in s), start=Fraction(1))
    )
    predicted = (a * b / 2 * p2 / (1 + p2), a * b / 2 * p1 / (1 + p1))
    return [
        equal("sum of phi = v(F) - sum of m(T) (1 - 1/|T|)", [0] * _MODELS, deficit, "Cor. mobius-correction"),
        equal("phi_i = sum of m(T) / |T|^2, largest difference", 0, largest(shares), "Cor. siv-gralis-relation"),
        equal("Sh_i = sum of m(T) / |T|, largest difference", 0, largest(classic), "Cor. siv-gralis-relation"),
        equal("F = ab: phi = (ab/2) p2 / (1 + p2), (ab/2) p1 / (1 + p1)", predicted, phi, "Rem. symmetry-break"),
    ]


def _library() -> list[ClaimRow]:
    """The statements on multilinear and on curved F: the library against the Moebius coefficients."""
    sums, shares, classic, lemma, by_size, scale = [], [], [], [], [], 0.0
    for seed in range(2):
        for F in (multilinear(seed), curved(seed)):
            run = explain(
                F.of_rows,
                np.array(X, float),
                baseline=np.array(BASE, float),
                plan="exhaustive",
                budget=None,
                kernel=Uniform(),
            )
            v, rows = F.game(X, BASE), run.ledger.require_rows("Lemma A")
            m = {t: float(value) for t, value in rational.moebius(v).items() if t}
            scale = max(scale, max(abs(float(value)) for value in v.values()))
            lemma.append(np.abs(rows.rays.sum(1) - rows.value).max())
            sums.append(run.values.sum() - sum(value / len(t) for t, value in m.items()))
            means = [[float(v[t]) for t in v if len(t) == size] for size in range(1, _N + 1)]
            by_size.append(run.values.sum() - sum(np.mean(each) / size for size, each in enumerate(means, 1)))
            classic += [
                float(run.shapley().values[i]) - sum(c / len(t) for t, c in m.items() if i in t) for i in range(_N)
            ]
            if multilinear(seed) == F:
                shares += [
                    float(run.values[i]) - sum(c / len(t) ** 2 for t, c in m.items() if i in t) for i in range(_N)
                ]
    a, b = 3.0, 5.0
    p = [np.exp(-(c**2) / (2 * 16)) for c in (a, b)]
    product = explain(lambda z: z[:, 0] * z[:, 1], np.array([a, b]), kernel=Gaussian(4.0, "euclidean"), budget=None)
    return [
        vanishes("explain: sum of a ray = v(T), relative", max(lemma) / scale, "Lemma A"),
        vanishes(
            "explain: sum of phi = sum of m(T) / |T|, relative", np.abs(sums).max() / scale, "Cor. mobius-correction"
        ),
        vanishes(
            "explain: sum of phi = sum of vbar_t / t, relative", np.abs(by_size).max() / scale, "Rem. mobius-scope"
        ),
        vanishes(
            "explain: phi_i = sum of m(T) / |T|^2, relative", np.abs(shares).max() / scale, "Cor. siv-gralis-relation"
        ),
        vanishes(
            "explain: Sh_i = sum of m(T) / |T|, relative", np.abs(classic).max() / scale, "Cor. siv-gralis-relation"
        ),
        near(
            "explain, F = ab: phi = (ab/2) p2 / (1 + p2), (ab/2) p1 / (1 + p1)",
            [a * b / 2 * q / (1 + q) for q in p[::-1]],
            lambda: product.values,
            "Rem. symmetry-break",
        ),
    ]


def _interactions() -> list[ClaimRow]:
    gaps = []
    for seed in range(_MODELS):
        v = curved(seed).game(X, BASE)
        m = rational.moebius(v)
        for i, j in combinations(range(_N), 2):
            by_moebius = sum(m[t] / (len(t) - 1) for t in m if t.issuperset((i, j)))
            gaps.append(rational.interaction(v, _N, i, j) - by_moebius)
    F = curved(0)
    explanation = explain(F.of_rows, np.array(X, float), baseline=np.array(BASE, float), plan="exhaustive", budget=None)
    pairs, v = explanation.interactions(2), F.game(X, BASE)
    apart = max(abs(pairs[i, j] - float(rational.interaction(v, _N, i, j))) for i, j in combinations(range(_N), 2))
    scale = max(abs(float(value)) for value in v.values())
    return [
        equal("interaction by Moebius = by second differences", 0, largest(gaps), "Thm. siv, Prop. mobius"),
        vanishes("explain: the same interactions, relative", apart / scale, "Thm. siv"),
    ]


def _kernel_limits() -> list[ClaimRow]:
    f, x = network(1, _N), point(1, _N)
    explanation = explain(f, x, plan="exhaustive", budget=None, kernel=Uniform())
    narrow, wide = (explanation.with_kernel(Gaussian(sigma)).values for sigma in (0.005, 1e6))
    from_limit = float(np.abs(wide - explanation.kernel_shap().values).max())
    source = "Rem. kernel-limits"
    return [
        near("sigma to 0: phi_i = F(x_i) - F(x')", explanation.singles().values, narrow, source),
        near("sigma to infinity: the uniform kernel", explanation.values, wide, source),
        exceeds("sigma to infinity: not KernelSHAP", 1e-3, from_limit, source),
    ]


@arithmetic
def _affine() -> list[ClaimRow]:
    """With inputs uniform on [0, 1] and the baseline at their mean, phi_i is the Hoeffding term for every kernel."""
    slope = (Fraction(2), Fraction(-3), Fraction(1, 2))
    F = Polynomial({(0, 0, 0): Fraction(4)}).plus(Polynomial.multilinear(3, {(0,): 1}), slope[0])
    F = F.plus(Polynomial.multilinear(3, {(1,): 1}), slope[1]).plus(Polynomial.multilinear(3, {(2,): 1}), slope[2])
    centre = (Fraction(1, 2),) * 3
    rng = np.random.default_rng(0)
    table = {s: Fraction(int(rng.integers(1, 20)), 7) for s in subsets(range(3))}
    at = (Fraction(1, 5), Fraction(9, 10), Fraction(2, 3))
    phi = rational.gralis(F, at, centre, table.__getitem__)
    variance = F.times(F).mean() - F.mean() ** 2
    shares = []
    for i in range(3):
        # phi_i^2 is the square of a linear function of x_i alone, so Simpson's rule integrates it exactly.
        ends = [
            rational.gralis(F, [*at[:i], z, *at[i + 1 :]], centre, table.__getitem__)[i]
            for z in (_ZERO, Fraction(1, 2), Fraction(1))
        ]
        mean, square = (ends[0] ** k / 6 + ends[1] ** k * 4 / 6 + ends[2] ** k / 6 for k in (1, 2))
        shares.append((square - mean**2) / variance)
    indices = [b**2 / sum(c**2 for c in slope) for b in slope]
    return [
        equal(
            "affine F, any kernel: phi_i = b_i (x_i - E X_i)",
            [b * (z - centre[0]) for b, z in zip(slope, at, strict=True)],
            phi,
            "Thm. anova",
        ),
        equal("E F + sum of phi = F(x)", F(at), F.mean() + sum(phi), "Thm. anova"),
        equal("Var phi_i / Var F = Sobol index", indices, shares, "Thm. sobol"),
    ]


@arithmetic
def _levels() -> list[ClaimRow]:
    covariance = np.array([[1.0, 0.5, 0.1], [0.5, 4.0, 0.2], [0.1, 0.2, 0.25]])
    inverse = np.linalg.inv(covariance) @ np.ones(3)
    best = inverse / inverse.sum()
    rng = np.random.default_rng(1)
    others = best + (step := rng.standard_normal((2000, 3))) - step.mean(1, keepdims=True)
    rivals = np.einsum("ri,ij,rj->r", others, covariance, others)
    diagonal = 1 / np.diag(covariance) / (1 / np.diag(covariance)).sum()
    true, stated = diagonal @ covariance @ diagonal, diagonal**2 @ np.diag(covariance)
    return [
        exceeds(
            "correlated levels: 2000 other weightings, least variance",
            float(1 / inverse.sum()),
            float(rivals.min()),
            "Rem. ms-independence",
        ),
        exceeds(
            "positive correlation: true variance above the stated one",
            float(stated),
            float(true),
            "Rem. ms-independence",
        ),
    ]


def _reuse() -> list[ClaimRow]:
    """C2 (audit by linearity) and Appendix D (weight mass); neither needs a model call."""
    F, slope = curved(3), (2, -1, 3, 0)
    surrogate = Polynomial({tuple(int(j == i) for j in range(_N)): Fraction(c) for i, c in enumerate(slope)})
    rest = F.plus(surrogate, Fraction(-1))
    whole, part = rational.gralis(F, X, BASE), rational.gralis(rest, X, BASE)
    closed = [c * (x - base) for c, x, base in zip(slope, X, BASE, strict=True)]
    gaps = [a - b - c for a, b, c in zip(whole, closed, part, strict=True)]
    mass = explain(network(2, _N), point(2, _N), plan="exhaustive", budget=None).weight_mass()
    return [
        equal("phi(F) - b_i (x_i - x'_i) = phi(F - affine)", [0] * _N, gaps, "C2"),
        near("weight mass over predecessor sets sums to one", np.ones(_N), mass.sizes.sum(1), "Rem. weight-mass"),
    ]
