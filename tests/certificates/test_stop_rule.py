"""Intervals under a stop rule: looks are paid for, and a rule that peeks for free fails the same coverage test."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gralis import Uniform, explain
from gralis.certificates.simultaneous import half_widths
from gralis.estimators import Estimate
from reference import network

LEVEL = 0.9
LEAST = 0.86  # of 400 runs at 90%: below it has probability 0.5%


def covered_when_stopped(seed: int, looks: list[int], paid: int) -> bool:
    """One run on normal replicates around zero: stop at the first look whose half-widths are small enough."""
    rows = np.random.default_rng(seed).standard_normal((max(looks), 1))
    for n in looks:
        found = Estimate.mean(rows[:n], "test")
        half = half_widths(found, 1 - (1 - LEVEL) / paid)
        if half.max() < 0.25 or n == max(looks):
            return bool((np.abs(found.values) <= half).all())
    raise AssertionError


def coverage(looks: list[int], paid: int) -> float:
    return float(np.mean([covered_when_stopped(seed, looks, paid) for seed in range(400)]))


def test_paid_looks_cover() -> None:
    looks = [4, 7, 12, 20, 35, 60]
    assert coverage(looks, paid=len(looks)) >= LEAST


def test_peeking_without_paying_fails_that_test() -> None:
    assert coverage(list(range(2, 61)), paid=1) < LEAST


def test_intervals_hold_after_stopping() -> None:
    model, x = network("tanh", 7, 3), torch.linspace(-1, 1.5, 7, dtype=torch.float64)
    truth = explain(model, x, kernel=Uniform(), plan="exhaustive", n_nodes=48, budget=None).values
    hits, spent = 0, set()
    for seed in range(25):
        found = explain(model, x, kernel=Uniform(), seed=seed, budget=600, tolerance=0.1)
        low, high = found.interval(LEVEL).T
        hits += bool(((low <= truth) & (truth <= high)).all())
        spent.add(found.cost.n_gradients)
    assert hits >= 20
    assert len(spent) > 1  # they do stop at different times


def test_interval_of_a_run_that_could_stop_is_wider() -> None:
    model, x = network("relu", 7, 1), torch.linspace(-1, 1.5, 7, dtype=torch.float64)
    found = explain(model, x, budget=500, tolerance=1e-9)
    assert found.looks == 6
    wide = np.diff(found.interval(0.9), axis=1)[:, 0] / 2
    assert wide == pytest.approx(half_widths(found.estimate, 1 - 0.1 / 6))
    assert found.certificate(0.1).half_widths == pytest.approx(wide)


def test_what_budget_would_do_it() -> None:
    model, x = network("relu", 9, 1), torch.linspace(-1, 1.5, 9, dtype=torch.float64)
    found = explain(model, x, budget=500, tolerance=1e-4)
    assert found.reached is False
    needed = found.budget_for(1e-4)
    assert needed > found.cost.n_gradients
    assert "not reached within the budget: about" in repr(found)
    # The square-root law: a tolerance half as large takes four times as much.
    assert found.budget_for(5e-5) == pytest.approx(4 * needed, rel=1e-3)
    assert "reached" in repr(explain(model, x, budget=500, tolerance=100.0))


def test_two_seeds_contain_each_other() -> None:
    """|a - b| <= half_a + half_b for all features: at least as often as both intervals cover."""
    model, x = network("softplus", 8, 2), torch.linspace(-1, 1.5, 8, dtype=torch.float64)
    found = [explain(model, x, budget=250, seed=seed) for seed in range(30)]
    pairs = zip(found[::2], found[1::2], strict=True)
    hits = [
        (np.abs(a.values - b.values) <= a.certificate().half_widths + b.certificate().half_widths).all()
        for a, b in pairs
    ]
    assert np.mean(hits) >= 0.9
