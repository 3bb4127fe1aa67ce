"""Which rays the library's plans draw, how often, and at what cost."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import numpy as np

from gralis import estimators, models, plans
from gralis.api.explain import explain
from gralis.baselines import sample
from gralis.kernels import Gaussian, Uniform
from gralis.ledger import Ledger
from gralis.paper import rational
from gralis.paper.claim_row import ClaimRow, at_most, collect, equal, near
from gralis.paper.library_plans import BASE, GAUSSIAN, SMALL, X, explained, gaussian, polynomial
from gralis.paper.rational import Polynomial, subsets
from gralis.plans import registry
from gralis.results.explanation import Explanation

_N = 6
_POLYNOMIAL = Polynomial.random(np.random.default_rng(40), _N, degree=1, n_terms=8)


def rows() -> list[ClaimRow]:
    return collect(_independent, _permutation, _values, _shared, _names)


def _rows_of(explanation: Explanation) -> Ledger:
    return explanation.ledger.require_rows("The design")


def _independent() -> list[ClaimRow]:
    """How often each coalition of three features is drawn, against q."""
    n, m, x = 3, 3000, np.array([0.3, 1.0, 2.0])
    found = explain(lambda z: z.sum(1), x, kernel=Gaussian(1.0, "euclidean"), plan="independent", budget=m)
    coalitions = [[j for j in range(n) if code >> j & 1] for code in range(1, 2**n)]
    weight = np.array([np.exp(-(x[t] ** 2).sum() / 2) / (len(t) * comb(n, len(t))) for t in coalitions])
    q = weight / weight.sum()
    codes = _rows_of(found).masks @ (1 << np.arange(n)) - 1
    m = len(codes)
    score = np.abs(np.bincount(codes, minlength=len(q)) - m * q) / np.sqrt(m * q * (1 - q))
    nodes = _rows_of(found).node
    return [
        at_most("independent: 3000 rays against q, largest standard score", 4.5, score.max(), "plans.independent"),
        at_most(
            "independent: mean node off 1/2, in standard errors",
            4.5,
            abs(nodes.mean() - 0.5) * np.sqrt(12 * len(nodes)),
            "plans.independent",
        ),
    ]


def _permutation() -> list[ClaimRow]:
    plan = plans.permutation(20)
    ledger = _rows_of(explain(_POLYNOMIAL.of_rows, np.ones(_N), plan=plan, n_nodes=1, budget=None))
    orders = ledger.owner.reshape(10, 2, _N)
    prefixes = [[set(order[: k + 1].tolist()) for k in range(_N)] for order in orders.reshape(-1, _N)]
    masks = [[set(np.flatnonzero(mask).tolist()) for mask in part] for part in ledger.masks.reshape(-1, _N, _N)]
    source = "plans.permutation"
    return [
        equal(
            "20 antithetic permutations: 10 pairs of an order and its reverse",
            True,
            lambda: bool((orders[:, 1] == orders[:, 0, ::-1]).all()),
            source,
        ),
        equal(
            "every order is a permutation", True, lambda: bool((np.sort(orders, axis=2) == np.arange(_N)).all()), source
        ),
        equal("the coalition of a ray: those who joined so far", True, lambda: masks == prefixes, source),
        equal("10 different first orders", 10, lambda: len({tuple(order) for order in orders[:, 0].tolist()}), source),
    ]


def _values() -> list[ClaimRow]:
    """Rates and costs with six features, where coalitions of three are their own complements' size."""
    budget = 40
    found = explain(_POLYNOMIAL.of_rows, np.ones(_N), plan="values", budget=budget)
    ledger = _rows_of(found)
    others = [explain(_POLYNOMIAL.of_rows, np.ones(_N), plan="values", budget=budget, seed=seed) for seed in range(8)]
    stands_for = np.mean([_stands_for(_rows_of(other)) for other in others])
    distinct = len({mask.tobytes() for mask in ledger.masks})
    source = "plans.values"
    return [
        near(
            "values: rows of three of six stand for all 20 of them", float(comb(_N, _N // 2)), stands_for, source, 6.0
        ),
        equal(
            "values: sizes listed in full if their share of 25 and of 29 pairs allows",
            [[1], [1, 2]],
            lambda: [_listed(2 + 2 * n_pairs) for n_pairs in (25, 29)],
            source,
        ),
        equal("values: no coalition twice", len(ledger.masks), distinct, source),
        equal("values: every coalition with its complement", True, lambda: _complements(ledger), source),
        at_most("values: forwards", budget, found.cost.n_forwards, source),
    ]


def _listed(budget: int) -> object:
    """There are 6, 15 and 10 pairs of sizes 1, 2 and 3. Size 3 gets half a share, because it is its own complement."""
    return explain(_POLYNOMIAL.of_rows, np.ones(_N), plan="values", budget=budget).plan["listed_sizes"]


def _stands_for(ledger: Ledger) -> float:
    """How many coalitions of half the features the rows of one replicate stand for."""
    half = (ledger.sizes == _N // 2) & (ledger.replicate >= 0)
    return float(np.exp(-ledger.log_rate[half]).sum() / ledger.n_replicates)


def _complements(ledger: Ledger) -> bool:
    seen = {mask.tobytes() for mask in ledger.masks}
    return all((~mask).tobytes() in seen for mask in ledger.masks if not mask.all())


def _shared() -> list[ClaimRow]:
    """Three baselines, sampled rays: phi is the mean of the three."""
    rng = np.random.default_rng(41)
    bases = rng.integers(-2, 3, (3, _N)) / 4
    x = tuple(Fraction(1) for _ in range(_N))
    each = [rational.gralis(_POLYNOMIAL, x, tuple(Fraction(float(b)) for b in base)) for base in bases]
    truth = np.mean([np.array(phi, dtype=float) for phi in each], axis=0)
    baseline = sample(bases, 3)
    runs = [
        explain(_POLYNOMIAL.of_rows, np.ones(_N), baseline=baseline, kernel=Uniform(), budget=300, seed=seed)
        for seed in range(3)
    ]
    near_ones = explain(_POLYNOMIAL.of_rows, np.ones(_N), kernel=Gaussian(0.6, "euclidean"), budget=300)
    off = np.mean([run.values for run in runs], axis=0) - truth
    error = np.sqrt(np.mean([run.stderr**2 for run in runs], axis=0) / len(runs))
    singles = [
        mask for mask in _rows_of(explain(_POLYNOMIAL.of_rows, np.ones(7)[:_N], budget=100)).masks if mask.sum() == 1
    ]
    source = "plans.shared"
    return [
        at_most(
            "shared, 3 baselines: mean of 3 runs off the truth, in standard errors",
            6.0,
            float((np.abs(off) / error).max()),
            source,
        ),
        at_most(
            "shared, 3 baselines: error / largest |phi|", 0.1, float(np.abs(off).max() / np.abs(truth).max()), source
        ),
        near(
            "shared, 3 baselines: the weights of a feature's rays sum to",
            1.0,
            lambda: float(np.mean([_total_weight(run) for run in runs])),
            source,
            0.1,
        ),
        near(
            "shared, 1 baseline: with the features alone, which are known, to",
            1.0,
            lambda: _total_weight(near_ones),
            source,
            0.1,
        ),
        equal(
            "shared: every feature alone is in the ledger",
            len([t for t in subsets(range(_N)) if len(t) == 1]),
            len({mask.tobytes() for mask in singles}),
            source,
        ),
    ]


def _total_weight(run: Explanation) -> float:
    """The weights of all rays in the value of a feature, plus its share of what is known; the mean over features."""
    ledger, estimator = _rows_of(run), run.design.estimator
    return float((estimator.shares(ledger, run.design).sum(0) + estimator.known_share(ledger, run.design)).mean())


def _names() -> list[ClaimRow]:
    names = ("shared", "exhaustive", "permutation", "independent", "endpoint", "values")
    run = explained(SMALL, plan="exhaustive", budget=None, kernel=GAUSSIAN)
    phi = rational.gralis(polynomial(SMALL), X[SMALL], BASE[SMALL], gaussian(SMALL))
    return [
        equal("the names of the plans", names, lambda: plans.names()[:6], "plans.names"),
        equal("a plan by its name", names, lambda: [plans.as_plan(name).name for name in names], "plans.as_plan"),
        near(
            "an estimator by the name that its plan states",
            phi,
            lambda: estimators.by_name(run.plan["estimator"]).estimates([run.ledger], [run.design])[0].values,
            "estimators.by_name",
        ),
        near(
            "a registered plan under its name",
            phi,
            lambda: _registered_plan().values,
            "plans.register",
        ),
        equal("a registered estimator by its name", "verify-mine", _registered_estimator, "estimators.register"),
        near(
            "a black box: endpoint values need no gradient",
            rational.endpoint(polynomial(SMALL).game(X[SMALL], BASE[SMALL]), SMALL),
            lambda: _black_box().values,
            "plans.endpoint",
        ),
    ]


def _black_box() -> Explanation:
    F = polynomial(SMALL)
    x, base = (np.array(end, dtype=np.float64) for end in (X[SMALL], BASE[SMALL]))
    blind = models.blackbox(lambda z: np.array([float(F([Fraction(float(c)) for c in row])) for row in z]))
    return explain(blind, x, baseline=base, plan="endpoint", kernel=Uniform(), budget=None)


class _Mine(plans.Plan):
    """The exhaustive plan under another name."""

    name = "verify-mine"

    def settle(self, task: plans.PlanningTask, probe: plans.Probe) -> plans.Schedule:
        return plans.exhaustive().settle(task, probe)


def _registered_plan() -> Explanation:
    plans.register("verify-mine", _Mine)
    try:
        return explained(SMALL, plan="verify-mine", budget=None, kernel=GAUSSIAN)
    finally:
        registry._FACTORIES.pop("verify-mine", None)


class _MyRays(type(estimators.WEIGHTED)):  # type: ignore[misc]
    """The estimator of weighted rays under another name."""

    name = "verify-mine"


def _registered_estimator() -> str:
    estimators.register(_MyRays())
    try:
        return estimators.by_name("verify-mine").name
    finally:
        estimators._BY_NAME.pop("verify-mine", None)
