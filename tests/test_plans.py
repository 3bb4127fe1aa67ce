"""One statistical contract over all plans, with the exhaustive plan as the truth; rates, honest errors, replicates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

import gralis
from gralis import Explanation, Gaussian, GralisError, SizeKernel, Uniform, explain, plans
from gralis.estimators import WEIGHTED, Design
from gralis.kernels import Kernel, as_kernel
from gralis.ledger import Ledger
from gralis.plans import Plan, PlanningTask, Probe, RayRequest, Schedule, as_plan, registry
from reference import (
    APPENDIX_E,
    Model,
    algorithm_1,
    endpoint,
    game,
    gaussian,
    network,
    of_masks,
    point,
    shapley_by_orders,
    torch_polynomial,
    uniform,
)

N = 6
SMOOTH, KINKED = network("softplus", N, 2), network("relu", N, 3)
X = point(N, 2)
SEVERAL = gralis.baselines.sample(np.random.default_rng(5).standard_normal((3, N)) * 0.4)


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """Thousands of tiny products: threads only get in each other's way."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        yield
    else:
        with threadpool_limits(1):
            yield
    torch.set_num_threads(before)


def rugged(masks: np.ndarray) -> np.ndarray:
    """A kernel that is no product and no function of the size."""
    return 0.1 + np.abs(np.sin((masks * np.arange(1, masks.shape[1] + 1)).sum(1)))


KERNELS = {
    "uniform": Uniform(),
    "gaussian": Gaussian(0.3),
    "size": SizeKernel(lambda s: (1 + s) * 0.5**s),
    "callable": rugged,
}


def run(model: Model, seed: int = 0, **options) -> Explanation:
    return explain(model, X, **{"kernel": Uniform(), "batch_size": 8192, "seed": seed, **options})


def truth(model: Model, **options) -> np.ndarray:
    """phi by enumeration; very many nodes where there are kinks, which no rule integrates exactly."""
    if model is KINKED and "n_nodes" not in options:
        options = {**options, "quadrature": "midpoint", "n_nodes": 4000}
    # Without coalition values the rays of single features are integrated by the same nodes as the others.
    explanation = run(model, plan="exhaustive", budget=None, **{"coalition_values": False, **options})
    assert explanation.ledger.enumerates
    return explanation.values


def values_over_seeds(model: Model, n_seeds: int, **options) -> np.ndarray:
    """(n_seeds, n_features); a sampled plan that became exhaustive would prove nothing."""
    explanations = [run(model, seed=seed, **options) for seed in range(n_seeds)]
    assert {e.plan["name"] for e in explanations} == {as_plan(options["plan"]).name}
    return np.array([e.values for e in explanations])


def z_scores(values: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """How many standard errors of their mean the values lie off."""
    error = values.std(0, ddof=1) / math.sqrt(len(values))
    assert (error > 1e-9).all(), "nothing varies: this is no sampled plan"
    return (values.mean(0) - expected) / error


# ---- the contract: the mean over seeds is the exhaustive value

FIXED = {"quadrature": "gauss-legendre", "n_nodes": 4}
CONTRACT: dict[str, tuple[Model, dict, dict]] = {}  # name: model, options of the plan, options of the truth as well
for _name, _kernel in KERNELS.items():
    CONTRACT[f"shared, {_name}"] = (SMOOTH, {"plan": "shared", "budget": 150}, {"kernel": _kernel})
    CONTRACT[f"independent, {_name}"] = (
        SMOOTH,
        {"plan": "independent", "budget": 60, "replicates": 2},
        {"kernel": _kernel},
    )
CONTRACT |= {
    "shared, no values": (SMOOTH, {"plan": "shared", "budget": 150, "coalition_values": False}, {}),
    "shared, gaussian, no values": (
        SMOOTH,
        {"plan": "shared", "budget": 150, "coalition_values": False},
        {"kernel": Gaussian(0.3)},
    ),
    "shared, kinks": (KINKED, {"plan": "shared", "budget": 150}, {"kernel": Gaussian(0.75)}),
    "shared, kinks, one node": (KINKED, {"plan": "shared", "budget": 60, "n_nodes": 1, "quadrature": "random"}, {}),
    "shared, kinks, no values": (KINKED, {"plan": "shared", "budget": 150, "coalition_values": False}, {}),
    "shared, fixed nodes": (SMOOTH, {"plan": "shared", "budget": 200}, FIXED),
    "shared, several baselines": (
        SMOOTH,
        {"plan": "shared", "budget": 240},
        {"baseline": SEVERAL, "kernel": Gaussian(0.5)},
    ),
    "independent, kinks": (KINKED, {"plan": "independent", "budget": 60, "replicates": 2}, {}),
    "independent, several baselines": (
        SMOOTH,
        {"plan": "independent", "budget": 90, "replicates": 2},
        {"baseline": SEVERAL, "kernel": SizeKernel(lambda s: 0.7**s)},
    ),
    "permutation, uniform": (SMOOTH, {"plan": plans.permutation(2)}, FIXED),
    "permutation, uniform, not antithetic": (SMOOTH, {"plan": plans.permutation(2, antithetic=False)}, FIXED),
    "permutation, uniform, random nodes": (
        KINKED,
        {"plan": plans.permutation(2), "quadrature": "random", "n_nodes": 2},
        {},
    ),
    "permutation, uniform, several baselines": (
        SMOOTH,
        {"plan": plans.permutation(2), "budget": None},
        {**FIXED, "baseline": SEVERAL},
    ),
}


@pytest.mark.parametrize("name", CONTRACT)
def test_unbiased_against_the_exhaustive_plan(name: str) -> None:
    check_contract(name, 20 if name.startswith("shared") else 80)


@pytest.mark.slow
@pytest.mark.parametrize("name", CONTRACT)
def test_unbiased_against_the_exhaustive_plan_over_many_seeds(name: str) -> None:
    check_contract(name, 400)


def check_contract(name: str, n_seeds: int) -> None:
    model, options, shared = CONTRACT[name]
    expected = truth(model, **shared)
    z = z_scores(values_over_seeds(model, n_seeds, **options, **shared), expected)
    assert np.abs(z).max() < 4.5, f"z = {z.round(1)}"


def test_a_small_exhaustive_budget_is_not_what_was_tested() -> None:
    """The budgets above are below what makes `shared` enumerate; above it, it does, and is exact."""
    assert run(SMOOTH, plan="shared", budget=8 * (2**N - 1) - 1).plan["name"] == "shared"
    explanation = run(SMOOTH, plan="shared", budget=8 * (2**N - 1))
    assert explanation.plan["name"] == "exhaustive"
    np.testing.assert_allclose(explanation.values, truth(SMOOTH), rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", KERNELS)
def test_three_features_are_enough_to_sample(name: str) -> None:
    """So few that even the widest proposal falls on single features half of the time."""
    model, x, kernel = network("softplus", 3, 1), point(3, 1), KERNELS[name]
    expected = explain(model, x, kernel=kernel, plan="exhaustive", budget=None).values
    explanations = [explain(model, x, kernel=kernel, budget=40, seed=seed) for seed in range(25)]
    assert {e.plan["name"] for e in explanations} == {"shared"}
    assert np.abs(z_scores(np.array([e.values for e in explanations]), expected)).max() < 4.5


@pytest.mark.parametrize("coalition_values", [True, False])
@pytest.mark.parametrize(
    "kernel",
    [SizeKernel(lambda s: float(s == 0)), lambda masks: (~masks.any(1)).astype(float)],
    ids=["size", "callable"],
)
def test_a_kernel_on_the_empty_coalition_alone_leaves_the_single_features(
    kernel: object, coalition_values: bool
) -> None:
    """Nothing is left for coalitions of two and more; with values the census knows the answer without error."""
    v = game(SMOOTH, X, np.zeros(N))
    expected = np.array([v(frozenset({i})) for i in range(N)])
    explanation = run(SMOOTH, kernel=kernel, budget=150, coalition_values=coalition_values)
    if coalition_values:
        np.testing.assert_allclose(explanation.values, expected, rtol=0, atol=1e-10)
    assert (np.abs(explanation.values - expected) <= 6 * explanation.stderr + 1e-10).all()


# ---- endpoint


@pytest.mark.parametrize("name", KERNELS)
def test_endpoint_is_exact_when_it_sees_every_coalition(name: str) -> None:
    kernel = KERNELS[name]
    reference = {
        "uniform": uniform,
        "gaussian": gaussian(X**2, 0.3, "relative"),
        "size": lambda s: (1 + len(s)) * 0.5 ** len(s),
        "callable": of_masks(rugged, N),
    }[name]
    explanation = run(KINKED, plan="endpoint", budget=2**N, kernel=kernel)
    np.testing.assert_allclose(
        explanation.values, endpoint(game(KINKED, X, np.zeros(N)), N, reference), rtol=0, atol=1e-10
    )
    assert (explanation.stderr == 0).all()
    assert explanation.cost.n_gradients == 0


def test_endpoint_with_the_uniform_kernel_are_the_shapley_values() -> None:
    explanation = run(KINKED, plan="endpoint", budget=None)
    expected = shapley_by_orders(game(KINKED, X, np.zeros(N)), N)
    np.testing.assert_allclose(explanation.values, expected, rtol=0, atol=1e-10)
    assert explanation.values.sum() == pytest.approx(explanation.delta, abs=1e-10)


def test_endpoint_averages_over_baselines() -> None:
    explanation = run(SMOOTH, plan="endpoint", budget=None, kernel=Gaussian(0.5), baseline=SEVERAL)
    apart = [endpoint(game(SMOOTH, X, b), N, gaussian((X - b) ** 2, 0.5, "relative")) for b in SEVERAL.X]
    np.testing.assert_allclose(explanation.values, np.mean(apart, axis=0), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", KERNELS)
def test_sampled_endpoint_is_unbiased(name: str) -> None:
    """Z is known, so there is no ratio and no bias, whatever the kernel."""
    kernel = KERNELS[name]
    expected = run(KINKED, plan="endpoint", budget=None, kernel=kernel).values
    values = values_over_seeds(KINKED, 200, plan="endpoint", budget=26, kernel=kernel)
    assert np.abs(z_scores(values, expected)).max() < 4.5


# ---- honest errors


@pytest.mark.parametrize(("kind", "n", "kernel"), [("softplus", 7, Uniform()), ("relu", 8, Gaussian(0.75))])
def test_stated_errors_of_the_shared_plan_are_honest(kind: str, n: int, kernel: Kernel) -> None:
    check_honesty(32, kind, n, kernel)


@pytest.mark.slow
@pytest.mark.parametrize("n", [6, 7, 8])
@pytest.mark.parametrize("kind", ["softplus", "relu", "tanh"])
@pytest.mark.parametrize(
    "kernel", [Uniform(), Gaussian(0.75), Gaussian(0.3), rugged], ids=["uniform", "0.75", "0.3", "rugged"]
)
def test_stated_errors_of_the_shared_plan_are_honest_everywhere(kernel: object, kind: str, n: int) -> None:
    check_honesty(150, kind, n, kernel)


def check_honesty(n_seeds: int, kind: str, n: int, kernel: object) -> None:
    """The error over seeds in units of the stated one; ten replicates make Student's t, whose RMS is 1.12."""
    model, x, options = network(kind, n, 4), point(n, 4), {"kernel": kernel, "batch_size": 8192}
    nodes = {"quadrature": "midpoint", "n_nodes": 2000} if kind == "relu" else {}
    expected = explain(model, x, plan="exhaustive", budget=None, **nodes, **options).values
    explanations = [explain(model, x, budget=300, seed=seed, **options) for seed in range(n_seeds)]
    assert all(e.plan["name"] == "shared" for e in explanations)
    errors, stated = (
        np.array([e.values - expected for e in explanations]),
        np.array([e.estimate.sampling_error for e in explanations]),
    )
    assert 0.75 < math.sqrt(((errors**2).mean(0) / (stated**2).mean(0)).mean()) < 1.25
    assert 0.7 < math.sqrt(((errors / stated) ** 2).mean()) < 1.4


@pytest.mark.parametrize("plan", ["independent", plans.permutation(20), "endpoint"], ids=lambda p: as_plan(p).name)
def test_stated_errors_of_the_other_plans_are_honest(plan: object) -> None:
    budget = {"independent": 400, "permutation": None, "endpoint": 62}[as_plan(plan).name]
    options = {"plan": plan, "budget": budget, **(FIXED if plan != "endpoint" else {})}
    exact = {"plan": "endpoint"} if plan == "endpoint" else {"plan": "exhaustive", **FIXED}
    expected = run(SMOOTH, budget=None, **exact).values
    explanations = [run(SMOOTH, seed=seed, **options) for seed in range(60)]
    errors, stated = np.array([e.values - expected for e in explanations]), np.array([e.stderr for e in explanations])
    assert 0.8 < math.sqrt(((errors**2).mean(0) / (stated**2).mean(0)).mean()) < 1.25


# ---- Algorithm 1 to the letter

ORDERS = np.array([[2, 0, 5, 1, 4, 3], [5, 4, 3, 2, 1, 0], [0, 3, 1, 4, 2, 5]])


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("model", [SMOOTH, KINKED], ids=["smooth", "kinked"])
def test_permutation_is_algorithm_1_for_given_orders(model: Model, name: str) -> None:
    reference = {
        "uniform": uniform,
        "gaussian": gaussian((X - 0.2) ** 2, 0.3, "relative"),
        "size": lambda s: (1 + len(s)) * 0.5 ** len(s),
        "callable": of_masks(rugged, N),
    }[name]
    expected = algorithm_1(model, X, np.full(N, 0.2), reference, ORDERS, 10)
    plan = plans.permutation(orders=ORDERS)
    explanation = run(model, plan=plan, budget=None, kernel=KERNELS[name], baseline=0.2)
    np.testing.assert_allclose(explanation.values, expected, rtol=0, atol=1e-12)
    assert explanation.cost.n_gradients == 3 * N * 10


@pytest.mark.parametrize("k", [1, 3, 25])
def test_permutation_with_any_number_of_midpoints(k: int) -> None:
    expected = algorithm_1(KINKED, X, np.zeros(N), gaussian(X**2, 0.6, "euclidean"), ORDERS, k)
    plan = plans.permutation(orders=ORDERS)
    explanation = run(KINKED, plan=plan, budget=None, n_nodes=k, kernel=Gaussian(0.6, "euclidean"))
    np.testing.assert_allclose(explanation.values, expected, rtol=0, atol=1e-12)


def drawn_orders(explanation: Explanation) -> np.ndarray:
    """The permutations behind a ledger: the owners of its rays, in order."""
    return explanation.ledger.owner.reshape(-1, N)


@pytest.mark.parametrize("antithetic", [True, False])
@pytest.mark.parametrize("kernel", [Uniform(), Gaussian(0.3)], ids=["uniform", "gaussian"])
def test_permutation_is_algorithm_1_for_the_orders_it_draws(kernel: Kernel, antithetic: bool) -> None:
    explanation = run(SMOOTH, seed=3, plan=plans.permutation(6, antithetic=antithetic), budget=None, kernel=kernel)
    orders = drawn_orders(explanation)
    assert orders.shape == (6, N)
    assert (np.sort(orders, axis=1) == np.arange(N)).all()
    assert len({tuple(order) for order in orders}) == 6
    if antithetic:
        assert (orders[1::2] == orders[::2, ::-1]).all()
    reference = uniform if kernel == Uniform() else gaussian(X**2, 0.3, "relative")
    expected = algorithm_1(SMOOTH, X, np.zeros(N), reference, orders, 10)
    np.testing.assert_allclose(explanation.values, expected, rtol=0, atol=1e-12)


def test_permutations_are_uniform() -> None:
    """Every feature is equally often at every place, and every pair in either order."""
    orders = drawn_orders(run(SMOOTH, plan=plans.permutation(1200, antithetic=False), budget=None, n_nodes=1))
    places = np.array([(orders == i).sum(0) for i in range(N)])
    assert np.abs(places - 200).max() < 4.5 * math.sqrt(1200 * (1 / 6) * (5 / 6))
    rank = np.argsort(orders, axis=1)
    before = [(rank[:, i] < rank[:, j]).sum() for i, j in itertools.combinations(range(N), 2)]
    assert np.abs(np.array(before) - 600).max() < 4.5 * math.sqrt(1200 / 4)


def no_empty(masks: np.ndarray) -> np.ndarray:
    """Zero on the coalition without members, so a feature that always comes first has Z = 0."""
    return masks.any(1) * 0.5


def test_undivided_where_the_kernel_is_zero_on_every_drawn_coalition() -> None:
    orders = np.array([[2, 0, 5, 1, 4, 3], [2, 1, 0, 3, 4, 5]])  # feature 2 always comes first
    plan = plans.permutation(orders=orders)
    with pytest.warns(UserWarning, match=r"features \[2\]"):
        explanation = run(SMOOTH, plan=plan, budget=None, kernel=no_empty)
    expected = algorithm_1(SMOOTH, X, np.zeros(N), of_masks(no_empty, N), orders, 10)
    assert explanation.values[2] == 0.0  # the undivided sum of nothing
    np.testing.assert_allclose(explanation.values, expected, rtol=0, atol=1e-12)


# ---- the ratio bias of Algorithm 1


def test_the_ratio_is_biased_under_a_gaussian_and_less_so_with_more_permutations() -> None:
    """With one permutation the kernel cancels, so the mean is the *uniform* phi; with more it moves to the truth."""
    kernel = Gaussian(0.3)
    expected, flat = truth(SMOOTH, kernel=kernel, **FIXED), truth(SMOOTH, **FIXED)
    bias = {}
    for m, n_seeds in ((1, 300), (4, 250), (32, 60)):
        plan = plans.permutation(m, antithetic=False)
        values = values_over_seeds(SMOOTH, n_seeds, plan=plan, budget=None, kernel=kernel, **FIXED)
        bias[m] = np.linalg.norm(values.mean(0) - expected)
        z = np.abs(z_scores(values, expected)).max()
        if m == 1:
            assert z > 10  # plain to see
            assert np.abs(z_scores(values, flat)).max() < 4.5
        if m == 4:
            assert z > 5  # still there
    assert bias[1] > 1.8 * bias[4] > 1.8 * 1.8 * bias[32]


def test_shared_has_no_such_bias_at_the_same_small_budget() -> None:
    """One permutation of four nodes costs 24 gradients; the least budget of `shared` is a few of them."""
    kernel = Gaussian(0.3)
    values = values_over_seeds(SMOOTH, 40, plan="shared", budget=72, kernel=kernel)
    assert np.abs(z_scores(values, truth(SMOOTH, kernel=kernel))).max() < 4.5


# ---- antithetic permutations: the sign of Cov[Q_pi, Q_rev]


def covariance_of_halves(model: Model, n_pairs: int = 400) -> tuple[float, float]:
    """Summed over the features: Cov[Q_pi, Q_rev] and Var[Q_pi], Q_pi the contributions along one permutation."""
    ledger = run(model, plan=plans.permutation(2 * n_pairs), budget=None, **FIXED).ledger
    own = ledger.rays[np.arange(ledger.n_rays), ledger.owner].reshape(-1, N)
    q = np.take_along_axis(own, np.argsort(ledger.owner.reshape(-1, N), axis=1), axis=1)
    first, second = q[::2] - q.mean(0), q[1::2] - q.mean(0)
    return float((first * second).sum(1).mean()), float((first**2 + second**2).sum(1).mean() / 2)


def pairwise(z: torch.Tensor) -> torch.Tensor:
    """Affine plus products of two: odd in "who came before"."""
    return z.sum(1) + z[:, 0] * z[:, 1] - 2 * z[:, 2] * z[:, 5] + z[:, 3] * z[:, 4]


def even(z: torch.Tensor) -> torch.Tensor:
    """3 abc - ab - ac - bc at x = (1, 1, 1): the ray of a is [b and c before] - ([b] + [c]) / 2, the same for S and its
    complement, so an order and its reverse say the same."""
    a, b, c = (z[:, j] / X[j] for j in range(3))
    return 3 * a * b * c - a * b - a * c - b * c


def test_reverse_orders_cancel_pairwise_interactions_altogether() -> None:
    covariance, variance = covariance_of_halves(pairwise)
    assert covariance == pytest.approx(-variance, rel=1e-9)
    explanation = run(pairwise, plan=plans.permutation(2), budget=None)
    np.testing.assert_allclose(explanation.values, truth(pairwise, **FIXED), rtol=0, atol=1e-10)


def test_reverse_orders_repeat_an_even_function() -> None:
    """Antithetic is no free lunch: here the sign is positive and a pair is worth one permutation."""
    covariance, variance = covariance_of_halves(even)
    assert covariance == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize("model", [SMOOTH, KINKED], ids=["smooth", "kinked"])
def test_reverse_orders_help_on_networks(model: Model) -> None:
    """Cov < 0 as measured, and hence a smaller variance than independent permutations at equal budget."""
    covariance, variance = covariance_of_halves(model)
    assert covariance < -0.2 * variance
    in_pairs, apart = (
        values_over_seeds(model, 150, plan=plans.permutation(4, antithetic), budget=None, **FIXED).var(0).sum()
        for antithetic in (True, False)
    )
    assert in_pairs < 0.8 * apart
    assert in_pairs / apart == pytest.approx(1 + covariance / variance, rel=0.5)


# ---- rates


def rmse(model: Model, expected: np.ndarray, n_seeds: int, **options) -> float:
    return float(np.sqrt(((values_over_seeds(model, n_seeds, **options) - expected) ** 2).mean()))


def test_error_of_independent_draws_falls_as_the_root_of_the_budget() -> None:
    expected, options = truth(SMOOTH), {"plan": "independent", "replicates": 2}
    few, many = (rmse(SMOOTH, expected, 12, budget=budget, **options) for budget in (200, 3200))
    slope = math.log(many / few) / math.log(3200 / 200)
    assert -0.65 < slope < -0.35


def test_error_of_permutations_falls_as_the_root_of_their_number() -> None:
    counts, expected = np.array([4, 16, 64]), truth(SMOOTH, **FIXED)
    errors = [rmse(SMOOTH, expected, 40, plan=plans.permutation(int(m)), budget=None, **FIXED) for m in counts]
    slope = np.polyfit(np.log(counts), np.log(errors), 1)[0]
    assert -0.65 < slope < -0.35


def test_shared_is_better_than_either_at_the_same_budget() -> None:
    expected = truth(SMOOTH)
    shared = rmse(SMOOTH, expected, 20, plan="shared", budget=240)
    independent = rmse(SMOOTH, expected, 20, plan="independent", budget=240, replicates=2)
    permutation = rmse(SMOOTH, expected, 20, plan=plans.permutation(4), budget=240)
    assert shared < independent / 3
    assert shared < permutation / 3


# ---- plans by name, and plans from outside


class Outside:
    """A plan that knows nothing of gralis but the two things that make a plan."""

    name = "outside"

    def settle(self, task: PlanningTask, probe: Probe) -> Schedule:
        return plans.independent().settle(task, probe)


def test_every_name_makes_the_plan_of_that_name() -> None:
    built_in = ("shared", "exhaustive", "permutation", "independent", "endpoint", "values")
    assert plans.names()[: len(built_in)] == built_in
    for name in built_in:
        assert as_plan(name).name == registry.make(name).name == name
        assert registry.make(name, **as_plan(name).options()).options() == as_plan(name).options()
    assert [name for name in built_in if as_plan(name).counts_forwards] == ["endpoint", "values"]
    assert [name for name in built_in if as_plan(name).may_fold] == ["shared", "independent"]


def test_an_object_with_a_name_and_settle_is_a_plan() -> None:
    outside, inside = run(SMOOTH, plan=Outside(), budget=100), run(SMOOTH, plan="independent", budget=100)
    assert np.array_equal(outside.values, inside.values)
    assert outside.provenance["plan"] == "outside"
    plan = as_plan(Outside())
    assert isinstance(plan, Plan)
    assert (plan.counts_forwards, plan.may_fold, plan.options()) == (False, False, {})


def test_a_registered_plan_is_known_by_its_name() -> None:
    with pytest.raises(GralisError, match=r"'plan' parameter of explain must be one of 'shared'.*'outside'"):
        run(SMOOTH, plan="outside")
    plans.register("outside", Outside)
    assert plans.names()[-1] == "outside"
    assert np.array_equal(
        run(SMOOTH, plan="outside", budget=100).values, run(SMOOTH, plan=Outside(), budget=100).values
    )
    plans.register("six", lambda: plans.permutation(6))
    assert as_plan("six").options()["n_permutations"] == 6


@pytest.mark.parametrize("name", ["shared", "values", "", 3])
def test_the_names_of_gralis_itself_stay(name: object) -> None:
    with pytest.raises(GralisError, match=r"'name' parameter of plans.register must be a string other than"):
        plans.register(name, Outside)
    with pytest.raises(GralisError, match=r"'factory' parameter of plans.register"):
        plans.register("outside", "Outside")


@pytest.mark.parametrize("plan", [Outside, plans.shared, object(), "Shared", None])
def test_what_is_no_plan_is_refused(plan: object) -> None:
    with pytest.raises(GralisError, match=r"'plan' parameter of explain .*a plan from gralis\.plans"):
        as_plan(plan)


# ---- replicates


def a_task(kernel: object = Gaussian(0.3), **changes) -> PlanningTask:
    options = {
        "kernel": as_kernel(kernel),
        "squared_distance": np.array([X**2]),
        "baseline_weights": np.ones(1),
        "budget": 300,
        "seed": 7,
        "quadrature": None,
        "n_nodes": None,
        "replicates": 6,
        "with_values": True,
    }
    return PlanningTask(**{**options, **changes})


def by_chance(request: RayRequest) -> tuple[Ledger, ...]:
    """A pilot of made-up gradients."""
    gradient = np.random.default_rng(0).standard_normal((request.n_points, N)) * np.exp(
        -3 * request.nodes.reshape(-1, 1)
    )
    return (Ledger.record(request, gradient, np.full(request.n_rays, np.nan)),)


def settled(plan: object, **changes) -> Schedule:
    return as_plan(plan).settle(a_task(**changes), by_chance)


SAMPLED = ["shared", "independent", plans.permutation(12), "endpoint"]
each_plan = pytest.mark.parametrize("plan", SAMPLED, ids=lambda p: as_plan(p).name)


def endpoint_budget(plan: object) -> dict:
    return (
        {"budget": 60, "replicates": 4} if plan == "endpoint" else {"budget": None} if not isinstance(plan, str) else {}
    )


def same(one: RayRequest, other: RayRequest) -> bool:
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in RayRequest.__dataclass_fields__)


@each_plan
def test_a_replicate_is_a_pure_function_of_seed_and_number(plan: object) -> None:
    schedule, again = settled(plan, **endpoint_budget(plan)), settled(plan, **endpoint_budget(plan))
    assert same(schedule.replicate(3), schedule.replicate(3))
    assert same(schedule.replicate(3), again.replicate(3))  # and of no replicate that was made before it
    assert same(schedule.replicate(3), schedule.more(40).replicate(3))
    other = settled(plan, **{**endpoint_budget(plan), "seed": 8})
    assert not np.array_equal(schedule.replicate(3).masks, other.replicate(3).masks)
    assert not np.array_equal(schedule.replicate(3).masks, schedule.replicate(2).masks)


@each_plan
def test_the_global_generators_are_not_touched(plan: object) -> None:
    state, tensor_state = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    run(SMOOTH, plan=plan, **endpoint_budget(plan))
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002
    assert torch.equal(torch.get_rng_state(), tensor_state)


@each_plan
@pytest.mark.parametrize("kernel", [Uniform(), Gaussian(0.3)], ids=["uniform", "gaussian"])
def test_extending_leaves_the_first_replicates_as_they_were(plan: object, kernel: Kernel) -> None:
    budget = endpoint_budget(plan) if plan != "shared" else {"budget": 200}
    first = run(KINKED, plan=plan, kernel=kernel, **budget)
    longer = first.extend(240)
    r = first.ledger.n_replicates
    assert longer.ledger.n_replicates > r
    kept = longer.ledger.take(longer.ledger.replicate < r)
    for name, column in first.ledger.arrays().items():
        np.testing.assert_array_equal(kept.arrays()[name], column, err_msg=name)
    new = longer.ledger.take(longer.ledger.replicate >= r)
    assert new.n_rays == longer.ledger.n_rays - first.ledger.n_rays


def test_extending_equals_having_asked_for_more_at_once() -> None:
    options = {"plan": "independent", "kernel": Uniform(), "n_nodes": 1}
    longer = run(KINKED, budget=160, replicates=8, **options).extend(80)
    at_once = run(KINKED, budget=240, replicates=12, **options)
    np.testing.assert_allclose(longer.values, at_once.values, rtol=0, atol=1e-12)
    np.testing.assert_allclose(longer.stderr, at_once.stderr, rtol=0, atol=1e-12)


def replicate_errors(n_seeds: int, **options) -> np.ndarray:
    """The error of every replicate on its own, without any adjustment: (n_seeds, n_replicates, n_features)."""
    expected, errors = truth(SMOOTH), []
    for seed in range(n_seeds):
        ledger = run(SMOOTH, seed=seed, coalition_values=False, **options).ledger
        result = Design(Uniform(), np.array([X**2]), np.ones(1), WEIGHTED).estimate(ledger)
        errors.append(result.values + result.departures - expected)
    return np.array(errors)


@pytest.mark.parametrize(
    "options",
    [{"plan": "shared", "budget": 120, "replicates": 4}, {"plan": "independent", "budget": 80, "replicates": 4}],
    ids=["shared", "independent"],
)
def test_replicates_are_independent_of_each_other_and_across_seeds(options: dict) -> None:
    errors = replicate_errors(120, **options)
    n_seeds, n_replicates, _ = errors.shape
    scaled = errors / errors.std((0, 1))
    assert np.abs(scaled.mean((0, 1)) * math.sqrt(n_seeds * n_replicates)).max() < 4.5
    # Means of r independent replicates have 1/r of the variance of one: correlation between them would show here.
    of_means = scaled.mean(1).var(0).mean() * n_replicates
    assert 0.7 < of_means < 1.4
    for r, s in itertools.combinations(range(n_replicates), 2):
        correlation = (scaled[:, r] * scaled[:, s]).mean(0)
        assert np.abs(correlation).max() < 4.5 / math.sqrt(n_seeds)
    neighbours = (scaled[:-1] * scaled[1:]).mean((0, 1))  # seed s and seed s + 1
    assert np.abs(neighbours).max() < 4.5 / math.sqrt((n_seeds - 1) * n_replicates)


def test_pilot_and_census_are_no_replicates() -> None:
    """The pilot teaches only, the census counts in every replicate: neither may be averaged as a replicate."""
    explanation = run(SMOOTH, plan="shared", budget=150, kernel=Gaussian(0.3))
    ledger = explanation.ledger
    assert set(ledger.replicate[ledger.replicate < 0]) == {plans.PILOT, plans.CENSUS}
    census = ledger.take(ledger.replicate == plans.CENSUS)
    assert (census.masks == np.eye(N, dtype=bool)).all()
    np.testing.assert_allclose(census.value, [game(SMOOTH, X, np.zeros(N))(frozenset({i})) for i in range(N)])
    assert len(explanation.estimate.departures) == explanation.plan["n_replicates"] == ledger.n_replicates
    assert ledger.n_points <= 150


def test_departures_have_mean_zero_and_make_the_stated_error() -> None:
    explanation = run(KINKED, plan="independent", budget=400)
    departures = explanation.estimate.departures
    np.testing.assert_allclose(departures.mean(0), 0.0, atol=1e-12)
    expected = departures.std(0, ddof=1) / math.sqrt(len(departures))
    np.testing.assert_allclose(explanation.stderr, expected, rtol=1e-12)


@pytest.mark.parametrize("make", [lambda: torch_polynomial(APPENDIX_E)])
def test_shared_on_a_polynomial_that_its_surrogate_can_hold(make: Callable[[], Model]) -> None:
    """Appendix E by sampling: three features, budget below 8 x 7 rays, yet right to the ridge of the surrogate."""
    explanation = explain(make(), np.ones(3), kernel=Uniform(), budget=50)
    assert explanation.plan["name"] == "shared"
    np.testing.assert_allclose(explanation.values, [11 / 4, 9 / 2, 5 / 4], rtol=0, atol=5e-3)
