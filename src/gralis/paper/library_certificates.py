"""What the library says about its values, against enumeration: residual, ranks, audit, weight mass, budget."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from fractions import Fraction
from math import comb, prod
from types import SimpleNamespace
from typing import Any

import numpy as np

from gralis import plans
from gralis.api.explain import explain
from gralis.kernels import Gaussian, Uniform
from gralis.paper import rational
from gralis.paper.appendix_e import BASE, TOY, X
from gralis.paper.claim_row import ClaimRow, at_most, collect, equal, near
from gralis.paper.library_bounds import CUBIC, KERNEL, N_FEATURES, explained, gradients, weight_of
from gralis.paper.rational import Coalition, Polynomial, subsets, without


def rows() -> list[ClaimRow]:
    return collect(_residual, _ranks, _audit, _weight_mass, _budget)


def _residual() -> list[ClaimRow]:
    """R_path from forwards, R_kernel from two kernels, R_num with too few nodes."""
    v, uniform, phi = CUBIC.game(X, BASE), rational.gralis(CUBIC, X, BASE), rational.gralis(CUBIC, X, BASE, weight_of)
    everyone = v[frozenset(range(N_FEATURES))]
    path = everyone - sum(uniform)  # sum of phi under the uniform kernel = sum of vbar_t / t
    rays = gradients(CUBIC, [Fraction(1, 4), Fraction(3, 4)]).mean(1)
    sets = subsets(range(N_FEATURES))[1:]
    # By Lemma A single features come from their values, so their nodes do not matter.
    weights = [(len(t) > 1) / (len(t) * comb(N_FEATURES, len(t))) for t in sets]
    off = -float(sum(w * (row.sum() - float(v[t])) for w, row, t in zip(weights, rays, sets, strict=True)))
    run = explained(CUBIC, plan="exhaustive", budget=None)
    coarse = explained(CUBIC, plan="exhaustive", budget=None, quadrature="midpoint", n_nodes=2)
    sampled = explained(CUBIC, plan="permutation", budget=2000).residual
    same = explained(CUBIC, plan=plans.permutation(12, antithetic=False), budget=None, kernel=Uniform())
    parts = ("path", "numerical", "kernel")
    source = "Explanation.residual"
    return [
        near(
            "R_obs = v(F) - sum of phi",
            everyone - sum(phi),
            lambda: run.residual.observed.value,
            source,
        ),
        near("R_path = v(F) - sum of vbar_t / t", path, lambda: run.residual.path.value, source),
        near(
            "R_kernel = sum of phi(uniform) - sum of phi",
            sum(uniform) - sum(phi),
            lambda: run.residual.kernel.value,
            source,
        ),
        near("R_num of two midpoints: the weighted checksum", off, lambda: coarse.residual.numerical.value, source),
        near(
            "the parts of a sampled residual add up",
            0.0,
            lambda: sampled.observed.value - sum(getattr(sampled, part).value for part in parts),
            source,
        ),
        at_most(
            "sampled R_path off the truth, in half-widths",
            2.0,
            lambda: abs(sampled.path.value - float(path)) / sampled.path.half_width,
            source,
        ),
        near(
            "uniform kernel: R_kernel and its half-width",
            (0.0, 0.0),
            lambda: (same.residual.kernel.value, same.residual.kernel.half_width),
            source,
        ),
        at_most("shared plan: parts off the truth, in half-widths", 2.5, _shared_parts, source),
    ]


def _shared_parts() -> float:
    """R_path and R_kernel of a sampled run with seven features, against rational arithmetic."""
    n, sigma = 7, 0.6
    F = Polynomial.random(np.random.default_rng(2), n, degree=1, n_terms=9)
    x, base = (Fraction(1),) * n, (Fraction(0),) * n
    uniform = sum(rational.gralis(F, x, base))
    pi = [Fraction(float(np.exp(-size / (2 * sigma**2)))) for size in range(n)]
    local = sum(rational.gralis(F, x, base, lambda s: pi[len(s)]))
    found = explain(F.of_rows, np.ones(n), kernel=Gaussian(sigma, "euclidean"), budget=300).residual
    path = float(F.game(x, base)[frozenset(range(n))] - uniform)
    return max(
        abs(found.path.value - path) / found.path.half_width,
        abs(found.kernel.value - float(uniform - local)) / found.kernel.half_width,
    )


def _ranks() -> list[ClaimRow]:
    F = Polynomial.multilinear(4, {(0,): 2, (1,): -5, (2,): 1, (3,): 3, (0, 2): 1})
    phi = rational.gralis(F, (Fraction(1),) * 4, (Fraction(0),) * 4)
    run = explain(F.of_rows, np.ones(4), kernel=Uniform(), plan="exhaustive", budget=None)
    by_size = [1 + sum(abs(other) > abs(own) for other in phi) for own in phi]
    by_value = [1 + sum(other > own for other in phi) for own in phi]
    source = "Explanation.ranks"
    gaps = [[float(a - b) for b in phi] for a in phi]
    return [
        equal("ranks by magnitude", by_size, lambda: run.ranks().lowest, source),
        equal("ranks by value", by_value, lambda: run.ranks(by="value").highest, source),
        near("differences phi_i - phi_j", gaps, lambda: run.ranks().difference, source),
        equal("the first two by magnitude", ["x[1]", "x[3]"], lambda: run.ranks().top(2)[0], source),
        equal("sampled: the true order is among the possible ones", True, _possible, source),
    ]


def _possible() -> bool:
    F = Polynomial.random(np.random.default_rng(2), 7, degree=1, n_terms=9)
    phi = rational.gralis(F, (Fraction(1),) * 7, (Fraction(0),) * 7)
    found = explain(F.of_rows, np.ones(7), kernel=Uniform(), budget=300).ranks()
    true = np.array([1 + sum(abs(other) > abs(own) for other in phi) for own in phi])
    return bool(((found.lowest <= true) & (true <= found.highest)).all() and found.above.any())


def _audit() -> list[ClaimRow]:
    from scipy.stats import kendalltau, spearmanr  # takes long to import

    phi = np.array(rational.gralis(TOY, X, BASE, weight_of), dtype=float)
    other = np.array([5.0, phi[1], 0.5])
    run = explained(plan="exhaustive", budget=None)
    surrogate = SimpleNamespace(coef_=np.array([4.0, -2.0, 1.0]))
    half = explain(TOY.of_rows, np.ones(N_FEATURES) / 2, plan="exhaustive", budget=None, kernel=KERNEL)
    source = "Explanation.audit"
    return [
        near("rho_E = phi - other", phi - other, lambda: run.audit(other).deficit, source),
        equal("where it exceeds the error", [True, False, True], lambda: run.audit(other).disagree.tolist(), source),
        near(
            "both residuals",
            (11 - phi.sum(), 11 - other.sum()),
            lambda: (run.audit(other).residual, run.audit(other).other_residual),
            source,
        ),
        near(
            "rank correlations",
            (spearmanr(phi, other).statistic, kendalltau(phi, other).statistic),
            lambda: (run.audit(other).spearman, run.audit(other).kendall),
            source,
        ),
        near("an affine surrogate: beta_i (x_i - x'_i)", (2.0, -1.0, 0.5), lambda: half.audit(surrogate).other, source),
    ]


def _weight_mass() -> list[ClaimRow]:
    p = (Fraction(1, 2), Fraction(4, 5), Fraction(1, 4), Fraction(3, 5))
    distance = -np.log([float(c) for c in p])  # with sigma^2 = 1/2, exp(-d^2) is p

    def pi(s: Coalition) -> Fraction:
        return prod((p[j] for j in s), start=Fraction(1))

    weight = [{s: rational.shapley_weight(4, len(s)) * pi(s) for s in without(4, i)} for i in range(4)]
    mass = [{s: float(w / sum(row.values())) for s, w in row.items()} for row in weight]
    sizes = [[sum(w for s, w in row.items() if len(s) == size) for size in range(4)] for row in mass]
    effective = [np.exp(-sum(w * np.log(w) for w in row.values())) for row in mass]
    second = [sorted(row, key=row.__getitem__)[-2] for row in mass]  # the first is the empty set
    run = explain(lambda z: z.sum(1), np.sqrt(distance), kernel=Gaussian(np.sqrt(0.5), "euclidean"), budget=None)
    found = _quietly(run.weight_mass)
    source = "Explanation.weight_mass"
    return [
        near("weight by the size of the predecessor set", sizes, lambda: found.sizes, source),
        near("effective number of sets: exp(entropy)", effective, lambda: found.effective, source),
        equal(
            "the second heaviest predecessor set",
            [tuple(sorted(s)) for s in second],
            lambda: [sets[1][0] for sets in found.heaviest],
            source,
        ),
        near(
            "and its weight",
            [row[s] for row, s in zip(mass, second, strict=True)],
            lambda: [sets[1][1] for sets in found.heaviest],
            source,
        ),
        at_most("20 features, from draws: weight by size, off by", 0.05, _many_sets, source),
    ]


def _many_sets() -> float:
    """Under the uniform kernel every size 0 .. n - 1 has the weight 1 / n."""
    n = 20
    run = explain(lambda z: z.sum(1), np.ones(n), kernel=Uniform(), budget=200)
    return float(np.abs(_quietly(run.weight_mass).sizes - 1 / n).max())


def _quietly(call: Callable[[], Any]) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def _budget() -> list[ClaimRow]:
    F = Polynomial.random(np.random.default_rng(3), 8, degree=1, n_terms=9)
    run = explain(F.of_rows, np.ones(8), budget=300)
    tolerance = float(run.half_widths(0.95).max()) / abs(run.delta) / 3
    return [
        near(
            "a third of the width takes nine times the gradients",
            9.0,
            lambda: run.budget_for(tolerance) / run.cost.n_gradients,
            "Explanation.budget_for",
            within=0.02,
        ),
    ]
