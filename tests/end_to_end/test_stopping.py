"""When explain stops: tolerance, time, an interrupt, a progress function."""

from __future__ import annotations

import numpy as np
import pytest

import gralis
from explained import Interrupted, easy, same_rows, smooth, spread, truth


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


def test_max_seconds_that_suffice_change_nothing():
    explanation = gralis.explain(smooth, spread(8), budget=400, max_seconds=600)
    assert explanation.complete is True
    assert "stopped" not in str(explanation)


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


@pytest.mark.parametrize(("x", "budget"), [(spread(6), 300), (np.ones(4096), 4096)], ids=["rows", "folded"])
def test_a_progress_callback_may_stop_the_run(x, budget):
    def stop(done: int, total: int) -> None:
        raise StopIteration("enough")

    with pytest.raises(StopIteration, match="enough"):
        gralis.explain(lambda z: z.square().sum(1), x, budget=budget, progress=stop)


def test_a_bar_is_shown_when_asked_for(capsys):
    gralis.explain(smooth, spread(6), budget=300, progress=True)
    assert "gralis: rays" in capsys.readouterr().err
    gralis.explain(smooth, spread(6), budget=300)  # not on a terminal here
    assert capsys.readouterr().err == ""
