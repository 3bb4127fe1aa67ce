"""plans.values(orders=True): Shapley values from random orders without a fit, against enumeration."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest

import gralis
from gralis import BudgetError, GralisError, baselines, explain, models
from gralis.plans import values

N = 13
X = np.linspace(-1.0, 1.6, N)
ORDERS = values(orders=True)


def threes(z: np.ndarray) -> np.ndarray:
    """Effects of one, two and three features."""
    return np.asarray(z.sum(1) + z[:, 0] * z[:, 1] + z[:, 2] * z[:, 3] * z[:, 4])


def pairs_only(z: np.ndarray) -> np.ndarray:
    return np.asarray(z @ np.arange(N) + z[:, 0] * z[:, 1] - 3 * z[:, 5] * z[:, 7])


def vote(z: np.ndarray) -> np.ndarray:
    return np.asarray((z[:, :10].sum(1) > 5) * 1.0)


def by_definition(f: Callable[[np.ndarray], np.ndarray], x: np.ndarray, orders: np.ndarray) -> np.ndarray:
    """The mean of what each feature adds along these orders, feature by feature."""
    total = np.zeros(len(x))
    for order in orders:
        point = np.zeros(len(x))
        for feature in order:
            before = f(point[None])[0]
            point[feature] = x[feature]
            total[feature] += f(point[None])[0] - before
    return total / len(orders)


def test_the_values_are_the_mean_over_the_orders_that_were_drawn() -> None:
    found = explain(models.blackbox(threes), X, plan=ORDERS, budget=200, seed=4)
    rows = found.ledger.take(found.ledger.owner >= 0)
    orders = rows.owner.reshape(-1, N)
    assert found.plan["estimator"] == "orders"
    assert len(orders) == found.plan["n_orders"]
    assert (orders[::2] == orders[1::2, ::-1]).all()
    np.testing.assert_allclose(found.values, by_definition(threes, X, orders), atol=1e-12)


def test_replicates_drawn_together_are_those_drawn_one_by_one() -> None:
    """A run that may stop draws them one by one, and a replay may ask for any of them."""
    rows = np.random.default_rng(0).standard_normal((3, N))
    options = {"baseline": baselines.sample(rows, 3), "plan": ORDERS, "budget": 900}
    at_once = explain(models.blackbox(threes), X, **options)
    one_by_one = explain(
        models.blackbox(threes), X, **options, replicates=at_once.plan["n_replicates"], max_seconds=1e6
    )
    assert at_once.plan["n_replicates"] == one_by_one.plan["n_replicates"] > 2
    for name, column in at_once.ledger.arrays().items():
        np.testing.assert_array_equal(column, one_by_one.ledger.arrays()[name])


def test_the_errors_are_made_when_they_are_read_and_not_before() -> None:
    found = explain(models.blackbox(threes), X, plan=ORDERS, budget=200)
    assert "departures" not in vars(found.estimate)
    again = found.estimate.with_rounding(np.ones(N))
    assert "departures" not in vars(again)
    np.testing.assert_array_equal(again.departures, found.estimate.departures)
    m = len(found.estimate.departures)
    scatter = found.estimate.departures.T @ found.estimate.departures / (m * (m - 1))
    np.testing.assert_allclose(np.diag(scatter), found.stderr**2, rtol=1e-12)
    np.testing.assert_allclose(found.estimate.departures.mean(0), 0.0, atol=1e-12)


def test_pairs_of_opposite_orders_know_effects_of_two_features_without_error() -> None:
    found = explain(models.blackbox(pairs_only), X, plan=ORDERS, budget=120)
    truth = X * np.arange(N)
    truth[[0, 1]] += X[0] * X[1] / 2
    truth[[5, 7]] -= 3 * X[5] * X[7] / 2
    np.testing.assert_allclose(found.values, truth, atol=1e-12)
    assert found.half_widths().max() < 1e-9


def test_values_sum_to_the_difference_for_every_background_and_stay_within_the_budget() -> None:
    background = np.random.default_rng(0).standard_normal((7, N))
    baseline = baselines.sample(background, 7)
    found = explain(models.blackbox(threes), X, baseline=baseline, plan=ORDERS, budget=400)
    assert found.values.sum() == pytest.approx(found.delta, abs=1e-10)
    assert found.cost.n_forwards <= 400
    truth = np.mean(
        [explain(models.blackbox(threes), X, baseline=b, plan="values", budget=None).values for b in background], axis=0
    )
    assert (np.abs(found.values - truth) <= found.half_widths()).all()


@pytest.mark.parametrize("budget", [106, 550])
def test_a_vote_is_covered_although_some_features_decide_no_order(budget: int) -> None:
    held, unseen = 0, 0
    for seed in range(30):
        found = explain(models.blackbox(vote), np.ones(N), plan=ORDERS, budget=budget, seed=seed)
        truth = np.where(np.arange(N) < 10, 0.1, 0.0)
        held += bool((np.abs(found.values - truth) <= found.half_widths()).all())
        unseen += bool((found.values[:10] == 0).any())
    assert unseen > 0  # otherwise the test shows nothing
    assert held >= 28


def test_more_orders_come_with_extend_and_with_a_tolerance() -> None:
    first = explain(models.blackbox(threes), X, plan=ORDERS, budget=400)
    more = first.extend(2000)
    assert more.plan["estimator"] == "orders"
    assert more.half_widths().max() < first.half_widths().max()
    assert more.values.sum() == pytest.approx(more.delta, abs=1e-10)
    until = explain(models.blackbox(threes), X, plan=ORDERS, budget=50_000, tolerance=0.02)
    assert until.reached
    assert until.cost.n_forwards < 50_000


def test_it_can_be_saved_replayed_and_reported(tmp_path) -> None:
    found = explain(models.blackbox(threes), X, plan=ORDERS, budget=400)
    assert "Shapley" in found.report(tmp_path / "page.html").read_text()
    loaded = gralis.load(found.save(tmp_path / "found.npz"))
    np.testing.assert_array_equal(loaded.values, found.values)
    again = gralis.replay(loaded, models.blackbox(threes))
    assert again.same


def test_a_budget_below_four_pairs_names_the_least() -> None:
    with pytest.raises(BudgetError, match=rf"orders=True.*at least {2 + 4 * 2 * (N - 1)}"):
        explain(models.blackbox(threes), X, plan=ORDERS, budget=50)
    with pytest.raises(GralisError, match="orders"):
        values(orders="yes")


def test_all_orders_of_a_small_game_give_the_shapley_values() -> None:
    """The estimator against the definition: every order once gives the exact values."""
    x, n = X[:5], 5
    every = np.array(list(itertools.permutations(range(n))))
    exact = explain(models.blackbox(threes), x, plan="values", budget=None)
    np.testing.assert_allclose(by_definition(threes, x, every), exact.values, atol=1e-12)
