"""Going on with an explanation: old rows stay, new ones add up."""

from __future__ import annotations

import numpy as np
import pytest

import gralis
from explained import BUDGETS, SAMPLED, Counting, same_rows, setting, smooth, spread, truth
from gralis import BudgetError, GralisError, Uniform, plans


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
