"""Other explainers from the same ledger, against their definitions in rational arithmetic.

Every index is computed from its definition on differences of v; KernelSHAP and LIME are solved as least squares with
one row per coalition. From sampled coalitions the same numbers must agree within their errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from gralis.api.explain import explain
from gralis.arrays import Array
from gralis.baselines import sample
from gralis.explainers import INDICES, coalition_values_of, indices
from gralis.kernels import Uniform
from gralis.paper import rational
from gralis.paper.claim_row import ClaimRow, at_most, collect, equal, near
from gralis.paper.interaction_indices import bii, difference, faithful, k_sii, sii, stii
from gralis.paper.rational import Coalition, Polynomial, RationalGame, subsets, without
from gralis.results.explanation import Explanation

_N = 4
_X = tuple(Fraction(k, 4) for k in (5, -3, 4, 6))
_BASE = tuple(Fraction(k, 8) for k in (1, -2, 0, 3))
_ALL = frozenset(range(_N))


def rows() -> list[ClaimRow]:
    return collect(_values, _weights, _regressions, _interactions, _rays, _sampled, _several_baselines)


def _function() -> Polynomial:
    inner = Polynomial.random(np.random.default_rng(12), _N, degree=2, n_terms=8)
    return inner.plus(Polynomial({(1, 2, 1, 1): Fraction(6), (1, 0, 1, 2): Fraction(-2)}))


def _run(**options: Any) -> Explanation:
    x, base = (np.array(end, dtype=np.float64) for end in (_X, _BASE))
    every = {"plan": "exhaustive", "budget": None, **options}
    found: Explanation = explain(_function().of_rows, x, baseline=base, **every)
    return found


def _values() -> list[ClaimRow]:
    v, run = _function().game(_X, _BASE), _run()
    singles = [frozenset({i}) for i in range(_N)]
    return [
        near("shapley", rational.endpoint(v, _N), lambda: run.shapley().values, "Explanation.shapley"),
        near("banzhaf", [bii(v, _N, t) for t in singles], lambda: run.banzhaf().values, "Explanation.banzhaf"),
        near("singles: v({i})", [v[t] for t in singles], lambda: run.singles().values, "Explanation.singles"),
        near(
            "Moebius coefficients of all coalitions",
            [m for t, m in rational.moebius(v).items() if t],
            lambda: list(run.moebius(_N).values()),
            "Explanation.moebius",
        ),
        near(
            "the table of all coalition values",
            [float(v[t]) for t in _by_code()],
            lambda: _table(run),
            "explainers.coalition_values_of",
        ),
        equal(
            "the names of the indices", ("SII", "STII", "k-SII", "FSII", "BII"), lambda: INDICES, "explainers.INDICES"
        ),
    ]


def _by_code() -> list[Coalition]:
    return [frozenset(j for j in range(_N) if code >> j & 1) for code in range(2**_N)]


def _table(run: Explanation) -> Array:
    full = run.f_x - run.f_baselines
    return coalition_values_of(run.ledger, full, run.baseline_weights).rows("the table").table()


def _weights() -> list[ClaimRow]:
    """I(A) = sum over S of p(|A|, |S|) D_A v(S) with the library's table p, which the sampled indices use."""
    v, order = _function().game(_X, _BASE), 2
    sets = [t for t in subsets(range(_N)) if 1 <= len(t) <= order]
    tables = {
        "SII": (indices.SII, [sii(v, _N, t) for t in sets]),
        "BII": (indices.BANZHAF, [bii(v, _N, t) for t in sets]),
        "STII": (indices.stii(order), [stii(v, _N, t, order) for t in sets]),
        "k-SII": (indices.k_sii(order), [k_sii(v, _N, t, order) for t in sets]),
    }

    def by_table(index: indices.Index, a: Coalition) -> Fraction:
        terms = (index.weight(_N, len(a), len(s)) * difference(v, a, s) for s in without(_N, *a))
        return sum(terms, Fraction(0))

    return [
        equal(
            f"{name}: its table of weights",
            expected,
            lambda i=index: [by_table(i, t) for t in sets],
            "explainers.INDICES",
        )
        for name, (index, expected) in tables.items()
    ]


def _regressions() -> list[ClaimRow]:
    v, run = _function().game(_X, _BASE), _run()
    ridge, sigma = 0.5, 0.4
    fitted = {kept: _lime(v, ridge, sigma, kept) for kept in ((0, 1, 2, 3), (0, 3))}
    largest = tuple(sorted(np.argsort(-np.abs(fitted[0, 1, 2, 3][0]))[:2].tolist()))
    on_two = _lime(v, ridge, sigma, largest)
    source = "Explanation.lime"
    slopes, intercept, r2 = fitted[0, 1, 2, 3]
    return [
        near(
            "KernelSHAP: constrained least squares",
            faithful(v, _N, 1),
            lambda: run.kernel_shap().values,
            "Explanation.kernel_shap",
        ),
        near(
            "KernelSHAP of all coalitions: the Shapley values",
            rational.endpoint(v, _N),
            lambda: run.kernel_shap().values,
            "Explanation.kernel_shap",
        ),
        near("LIME: ridge on all coalitions", slopes, lambda: run.lime(ridge, sigma).values, source),
        near(
            "LIME: intercept and weighted R2",
            (intercept, r2),
            lambda: ((fit := run.lime(ridge, sigma)).intercept, fit.r2),
            source,
        ),
        equal(
            "LIME: the two largest coefficients",
            largest,
            lambda: run.lime(ridge, sigma, k_features=2, select="largest").support,
            source,
        ),
        near(
            "LIME: fitted again on these two",
            on_two[0],
            lambda: run.lime(ridge, sigma, k_features=2, select="largest").values,
            source,
        ),
        equal("LIME: lasso keeps the features of a sparse function", (1, 2), _sparse, source),
    ]


def _lime(v: RationalGame, ridge: float, sigma: float, kept: Iterable[int]) -> tuple[Array, float, float]:
    """Least squares on weighted rows, with one more row per slope for the penalty."""
    chosen = list(kept)
    table = np.array([[1.0, *(float(i in t) for i in chosen)] for t in v])
    values = np.array([float(value) for value in v.values()])
    weight = np.array([np.exp(-((1 - np.sqrt(len(t) / _N)) ** 2) / (2 * sigma**2)) for t in v])
    root = np.sqrt(weight)
    penalty = np.sqrt(ridge) * np.eye(len(chosen) + 1)[1:]
    right = np.append(values * root, np.zeros(len(chosen)))
    solution = np.linalg.lstsq(np.concatenate([table * root[:, None], penalty]), right, rcond=None)[0]
    slopes = np.zeros(_N)
    slopes[chosen] = solution[1:]
    left = values - table @ solution
    around = values - np.average(values, weights=weight)
    return slopes, float(solution[0]), float(1 - (weight @ left**2) / (weight @ around**2))


def _sparse() -> tuple[int, ...]:
    run = explain(lambda z: 5 * z[:, 1] - 3 * z[:, 2], np.ones(4), plan="exhaustive", budget=None)
    return run.lime(k_features=2).support


def _interactions() -> list[ClaimRow]:
    v, run = _function().game(_X, _BASE), _run()
    source = "Explanation.interactions"
    claims = []
    definitions: dict[str, Callable[[Coalition, int], Fraction]] = {
        "SII": lambda a, order: sii(v, _N, a),
        "BII": lambda a, order: bii(v, _N, a),
        "STII": lambda a, order: stii(v, _N, a, order),
        "k-SII": lambda a, order: k_sii(v, _N, a, order),
    }
    for order in (2, 3):
        sets = [t for t in subsets(range(_N)) if 1 <= len(t) <= order]
        for index, of in definitions.items():
            expected = [of(t, order) for t in sets]
            claims.append(
                near(f"{index} of order {order}", expected, lambda i=index, o=order: _listed(run, i, o), source)
            )
        fitted = faithful(v, _N, order)
        claims.append(near(f"FSII of order {order}", fitted, lambda o=order: _listed(run, "FSII", o), source, 1e-8))
    return claims


def _listed(run: Explanation, index: str, order: int) -> list[float]:
    """The numbers in the order of `subsets`."""
    found = run.interactions(order, index)
    return [found[tuple(sorted(t))] for t in subsets(range(_N)) if 1 <= len(t) <= order]


def _rays() -> list[ClaimRow]:
    F, run = _function(), _run()
    everyone = F.ray(_X, _BASE, _ALL)
    rays_only = _run(coalition_values=False)
    source = "Explanation.integrated_gradients"
    return [
        near(
            "integrated gradients: the ray of all features", everyone, lambda: run.integrated_gradients().values, source
        ),
        near("they sum to F(x) - F(x')", run.delta, lambda: run.integrated_gradients().values.sum(), source),
        near(
            "Shapley values from the sums of rays (Lemma A)",
            rational.endpoint(F.game(_X, _BASE), _N),
            lambda: rays_only.shapley().values,
            "Explanation.shapley",
        ),
    ]


def _sampled() -> list[ClaimRow]:
    """Indices from sampled coalitions: the largest error in standard errors, over five seeds."""
    n = 7
    F = Polynomial.random(np.random.default_rng(21), n, degree=1, n_terms=10)
    x, base = (Fraction(1),) * n, (Fraction(0),) * n
    v = F.game(x, base)
    pairs = [frozenset(pair) for pair in combinations(range(n), 2)]
    singles = [frozenset({i}) for i in range(n)]
    runs = [explain(F.of_rows, np.ones(n), kernel=Uniform(), budget=400, seed=seed) for seed in range(5)]

    def score(of: Callable[[Explanation], Any], truth: list[Fraction]) -> float:
        found = [of(run) for run in runs]
        off = np.mean([_numbers(each) for each in found], axis=0) - np.array(truth, dtype=float)
        error = np.sqrt(np.mean([each.stderr**2 for each in found], axis=0) / len(found))
        return float((np.abs(off) / (error + 1e-12)).max())

    both = [*singles, *pairs]
    return [
        at_most(
            "sampled shapley",
            6.0,
            lambda: score(lambda run: run.shapley(), rational.endpoint(v, n)),
            "Explanation.shapley",
        ),
        at_most(
            "sampled banzhaf",
            6.0,
            lambda: score(lambda run: run.banzhaf(), [bii(v, n, t) for t in singles]),
            "Explanation.banzhaf",
        ),
        at_most(
            "sampled kernel_shap",
            6.0,
            lambda: score(lambda run: run.kernel_shap(), rational.endpoint(v, n)),
            "Explanation.kernel_shap",
        ),
        at_most(
            "sampled integrated gradients",
            8.0,
            lambda: score(lambda run: run.integrated_gradients(), F.ray(x, base, frozenset(range(n)))),
            "Explanation.integrated_gradients",
        ),
        *(
            at_most(
                f"sampled {index}",
                6.0,
                lambda i=index, of=of: score(lambda run: run.interactions(2, i), [of(v, n, t) for t in both]),
                "Explanation.interactions",
            )
            for index, of in (("SII", sii), ("BII", bii))
        ),
    ]


def _numbers(found: Any) -> Array:
    return np.array(list(found.values()) if hasattr(found, "keys") else found.values, dtype=float)


def _several_baselines() -> list[ClaimRow]:
    """v averaged over the baselines."""
    F, n = Polynomial.random(np.random.default_rng(30), 3, n_terms=5), 3
    bases = [tuple(Fraction(int(k), 4) for k in row) for row in np.random.default_rng(31).integers(-3, 4, (3, n))]
    x = _X[:n]
    shapley = np.mean([np.array(rational.endpoint(F.game(x, base), n), dtype=float) for base in bases], axis=0)
    rays = np.mean([np.array(F.ray(x, base, frozenset(range(n))), dtype=float) for base in bases], axis=0)
    data = np.array(bases, dtype=float)
    run = explain(F.of_rows, np.array(x, dtype=float), baseline=sample(data, 3), plan="exhaustive", budget=None)
    alone = np.mean([[float(F.game(x, base)[frozenset({i})]) for i in range(n)] for base in bases], axis=0)
    return [
        near("3 baselines: shapley", shapley, lambda: run.shapley().values, "Explanation.shapley"),
        near(
            "3 baselines: integrated gradients",
            rays,
            lambda: run.integrated_gradients().values,
            "Explanation.integrated_gradients",
        ),
        near("3 baselines: singles", alone, lambda: run.singles().values, "Explanation.singles"),
    ]
