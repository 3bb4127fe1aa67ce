"""What explain costs: as a counting model counts, and never more than the budget."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gralis
from explained import BUDGETS, Counting, draw, easy, outcome, setting, smooth, spread
from gralis import BudgetError, GralisError, SizeKernel, Uniform, baselines
from gralis.evaluation.function_probe import PROBE_FORWARDS
from gralis.plans.ray_walk import WALK_FORWARDS


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
        assert sum(model.forward_rows) == 2 + PROBE_FORWARDS  # F(x) and F(x')
    if plan not in ("endpoint", "shared"):
        assert explanation.cost.n_rays == explanation.ledger.n_rays


@pytest.mark.parametrize("batch_size", [1, 7, 64, 1000])
@pytest.mark.parametrize("plan", ["permutation", "exhaustive"])
def test_gradients_come_in_as_few_invocations_as_the_batch_size_allows(plan, batch_size):
    model = Counting()
    explanation = gralis.explain(model, spread(6), plan=plan, budget=300, batch_size=batch_size)
    points = explanation.cost.n_gradients
    assert points == (252 if plan == "exhaustive" else 240)
    looked = 12 if plan == "exhaustive" else 0  # at three rays, before the nodes are settled
    assert len(model.gradient_rows) == math.ceil(looked / batch_size) + math.ceil((points - looked) / batch_size)
    assert max(model.gradient_rows) == min(batch_size, points - looked)


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
    probe = 0 if plan == "endpoint" else PROBE_FORWARDS  # which asks for F(x) again
    walk = 10 if plan == "shared" else 0  # points inside the ray of all features
    assert len(set(model.seen)) == len(model.seen) - probe <= 2**6 + walk
    if plan in ("shared", "permutation", "independent"):
        explanation.extend(300)
        walk = 10 if plan == "shared" else 0  # points inside the ray of all features
    assert len(set(model.seen)) == len(model.seen) - probe <= 2**6 + walk


def test_no_coalition_is_evaluated_twice_with_several_baselines_and_looks():
    model = Counting()
    sample = baselines.sample(draw(3, 5, seed=8))
    gralis.explain(model, spread(5), baseline=sample, plan="permutation", budget=1500, tolerance=1e-9)
    assert 40 < len(set(model.seen)) == len(model.seen) - PROBE_FORWARDS <= 1 + 3 * (2**5 - 1)


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
    assert said.n_forwards <= said.n_rays + n + 3 + PROBE_FORWARDS + WALK_FORWARDS
    assert said.seconds > 0
    assert f"{said.n_gradients} gradients" in str(said)


def test_cost_of_a_black_box_needs_no_gradient():
    model = gralis.models.blackbox(lambda z: z.sum(1))
    assert gralis.cost(model, spread(5), plan="endpoint").n_gradients == 0
