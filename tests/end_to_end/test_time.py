"""Time: limits hold within one batch, the default budget of a slow model is cut, and costs are told beforehand."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch

import gralis
from artificial_clock import ArtificialClock, Timed
from gralis.run import pace

X = torch.linspace(-1.0, 1.5, 12, dtype=torch.float64)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> ArtificialClock:
    return ArtificialClock(monkeypatch)


@pytest.mark.parametrize("plan", ["shared", "permutation", "independent", "values"])
def test_a_limit_holds_within_one_batch_and_gives_what_is_there(clock: ArtificialClock, plan: str) -> None:
    model = Timed(clock, 0.01, 0.02)
    found = gralis.explain(model, X, plan=plan, budget=3000, max_seconds=20.0)
    assert found.complete is False
    assert 20.0 <= clock.seconds < 20.0 + 0.03 * max(model.sizes)
    assert clock.seconds < 20.0 * 1.1  # batches are a twentieth of the time
    assert np.isfinite(found.stderr).all()
    assert "stopped before the plan was done" in str(found)


@pytest.mark.parametrize("plan", ["shared", "exhaustive", "values", "permutation"])
@pytest.mark.parametrize("max_seconds", [0.5, 5.0, 15.0])
def test_a_time_that_is_too_short_is_refused_with_the_least(
    clock: ArtificialClock, plan: str, max_seconds: float
) -> None:
    """The pilot, the census and the probe of the function count too. The time that is named then suffices."""
    model = Timed(clock, 0.1, 0.2)
    options = {"plan": plan, "budget": 40_000}
    with pytest.raises(
        gralis.GralisError, match=r"'max_seconds' parameter of explain must be at least about"
    ) as caught:
        gralis.explain(model, X, max_seconds=max_seconds, **options)
    assert clock.seconds < max_seconds + 0.3 * max(model.sizes)
    least = float(re.search(r"at least about (\S+) for", str(caught.value))[1])  # type: ignore[index]
    found = gralis.explain(model, X, max_seconds=1.5 * least, **options)
    assert np.isfinite(found.values).all()


def test_a_limit_on_the_time_makes_the_pilot_small(clock: ArtificialClock) -> None:
    found = gralis.explain(Timed(clock, 0.001), X, budget=3000, max_seconds=1000.0)
    assert (found.ledger.replicate == -1).sum() - 1 == 24  # and the coalition of all features
    assert found.complete


def test_a_limited_run_that_goes_on_keeps_the_limit(clock: ArtificialClock) -> None:
    found = gralis.explain(Timed(clock, 0.01, 0.02), X, budget=3000, max_seconds=20.0)
    before = clock.seconds
    longer = found.extend(2000)
    assert longer.ledger.n_replicates > found.ledger.n_replicates
    assert clock.seconds - before < 20.0 * 1.1


def test_the_default_budget_of_a_fast_model_is_1024(clock: ArtificialClock) -> None:
    found = gralis.explain(Timed(clock, 0.001, 0.002), X)
    assert 1000 <= found.cost.n_gradients <= 1024
    assert (found.provenance["budget"], found.provenance["automatic"], found.reached) == (1024, True, None)
    explicit = gralis.explain(Timed(clock, 0.001, 0.002), X, budget=1024)
    np.testing.assert_array_equal(found.values, explicit.values)


def test_the_default_of_a_slow_model_stops_and_says_how_to_go_on(clock: ArtificialClock, tmp_path) -> None:
    model = Timed(clock, 0.1, 0.2)
    found = gralis.explain(model, X)
    assert clock.seconds < pace.AUTOMATIC_SECONDS * 1.5
    assert (found.provenance["tolerance"], found.provenance["max_seconds"]) == (0.05, 60.0)
    assert found.reached is not None
    assert "tolerance 0.05" in str(found)
    assert "stops at a tolerance of 5% or 60 s; explanation.extend(budget) goes on" in str(found)
    longer = found.extend(300)
    assert longer.cost.n_gradients > found.cost.n_gradients + 200  # neither limit holds any more
    for each in (found, longer):
        again = gralis.replay(gralis.load(each.save(tmp_path / "e.gralis")), model)
        assert again.same, again


def test_an_explicit_budget_stays_what_it_is(clock: ArtificialClock) -> None:
    assert gralis.explain(Timed(clock, 1.0, 2.0), X, budget=300).cost.n_gradients > 280


def test_a_very_slow_model_gets_the_least_at_any_time(clock: ArtificialClock) -> None:
    found = gralis.explain(Timed(clock, 5.0, 10.0), X)
    assert found.ledger.n_replicates >= 2
    assert found.cost.n_gradients <= 8 * 12 + 64
    few = gralis.explain(Timed(clock, 5.0, 10.0), X[:7])  # 1 016 gradients would enumerate all coalitions
    assert few.cost.n_gradients <= 8 * 7 + 64


@pytest.mark.parametrize("slow", [False, True])
def test_a_slow_black_box_is_paced_too(clock: ArtificialClock, slow: bool) -> None:
    model = Timed(clock, 0.5 if slow else 0.01)
    box = gralis.models.blackbox(lambda z: model(torch.as_tensor(z)).numpy())
    found = gralis.explain(box, X, plan="values")
    if slow:
        assert clock.seconds < 1.5 * (8 * 12 + 64)
        assert found.provenance["tolerance"] == 0.05
    else:
        assert found.cost.n_forwards > 900


def test_many_inputs_do_not_depend_on_the_speed(clock: ArtificialClock) -> None:
    found = gralis.explain_batch(Timed(clock, 1.0, 2.0), torch.stack([X, X.flip(0)]))
    assert all(each.cost.n_gradients > 1000 for each in found)


@pytest.mark.parametrize(
    ("plan", "budget"),
    [("shared", 700), ("shared", 40_000), ("exhaustive", 40_000), ("values", 700), ("permutation", 700)],
)
def test_the_cost_is_told_within_half(clock: ArtificialClock, plan: str, budget: int) -> None:
    model = Timed(clock, 0.001, 0.004)
    told = gralis.cost(model, X, plan=plan, budget=budget)
    began = clock.seconds
    found = gralis.explain(model, X, plan=plan, budget=budget)
    took = clock.seconds - began
    assert took / 1.5 < told.seconds < 1.5 * took
    assert found.cost.n_gradients <= told.n_gradients <= 1.1 * found.cost.n_gradients


def test_the_cost_of_a_slow_model_is_that_of_its_default(clock: ArtificialClock) -> None:
    told = gralis.cost(Timed(clock, 0.1, 0.2), X)
    assert told.seconds < 1.5 * pace.AUTOMATIC_SECONDS
    assert told.n_gradients < 400
