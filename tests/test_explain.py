"""explain end to end: what it costs, what it promises to repeat, how it stops, and what comes back."""

from __future__ import annotations

import gc
import math
import random
import re
import time
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import gralis
import gralis.run
from gralis import BudgetError, Explanation, Gaussian, GralisError, ModelError, SizeKernel, Uniform, baselines, plans
from gralis.engine import Engine
from gralis.fold import FoldedLedger
from gralis.problem import Problem

#: A budget for six features that each plan can work with; the shared plan stays a sampling one.
BUDGETS = {"shared": 300, "exhaustive": 300, "permutation": 300, "independent": 300, "endpoint": 60}
SAMPLED = ["shared", "permutation", "independent", "endpoint"]


def setting(plan: str) -> dict[str, Any]:
    return {"plan": plan, "budget": BUDGETS[plan], "kernel": Uniform() if plan == "independent" else Gaussian(0.75)}


def draw(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def smooth(z: torch.Tensor) -> torch.Tensor:
    """A small smooth network with interactions, of any shape of input, in the dtype of its input."""
    flat = z.flatten(1)
    n = flat.shape[1]
    weight = torch.cos(torch.arange(4 * n, dtype=torch.float64)).reshape(n, 4).to(flat.dtype)
    return torch.tanh(flat @ weight).prod(1) + torch.tanh(flat @ weight).sum(1) + 0.3 * flat.sum(1)


def easy(z: torch.Tensor) -> torch.Tensor:
    """Nearly affine: any tolerance is reached early."""
    return z.sum(1) + 1e-3 * (z**2).sum(1)


class Counting:
    """A model of the user's own that counts rows and invocations, and remembers the points of forward-only calls."""

    def __init__(self, fn: Callable[[torch.Tensor], torch.Tensor] = smooth) -> None:
        self.fn = fn
        self.forward_rows: list[int] = []
        self.gradient_rows: list[int] = []
        self.seen: list[bytes] = []

    def value(self, points: torch.Tensor) -> torch.Tensor:
        self.forward_rows.append(len(points))
        self.seen.extend(row.numpy().tobytes() for row in points)
        return self.fn(points)

    def value_and_gradient(self, points: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.gradient_rows.append(len(points))
        leaf = points.clone().requires_grad_()
        values = self.fn(leaf)
        (gradient,) = torch.autograd.grad(values.sum(), leaf)
        return values.detach(), gradient

    @property
    def calls(self) -> int:
        return len(self.forward_rows) + len(self.gradient_rows)

    def agrees_with(self, cost: Any) -> bool:
        return (sum(self.gradient_rows), sum(self.forward_rows)) == (cost.n_gradients, cost.n_forwards)


def outcome(*arguments: Any, **options: Any) -> Explanation | GralisError:
    try:
        return gralis.explain(*arguments, **options)
    except GralisError as error:
        return error


def spread(n: int) -> torch.Tensor:
    """An input whose features all differ from each other and from zero."""
    return torch.linspace(0.4, 1.3, n, dtype=torch.float64)


def truth(fn: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor, **options: Any) -> np.ndarray:
    """phi from all coalitions with 16 Gauss-Legendre nodes each."""
    return gralis.explain(fn, x, plan="exhaustive", budget=None, **options).values


def same_rows(a: Any, b: Any, n_rays: int, n_points: int) -> bool:
    """Whether the first rows of two ledgers are the same, bit for bit."""
    columns = [(name, n_rays) for name in ("masks", "log_rate", "replicate", "baseline", "owner", "value")]
    columns += [(name, n_points) for name in ("ray", "node", "place", "stretch", "weight", "gradient")]
    return all(np.array_equal(getattr(a, c)[:k], getattr(b, c)[:k], equal_nan=c == "value") for c, k in columns)


# ---- the five lines


def test_the_five_lines():
    torch_seed = torch.Generator().manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4)).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=torch_seed))
    x = torch.linspace(-1, 1, 5)
    explanation = gralis.explain(model, x, baseline=0.1, target=3)
    assert explanation.values.shape == explanation.stderr.shape == (5,)
    assert explanation.values.dtype == np.float64
    assert list(explanation.names) == ["x[0]", "x[1]", "x[2]", "x[3]", "x[4]"]
    with torch.no_grad():
        assert explanation.f_x == pytest.approx(model(x[None])[0, 3].item())
        assert explanation.f_baseline == pytest.approx(model(torch.full((1, 5), 0.1))[0, 3].item())
    assert explanation.delta == explanation.f_x - explanation.f_baseline
    assert explanation.complete is True
    assert explanation.reached is None
    assert explanation.plan["name"] == "exhaustive"  # by itself: 31 rays fit into the default budget
    assert explanation.provenance["seed"] == 0
    assert explanation.provenance["target"] == "output[3]"
    assert set(explanation.provenance["hashes"]) == {"x", "baseline", "features", "model"}
    assert explanation.cost.n_gradients <= 1024
    assert explanation.cost.seconds > 0
    assert explanation.to_dict()["values"] == explanation.values.tolist()


def test_the_table_says_what_was_found_and_what_it_cost():
    explanation = gralis.explain(smooth, spread(20), budget=400)
    text = str(explanation)
    assert "residual" in text
    assert f"{explanation.cost.n_gradients} gradients on {explanation.cost.n_rays} rays" in text
    assert f"{explanation.cost.n_forwards} forwards" in text
    assert "plan shared" in text
    assert "5 more" in text  # 15 of the 20 features have a row of their own
    assert explanation.top(1)[0][0] in text


def test_top_is_sorted_by_size():
    explanation = gralis.explain(smooth, spread(6))
    found = explanation.top(4)
    assert [abs(phi) for _, phi, _ in found] == sorted(np.abs(explanation.values), reverse=True)[:4]
    assert len(explanation.top(99)) == 6


# ---- what it costs


@pytest.mark.parametrize("coalition_values", [True, False])
@pytest.mark.parametrize("plan", BUDGETS)
def test_cost_is_what_a_counting_model_counts(plan, coalition_values):
    model = Counting()
    explanation = gralis.explain(model, spread(6), **setting(plan), coalition_values=coalition_values, batch_size=32)
    assert explanation.plan["name"] == plan
    assert model.agrees_with(explanation.cost)
    assert (explanation.cost.n_gradients == 0) == (plan == "endpoint")
    assert explanation.cost.n_batches == model.calls
    if not coalition_values and plan != "endpoint":
        assert sum(model.forward_rows) == 2  # F(x) and F(x')
    if plan not in ("endpoint", "shared"):
        assert explanation.cost.n_rays == explanation.ledger.n_rays


@pytest.mark.parametrize("batch_size", [1, 7, 64, 1000])
@pytest.mark.parametrize("plan", ["permutation", "exhaustive"])
def test_gradients_come_in_as_few_invocations_as_the_batch_size_allows(plan, batch_size):
    model = Counting()
    explanation = gralis.explain(model, spread(6), plan=plan, budget=300, batch_size=batch_size)
    points = explanation.cost.n_gradients
    assert points == (252 if plan == "exhaustive" else 240)
    assert len(model.gradient_rows) == math.ceil(points / batch_size)
    assert max(model.gradient_rows) == min(batch_size, points)


def test_what_the_ledger_holds_costs_no_model_call(tmp_path):
    model = Counting()
    explanation = gralis.explain(model, spread(6), plan="shared", budget=300)
    before = model.calls
    explanation.with_kernel(Uniform()).with_kernel(SizeKernel(lambda s: 0.5**s))
    explanation.with_kernel(lambda masks: 1.0 + masks[:, 0])
    repr(explanation.sweep([0.1, 0.75, math.inf]))
    explanation.top(3), explanation.to_input(), explanation.interval(0.9), explanation.to_dict()
    explanation.effective_rays, str(explanation), explanation.ledger.checksum
    explanation.save(tmp_path / "why.gralis")
    assert model.calls == before


@pytest.mark.parametrize("plan", BUDGETS)
def test_no_coalition_is_evaluated_twice(plan):
    model = Counting()
    explanation = gralis.explain(model, spread(6), **setting(plan))
    assert len(set(model.seen)) == len(model.seen) <= 2**6
    if plan in ("shared", "permutation", "independent"):
        explanation.extend(300)
        assert len(set(model.seen)) == len(model.seen) <= 2**6


def test_no_coalition_is_evaluated_twice_with_several_baselines_and_looks():
    model = Counting()
    sample = baselines.sample(draw(3, 5, seed=8))
    gralis.explain(model, spread(5), baseline=sample, plan="permutation", budget=1500, tolerance=1e-9)
    assert 40 < len(set(model.seen)) == len(model.seen) <= 1 + 3 * (2**5 - 1)


@settings(max_examples=50)
@given(
    plan=st.sampled_from(["shared", "exhaustive", "permutation", "independent", "endpoint"]),
    n_features=st.integers(1, 24),
    budget=st.integers(1, 700),
    n_nodes=st.sampled_from([None, 1, 3, 20]),
    replicates=st.sampled_from([None, 2, 9]),
    tolerance=st.sampled_from([None, 1e-6]),
    n_baselines=st.integers(1, 3),
)
def test_the_budget_is_never_exceeded(plan, n_features, budget, n_nodes, replicates, tolerance, n_baselines):
    model = Counting(easy)
    sample = baselines.sample(np.zeros((n_baselines, n_features)) - np.arange(n_baselines)[:, None])
    options = {"n_nodes": n_nodes, "replicates": replicates, "tolerance": tolerance, "kernel": Uniform()}
    found = outcome(model, spread(n_features), baseline=sample, plan=plan, budget=budget, **options)
    if isinstance(found, BudgetError):
        assert str(budget) in str(found)
        assert max(int(number) for number in re.findall(r"\d+", str(found))) > budget
        assert not model.gradient_rows  # refused before the first gradient
        return
    if isinstance(found, GralisError):
        assert plan == "exhaustive"
        assert f"2^{n_features}" in str(found)
        return
    assert model.agrees_with(found.cost)
    assert sum(model.forward_rows if plan == "endpoint" else model.gradient_rows) <= budget


@pytest.mark.parametrize("budget", [40, 63, 64, 65])
def test_the_budget_of_endpoint_counts_every_forward(budget):
    explanation = gralis.explain(smooth, spread(6), plan="endpoint", budget=budget)
    assert explanation.cost.n_forwards <= budget
    assert explanation.estimate.exact == (budget >= 64)


def test_replicates_beyond_the_budget_of_endpoint_are_refused():
    with pytest.raises(GralisError, match="at least 64"):
        gralis.explain(smooth, spread(6), plan="endpoint", budget=40, replicates=30)


def least(**options: Any) -> int:
    """The number a refused budget of one names."""
    with pytest.raises(BudgetError) as refused:
        gralis.explain(budget=1, **options)
    found = re.search(r"at least (\d+)", str(refused.value))
    assert found is not None, str(refused.value)
    return int(found[1])


@pytest.mark.parametrize("n_features", [2, 9, 40])
@pytest.mark.parametrize("plan", BUDGETS)
def test_the_least_budget_that_is_named_works_and_one_less_does_not(plan, n_features):
    if plan == "exhaustive" and n_features > 16:
        pytest.skip("cannot be enumerated")
    options = {"model": easy, "x": spread(n_features), "plan": plan, "kernel": Uniform()}
    enough = least(**options)
    spent = gralis.explain(budget=enough, **options).cost
    assert (spent.n_forwards if plan == "endpoint" else spent.n_gradients) > 0
    if n_features > 2:  # with two features a smaller budget enumerates all coalitions
        with pytest.raises(BudgetError, match=f"at least {enough}"):
            gralis.explain(budget=enough - 1, **options)


@pytest.mark.parametrize("n_features", [100, 300])
def test_the_least_budget_of_shared_works_with_many_features(n_features):
    options = {"model": easy, "x": spread(n_features)}
    gralis.explain(budget=least(**options), **options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"coalition_values": False},
        {"plan": "exhaustive", "budget": None},
        {"plan": "exhaustive", "budget": 600},
        {"plan": "permutation", "n_nodes": 5},
        {"plan": "permutation", "budget": None},
        {"plan": "independent"},
        {"plan": "endpoint", "budget": 60},
        {"quadrature": "midpoint", "n_nodes": 3},
        {"tolerance": 1e-9},
        {"baseline": baselines.sample(np.zeros((2, 7)) - np.arange(2)[:, None])},
    ],
    ids=str,
)
def test_cost_says_beforehand_what_explain_spends(options):
    n = 7
    options = {"budget": 500, **options}
    said = gralis.cost(smooth, spread(n), **options)
    spent = gralis.explain(smooth, spread(n), **options).cost
    assert said.n_gradients == spent.n_gradients
    assert said.n_forwards >= spent.n_forwards
    assert said.n_forwards <= said.n_rays + n + 3
    assert said.seconds > 0
    assert f"{said.n_gradients} gradients" in str(said)


def test_cost_of_a_black_box_needs_no_gradient():
    model = gralis.models.blackbox(lambda z: z.sum(1))
    assert gralis.cost(model, spread(5), plan="endpoint").n_gradients == 0


# ---- the same again


@pytest.mark.parametrize("plan", BUDGETS)
@pytest.mark.parametrize(("dtype", "close"), [(torch.float32, 1e-6), (torch.float64, 1e-10)])
def test_same_seed_same_result_at_any_batch_size(plan, dtype, close):
    x = spread(6).to(dtype)
    options = {**setting(plan), "seed": 5}
    first, *others = (gralis.explain(smooth, x, batch_size=size, **options) for size in ("auto", 1, 3, 17))
    for other in others:
        assert np.array_equal(other.ledger.masks, first.ledger.masks)
        assert np.abs(other.values - first.values).max() <= close * np.abs(first.values).max()
        assert np.abs(other.stderr - first.stderr).max() <= close * np.abs(first.values).max()


def test_the_layout_of_the_batches_does_not_matter():
    """A fixed batch size keeps the plain layout for a small image; the search tries channels_last too."""
    weight, x = draw(4, 3, 5, 5, seed=1), draw(3, 20, 20, seed=2)

    def conv(z: torch.Tensor) -> torch.Tensor:
        return torch.tanh(torch.nn.functional.conv2d(z, weight)).mean((1, 2, 3))

    options = {"features": gralis.features.grid(x.shape, 10), "plan": "permutation", "budget": 400}
    plain = gralis.explain(conv, x, batch_size=16, **options)
    searched = gralis.explain(conv, x, **options)
    np.testing.assert_allclose(searched.values, plain.values, rtol=1e-10)
    strided = gralis.explain(conv, x.permute(1, 2, 0).contiguous().permute(2, 0, 1), **options)
    np.testing.assert_allclose(strided.values, plain.values, rtol=1e-10)
    assert strided.to_input().shape == (3, 20, 20)


def test_nothing_outlives_its_explanation():
    """No cycle holds the ledger: it goes when the explanation goes, not when the collector comes."""
    gc.collect()
    gc.disable()
    try:
        found = gralis.explain(smooth, spread(6), budget=300)
        left = weakref.ref(found.ledger)
        del found
        assert left() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("batch_size", [8, "auto"])
def test_a_model_that_needs_the_plain_layout_gets_it(batch_size):
    """view() refuses points with their channels innermost, and many networks flatten with it."""
    weight, x = draw(3 * 80 * 80, seed=1), draw(3, 80, 80, seed=2)

    def viewing(z: torch.Tensor) -> torch.Tensor:
        return torch.tanh(z.view(len(z), -1) @ weight / 50)

    options = {"features": gralis.features.grid(x.shape, 40), "budget": 100, "batch_size": batch_size}
    found = gralis.explain(viewing, x, **options)
    reshaped = gralis.explain(lambda z: torch.tanh(z.reshape(len(z), -1) @ weight / 50), x, **options)
    np.testing.assert_allclose(found.values, reshaped.values, rtol=1e-10)
    assert found.cost.layout == "contiguous"
    assert found.cost.n_gradients == reshaped.cost.n_gradients
    assert gralis.faithfulness.deletion(viewing, x, found).value == pytest.approx(
        gralis.faithfulness.deletion(lambda z: viewing(z.contiguous()), x, found).value
    )


def test_what_is_done_with_a_batch_is_done_once():
    """An error of the caller's is not taken for the model's: the batch is not evaluated and counted again."""
    weight, x = draw(4, 3, 5, 5, seed=1), draw(3, 80, 80, seed=2)
    calls = []

    def conv(z: torch.Tensor) -> torch.Tensor:
        calls.append(len(z))
        return torch.nn.functional.conv2d(z, weight).tanh().mean((1, 2, 3))

    problem = Problem.build(conv, x, features=gralis.features.grid(x.shape, 40))
    engine, taken = Engine([problem], 8), []

    def take(target: int, part: slice, rows: np.ndarray) -> None:
        taken.append(part)
        raise ValueError("the disk is full")

    masks, nodes, pair = torch.ones(8, 4, dtype=torch.bool), torch.rand(8), torch.zeros(8, dtype=torch.int64)
    with pytest.raises(ValueError, match="disk"):
        engine.gradients(
            lambda part, canvas: canvas.points(masks[part], nodes[part], pair[part]),
            pair.numpy(),
            lambda part: (masks[part].numpy(), nodes[part].numpy()),
            take,
        )
    assert (len(taken), calls) == (1, [8])


@pytest.mark.parametrize("plan", SAMPLED)
def test_another_seed_another_plan(plan):
    a, b = (gralis.explain(smooth, spread(6), **setting(plan), seed=seed) for seed in (0, 1))
    assert not np.array_equal(a.values, b.values)
    assert not np.array_equal(a.ledger.masks, b.ledger.masks)


def test_no_seed_is_a_seed_of_its_own_that_can_be_used_again():
    options = {"model": smooth, "x": spread(6), "budget": 300}
    a, b = gralis.explain(seed=None, **options), gralis.explain(seed=None, **options)
    assert a.provenance["seed"] != b.provenance["seed"]
    again = gralis.explain(seed=a.provenance["seed"], **options)
    np.testing.assert_allclose(again.values, a.values, rtol=1e-12)


@pytest.mark.parametrize("plan", BUDGETS)
def test_global_random_numbers_are_left_alone(plan):
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    for seed in (0, None):
        explanation = gralis.explain(smooth, spread(6), **setting(plan), seed=seed)
    gralis.cost(smooth, spread(6), **setting(plan))
    explanation.with_kernel(Uniform())
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])  # noqa: NPY002
    assert random.getstate() == before[2]


# ---- going on


@pytest.mark.parametrize("plan", SAMPLED)
def test_extend_keeps_every_old_row_and_adds_up(plan):
    model = Counting()
    short = gralis.explain(model, spread(6), **setting(plan))
    old = short.values.copy()
    budget = 6 * BUDGETS[plan]
    longer = short.extend(budget)
    assert same_rows(longer.ledger, short.ledger, short.ledger.n_rays, short.ledger.n_points)
    assert longer.ledger.n_rays > short.ledger.n_rays
    assert longer.ledger.n_replicates == longer.plan["n_replicates"] > short.plan["n_replicates"]
    assert set(np.unique(longer.ledger.replicate)) >= set(range(longer.ledger.n_replicates))  # no gap
    assert model.agrees_with(longer.cost)
    assert longer.cost.n_gradients - short.cost.n_gradients <= budget
    assert longer.cost.n_forwards - short.cost.n_forwards <= budget
    assert longer.cost.seconds > short.cost.seconds
    assert np.sqrt((longer.stderr**2).mean()) < 0.8 * np.sqrt((short.stderr**2).mean())
    assert np.array_equal(short.values, old)


def test_extend_is_the_longer_plan():
    """Replicates of Algorithm 1 do not depend on the budget, so going on is the same as asking for more at once."""
    parts = gralis.explain(smooth, spread(6), plan="permutation", budget=360).extend(240).extend(360)
    whole = gralis.explain(smooth, spread(6), plan="permutation", budget=960)
    assert parts.cost.n_gradients == whole.cost.n_gradients == 960
    assert np.array_equal(parts.ledger.masks, whole.ledger.masks)
    np.testing.assert_allclose(parts.ledger.gradient, whole.ledger.gradient, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(parts.values, whole.values, rtol=1e-12)
    np.testing.assert_allclose(parts.stderr, whole.stderr, rtol=1e-9)


def test_one_explanation_can_be_extended_twice_over():
    model = Counting()
    short = gralis.explain(model, spread(8), budget=300)
    a, b = short.extend(200), short.extend(200)
    np.testing.assert_allclose(a.values, b.values, rtol=1e-12)
    assert a.cost.n_gradients == b.cost.n_gradients


def test_extend_after_stopping_early_goes_on_where_it_stopped():
    exact = truth(smooth, spread(9))
    short = gralis.explain(smooth, spread(9), budget=4000, tolerance=0.05)
    assert short.reached
    assert short.ledger.n_replicates < short.plan["n_replicates"]
    longer = short.extend(600)
    assert set(np.unique(longer.ledger.replicate)) >= set(range(longer.ledger.n_replicates))  # no gap
    assert np.abs(longer.values - exact).max() < 0.05 * abs(longer.delta)


@pytest.mark.parametrize("budget", [1, 20])
def test_extend_by_less_than_a_replicate_says_what_one_takes(budget):
    explanation = gralis.explain(smooth, spread(6), plan="permutation", budget=300)
    with pytest.raises(BudgetError, match=f"120.*{budget}"):
        explanation.extend(budget)


def test_what_cannot_be_extended_says_so(tmp_path):
    exact = gralis.explain(smooth, spread(4))
    sampled = gralis.explain(smooth, spread(8), budget=300)
    for explanation in (exact, sampled.with_kernel(Uniform())):
        with pytest.raises(GralisError, match="cannot be extended"):
            explanation.extend(1000)
    given_orders = gralis.explain(smooth, spread(3), plan=plans.permutation(orders=np.array([[0, 1, 2], [2, 0, 1]])))
    with pytest.raises(GralisError, match="no more of them"):
        given_orders.extend(1000)


# ---- when to stop


def test_a_tolerance_stops_early_when_it_is_easy():
    easily = gralis.explain(easy, spread(10), budget=5000, tolerance=0.01)
    assert easily.reached is True
    assert easily.complete is True
    assert easily.cost.n_gradients < 1000
    assert "tolerance 0.01 reached" in str(easily)
    assert np.diff(easily.interval(0.95)).max() / 2 <= 0.01 * abs(easily.delta)


def test_a_tolerance_that_is_not_reached_is_said_and_the_budget_is_a_ceiling():
    hard = gralis.explain(smooth, spread(10), budget=400, tolerance=1e-12)
    assert hard.reached is False
    assert hard.cost.n_gradients <= 400
    assert "not reached" in str(hard)


def test_atol_is_the_other_way_to_be_near_enough():
    options = {"budget": 3000, "tolerance": 1e-12}
    near = gralis.explain(smooth, spread(10), atol=1.0, **options)
    assert near.reached is True
    assert near.cost.n_gradients < 500


def test_an_exact_explanation_reaches_any_tolerance():
    assert gralis.explain(smooth, spread(4), tolerance=1e-300).reached is True


def slow(z: torch.Tensor) -> torch.Tensor:
    time.sleep(0.005)
    return smooth(z)


@pytest.mark.parametrize("plan", ["shared", "permutation", "independent"])
def test_max_seconds_gives_what_is_there_so_far(plan):
    began = time.perf_counter()
    explanation = gralis.explain(slow, spread(12), plan=plan, budget=30_000, max_seconds=0.3, batch_size=32)
    assert time.perf_counter() - began < 20
    assert explanation.complete is False
    assert 0 < explanation.cost.n_gradients < 20_000
    assert np.isfinite(explanation.stderr).all()
    assert "stopped before the plan was done" in str(explanation)
    assert (np.abs(explanation.values) < 10 * abs(explanation.delta)).all()


def test_max_seconds_that_suffice_change_nothing():
    explanation = gralis.explain(smooth, spread(8), budget=400, max_seconds=600)
    assert explanation.complete is True
    assert "stopped" not in str(explanation)


class Interrupted(torch.nn.Module):
    """Ctrl-C arrives during call number k."""

    def __init__(self, k: int) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones((), dtype=torch.float64))
        self.dropout = torch.nn.Dropout(0.5)
        self.k, self.calls = k, 0

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        if self.calls == self.k:
            raise KeyboardInterrupt
        return self.dropout(smooth(self.scale * z))


@pytest.mark.parametrize("on_interrupt", ["raise", "return"])
@pytest.mark.parametrize("k", [1, 2, 3, 30])
@pytest.mark.filterwarnings("ignore:The model Interrupted was in train mode")
def test_an_interrupt_leaves_the_model_as_it_was(k, on_interrupt):
    model = Interrupted(k)
    stopped = None
    try:
        stopped = gralis.explain(model, spread(10), budget=3000, batch_size=16, on_interrupt=on_interrupt)
    except KeyboardInterrupt:
        assert on_interrupt == "raise" or k < 30  # before two replicates there is nothing to return
    if stopped is not None:
        assert on_interrupt == "return" and k == 30  # noqa: PT018
        assert stopped.complete is False
        assert stopped.cost.n_gradients < 16 * 30
        assert np.isfinite(stopped.values).all()
        assert np.isfinite(stopped.stderr).all()
    assert model.calls == k  # control came back at once
    assert model.training
    assert model.dropout.training
    assert model.scale.requires_grad
    assert model.scale.grad is None


def test_an_interrupted_explanation_can_go_on():
    model = Interrupted(40).eval()
    partial = gralis.explain(model, spread(9), budget=2000, batch_size=16, on_interrupt="return")
    assert not partial.complete
    done = partial.extend(1500)
    assert done.complete
    assert same_rows(done.ledger, partial.ledger, partial.ledger.n_rays, partial.ledger.n_points)
    whole = gralis.explain(smooth, spread(9), budget=2000, batch_size=16, on_interrupt="return")
    assert same_rows(done.ledger, whole.ledger, partial.ledger.n_rays, 0)
    assert np.abs(done.values - truth(smooth, spread(9))).max() < 5 * done.stderr.max() + 1e-6


@pytest.mark.parametrize("plan", ["shared", "exhaustive", "permutation", "independent"])
def test_progress_counts_up_to_the_end(plan):
    told: list[tuple[int, int]] = []
    explanation = gralis.explain(
        smooth, spread(6), plan=plan, budget=300, batch_size=32, progress=lambda done, total: told.append((done, total))
    )
    done = [each for each, _ in told]
    assert done == sorted(set(done))
    assert told[-1] == (explanation.cost.n_gradients, explanation.cost.n_gradients)
    assert all(each <= total for each, total in told)


def test_a_progress_callback_may_stop_the_run():
    def stop(done: int, total: int) -> None:
        raise StopIteration("enough")

    with pytest.raises(StopIteration, match="enough"):
        gralis.explain(smooth, spread(6), budget=300, progress=stop)


def test_a_bar_is_shown_when_asked_for(capsys):
    gralis.explain(smooth, spread(6), budget=300, progress=True)
    assert "gradient" in capsys.readouterr().err
    gralis.explain(smooth, spread(6), budget=300)  # not on a terminal here
    assert capsys.readouterr().err == ""


# ---- inputs and baselines


def test_tuples_and_dicts_are_the_same_as_one_array():
    x = spread(6)
    options = {"budget": 300, "kernel": Gaussian(0.5)}
    one = gralis.explain(smooth, x, **options)
    pair = gralis.explain(lambda a, b: smooth(torch.cat([a, b.flatten(1)], 1)), (x[:2], x[2:].reshape(2, 2)), **options)
    named = gralis.explain(
        lambda *, left, right: smooth(torch.cat([left, right.flatten(1)], 1)),
        {"left": x[:2], "right": x[2:].reshape(2, 2)},
        baseline={"right": np.zeros((2, 2)), "left": 0.0},
        **options,
    )
    for other in (pair, named):
        np.testing.assert_allclose(other.values, one.values, rtol=1e-12)
    assert list(pair.names) == ["x0[0]", "x0[1]", "x1[0,0]", "x1[0,1]", "x1[1,0]", "x1[1,1]"]
    assert named.names[2] == "right[0,0]"
    back = pair.to_input()
    assert isinstance(back, tuple)
    assert [leaf.shape for leaf in back] == [(2,), (2, 2)]
    assert np.concatenate([leaf.ravel() for leaf in back]).tolist() == pair.values.tolist()
    mapped = named.to_input()
    assert list(mapped) == ["left", "right"]
    assert mapped["right"].ravel().tolist() == named.values[2:].tolist()
    assert one.to_input().tolist() == one.values.tolist()
    single = gralis.explain(smooth, (x,), **options).to_input()
    assert isinstance(single, tuple)
    assert len(single) == 1


def test_a_feature_over_several_inputs():
    x = spread(6)
    labels = (np.array([0, 1]), np.array([1, 2, 2, 0]))
    pair = gralis.explain(lambda a, b: smooth(torch.cat([a, b], 1)), (x[:2], x[2:]), features=labels)
    one = gralis.explain(smooth, x, features=np.concatenate(labels))
    np.testing.assert_allclose(pair.values, one.values, rtol=1e-12)
    assert one.to_input()[[1, 2]].tolist() == [one.values[1]] * 2


def test_every_input_keeps_its_own_precision():
    def total(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        assert (a.dtype, b.dtype) == (torch.float16, torch.float64)
        return a.double().sum(1) + b.sum(1)

    x = (torch.ones(2, dtype=torch.float16), torch.full((2,), 1e-9, dtype=torch.float64))
    np.testing.assert_allclose(gralis.explain(total, x).values, [1, 1, 1e-9, 1e-9], rtol=1e-12)


@pytest.mark.parametrize(
    "array",
    [
        np.linspace(0.4, 1.3, 4)[::-1],
        np.linspace(0.4, 1.3, 8)[::2],
        np.linspace(0.4, 1.3, 4).astype(">f8"),
        np.linspace(0.4, 1.3, 4).astype(np.longdouble),
        np.broadcast_to(0.7, (4,)),
        [0.4, 0.7, 1.0, 1.3],
        torch.linspace(0.4, 1.3, 4).double().requires_grad_(),
        torch.linspace(0.4, 1.3, 4).double().to_sparse(),
    ],
    ids=["reversed", "strided", "big-endian", "longdouble", "read-only", "list", "with a graph", "sparse"],
)
@pytest.mark.parametrize("role", ["x", "baseline"])
def test_any_array_will_do(array, role):
    dense = array.detach().to_dense() if isinstance(array, torch.Tensor) else np.array(array, dtype=np.float64)
    if role == "baseline" and isinstance(array, torch.Tensor) and array.is_sparse:
        array = dense
    x, baseline = (array, 0.1) if role == "x" else (np.full(4, 2.0), array)
    same_x, same_baseline = (dense, 0.1) if role == "x" else (np.full(4, 2.0), dense)
    found = gralis.explain(smooth, x, baseline=baseline)
    expected = gralis.explain(smooth, same_x, baseline=same_baseline)
    np.testing.assert_allclose(found.values, expected.values, rtol=1e-12)


def test_a_single_number_is_an_input():
    explanation = gralis.explain(lambda z: z**2, 3.0)
    assert explanation.values.tolist() == pytest.approx([9.0])
    assert explanation.to_input().shape == ()


def test_a_feature_that_never_moves_has_value_zero():
    x = spread(7)
    for plan in BUDGETS:
        baseline = torch.zeros(7, dtype=torch.float64)
        baseline[2] = x[2]
        explanation = gralis.explain(smooth, x, baseline=baseline, plan=plan, budget=600)
        assert explanation.values[2] == pytest.approx(0, abs=1e-12)
        assert np.abs(explanation.values).max() > 0.01


def test_coalitions_are_made_of_x_and_the_baseline_to_the_last_bit():
    """A tree may split exactly at x: x' + (x - x') is not good enough."""
    x, baseline = draw(8, seed=1).numpy(), draw(8, seed=2).numpy()

    def box(z: np.ndarray) -> np.ndarray:
        assert ((z == x) | (z == baseline)).all()
        return z.sum(1)

    gralis.explain(gralis.models.blackbox(box), x, baseline=baseline, plan="endpoint", budget=100)


def test_several_baselines_are_averaged():
    x, rows, kernel = spread(5), draw(3, 5, seed=4), SizeKernel(lambda s: 0.7**s)
    options = {"plan": "exhaustive", "budget": None, "kernel": kernel}
    together = gralis.explain(smooth, x, baseline=baselines.sample(rows), **options)
    apart = [gralis.explain(smooth, x, baseline=row, **options) for row in rows]
    np.testing.assert_allclose(together.values, np.mean([e.values for e in apart], axis=0), rtol=1e-10)
    assert together.f_baseline == pytest.approx(np.mean([e.f_baseline for e in apart]))
    assert together.delta == pytest.approx(np.mean([e.delta for e in apart]))
    assert together.cost.n_gradients == sum(e.cost.n_gradients for e in apart)
    for plan, budget in (("shared", 700), ("independent", 700), ("endpoint", 80), ("permutation", 6000)):
        exact = together.values
        if plan == "endpoint":
            each = [gralis.explain(smooth, x, baseline=row, plan=plan, kernel=kernel) for row in rows]
            exact = np.mean([e.values for e in each], axis=0)
        sampled = gralis.explain(smooth, x, baseline=baselines.sample(rows), plan=plan, budget=budget, kernel=kernel)
        assert not sampled.estimate.exact
        assert (np.abs(sampled.values - exact) <= 5 * sampled.stderr + 0.02 * np.abs(exact).max()).all()


# ---- many features: the folded ledger


@pytest.fixture
def folding(monkeypatch):
    """Every ledger that can be folded is."""
    monkeypatch.setattr(gralis.run, "_KEEP_BYTES", 0)


@pytest.mark.parametrize("plan", ["shared", "independent"])
@pytest.mark.usefixtures("folding")
def test_a_folded_ledger_agrees_with_the_truth_within_its_errors(plan):
    x, other = spread(9), SizeKernel(lambda s: 0.7**s)
    kernels = [Gaussian(0.75) if plan == "shared" else other, Uniform()]
    exact = truth(smooth, x, kernel=kernels[0])
    model = Counting()
    folded = gralis.explain(model, x, plan=plan, budget=3000, kernel=kernels)
    assert isinstance(folded.ledger, FoldedLedger)
    assert model.agrees_with(folded.cost)
    assert folded.cost.n_gradients <= 3000
    assert (np.abs(folded.values - exact) <= 5 * folded.stderr).all()
    assert folded.stderr.max() < 0.2 * np.abs(exact).max()
    calls = model.calls
    uniform = folded.with_kernel(Uniform())
    assert (np.abs(uniform.values - truth(smooth, x, kernel=Uniform())) <= 5 * uniform.stderr).all()
    with pytest.raises(GralisError, match=r"folded .* kernel=\[\.\.\.\]"):
        folded.with_kernel(Gaussian(0.3))
    with pytest.raises(GralisError, match="folded"):
        _ = folded.effective_rays
    assert folded.interval().shape == (9, 2)
    assert "folded" in str(folded)
    assert model.calls == calls


@pytest.mark.usefixtures("folding")
def test_what_can_be_enumerated_is_not_folded():
    explanation = gralis.explain(smooth, spread(5))
    assert explanation.stderr.tolist() == [0] * 5
    np.testing.assert_allclose(explanation.values, truth(smooth, spread(5)), rtol=1e-10)


@pytest.mark.usefixtures("folding")
def test_a_folded_ledger_is_unbiased():
    """Over many seeds the mean is the truth, up to the error of that mean."""
    x = spread(8)
    exact = truth(smooth, x)
    runs = np.stack([gralis.explain(smooth, x, budget=500, seed=seed).values for seed in range(24)])
    error = runs.std(0, ddof=1) / np.sqrt(len(runs))
    assert (np.abs(runs.mean(0) - exact) <= 4.5 * error).all()


@pytest.mark.usefixtures("folding")
def test_a_folded_ledger_gives_the_same_at_any_batch_size_and_can_be_extended():
    options = {"model": smooth, "x": spread(8), "budget": 800}
    first, *others = (gralis.explain(batch_size=size, **options) for size in ("auto", 1, 17))
    for other in others:
        np.testing.assert_allclose(other.values, first.values, rtol=1e-10)
    sums = first.ledger.rays.copy()
    longer = first.extend(3200)
    assert np.array_equal(first.ledger.rays, sums)
    assert longer.cost.n_gradients > first.cost.n_gradients
    assert longer.ledger.n_replicates == longer.plan["n_replicates"]
    assert np.sqrt((longer.stderr**2).mean()) < 0.8 * np.sqrt((first.stderr**2).mean())


@pytest.mark.usefixtures("folding")
def test_a_folded_run_stops_at_its_tolerance_or_time():
    easily = gralis.explain(easy, spread(14), budget=20_000, tolerance=0.05)
    assert isinstance(easily.ledger, FoldedLedger)
    assert easily.reached is True
    assert easily.cost.n_gradients < 10_000
    late = gralis.explain(slow, spread(12), budget=30_000, max_seconds=0.3, batch_size=32)
    assert late.complete is False
    assert np.isfinite(late.values).all()
    partial = gralis.explain(
        Interrupted(30).eval(), spread(10), budget=3000, batch_size=16, on_interrupt="return", seed=2
    )
    assert partial.complete is False
    assert partial.extend(500).complete


# ---- memory


class Hungry:
    """Runs out of memory on more than `most` rows."""

    def __init__(self, error: Callable[[], BaseException], most: int = 5) -> None:
        self.error, self.most, self.tried = error, most, 0

    def __call__(self, z: torch.Tensor) -> torch.Tensor:
        self.tried = max(self.tried, len(z))
        if len(z) > self.most:
            raise self.error()
        return smooth(z)


@pytest.mark.parametrize("batch_size", ["auto", 64])
@pytest.mark.parametrize(
    "error",
    [
        lambda: torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        lambda: RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate ..."),
        lambda: RuntimeError("MPS backend out of memory"),
        MemoryError,
    ],
    ids=["torch", "cpu", "mps", "numpy"],
)
def test_out_of_memory_halves_the_batch_and_nothing_is_lost(error, batch_size):
    model = Hungry(error)
    found = gralis.explain(model, spread(6), budget=300, batch_size=batch_size)
    calm = gralis.explain(smooth, spread(6), budget=300, batch_size=batch_size)
    assert model.tried > 5
    np.testing.assert_allclose(found.values, calm.values, rtol=1e-10)
    assert (found.cost.n_gradients, found.cost.n_forwards) == (calm.cost.n_gradients, calm.cost.n_forwards)
    assert found.cost.batch_size <= 5


def test_out_of_memory_on_a_single_point_is_a_sentence():
    model = Hungry(lambda: torch.OutOfMemoryError("out of memory"), most=0)
    with pytest.raises(ModelError, match="out of memory on a single point"):
        gralis.explain(model, spread(6))


@pytest.mark.parametrize("n_points", [1, 5, 40])
def test_a_memory_limit_makes_small_batches(n_points):
    rows: list[tuple[bool, int]] = []

    def watched(z: torch.Tensor) -> torch.Tensor:
        rows.append((z.requires_grad, len(z)))
        return smooth(z)

    x = spread(6)
    per_point = gralis.explain(watched, x, budget=300).cost.bytes_per_point
    rows.clear()
    explanation = gralis.explain(watched, x, budget=300, max_memory=n_points * per_point)
    first = next(i for i, (gradient, _) in enumerate(rows) if gradient)  # weighed on this one
    assert max(n for _, n in rows[first + 1 :]) <= n_points
    assert explanation.cost.batch_size <= max(n_points, 8)
    np.testing.assert_allclose(explanation.values, gralis.explain(smooth, x, budget=300).values, rtol=1e-10)


def test_a_memory_limit_holds_for_forwards_too():
    rows: list[int] = []

    def box(z: np.ndarray) -> np.ndarray:
        rows.append(len(z))
        return z.sum((1, 2))

    x = np.ones((50, 20)) + np.arange(20)
    features = np.broadcast_to(np.arange(20), (50, 20))
    limit = 100 * x.nbytes
    gralis.explain(gralis.models.blackbox(box), x, features=features, plan="endpoint", budget=4000, max_memory=limit)
    assert max(rows) * x.nbytes < limit


# ---- intervals


def test_intervals_are_simultaneous_and_widen_with_the_level():
    explanation = gralis.explain(smooth, spread(8), budget=400)
    narrow, usual, wide = (explanation.interval(level) for level in (0.5, 0.95, 0.999))
    assert usual.shape == (8, 2)
    assert np.array_equal(explanation.interval(), usual)
    np.testing.assert_allclose(usual.mean(1), explanation.values, rtol=1e-12)
    assert (np.diff(narrow) < np.diff(usual)).all()
    assert (np.diff(usual) < np.diff(wide)).all()
    assert (np.diff(usual)[:, 0] / 2 > 2.7 * explanation.stderr).all()  # Bonferroni over eight, beyond 1.96


def test_an_exact_explanation_has_no_width():
    explanation = gralis.explain(smooth, spread(4))
    assert explanation.stderr.tolist() == [0] * 4
    assert np.array_equal(explanation.interval(), np.stack([explanation.values] * 2, axis=1))
    assert "exact" in str(explanation)


def test_a_single_replicate_does_not_know_its_error():
    explanation = gralis.explain(smooth, spread(6), plan=plans.permutation(n_permutations=2))
    assert np.isnan(explanation.stderr).all()
    assert np.isnan(explanation.interval()).all()
    assert "unknown" in str(explanation)


def test_a_sweep_is_one_explanation_per_sigma():
    explanation = gralis.explain(smooth, spread(6), budget=300)
    sweep = explanation.sweep([0.2, 0.75, math.inf])
    assert sweep.sigmas == (0.2, 0.75, math.inf)
    assert sweep.values.shape == sweep.stderr.shape == (3, 6)
    assert np.array_equal(sweep.values[1], explanation.values)
    assert np.array_equal(sweep.values[2], explanation.with_kernel(Uniform()).values)
    assert isinstance(sweep.explanations[0], Explanation)
    assert "sigma" in repr(sweep)


@pytest.mark.parametrize("sigma", [1e-300, 1e-9, 1e9, 1e300])
def test_any_sigma_is_a_kernel(sigma):
    explanation = gralis.explain(smooth, spread(5), kernel=Gaussian(sigma))
    limit = "uniform" if sigma > 1 else "singles"
    expected = {
        "uniform": truth(smooth, spread(5), kernel=Uniform()),
        "singles": truth(smooth, spread(5), kernel=SizeKernel(lambda s: float(s == 0))),
    }
    np.testing.assert_allclose(explanation.values, expected[limit], rtol=1e-6)
