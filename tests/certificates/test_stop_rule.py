"""Intervals under a stop rule: looks are paid for, and a rule that peeks for free fails the same coverage test."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import torch

from gralis import Uniform, explain
from gralis.certificates.simultaneous import half_widths
from gralis.certificates.stopping import Looks
from gralis.estimators import Estimate
from reference import network

LEVEL = 0.9
LEAST = 0.86  # of 400 runs at 90%: below it has probability 0.5%


def covered_when_stopped(seed: int, looks: Sequence[int], prices: list[float]) -> bool:
    """One run on normal replicates around zero: stop at the first look whose half-width is small enough."""
    rows = np.random.default_rng(seed).standard_normal((max(looks), 1))
    for n, price in zip(looks, prices, strict=True):
        found = Estimate.mean(rows[:n], "test")
        half = half_widths(found, 1 - (1 - LEVEL) / price)
        if half.max() < 0.25 or n == max(looks):
            return bool((np.abs(found.values) <= half).all())
    raise AssertionError


def coverage(looks: Sequence[int], prices: list[float]) -> float:
    return float(np.mean([covered_when_stopped(seed, looks, prices) for seed in range(400)]))


def test_paid_looks_cover() -> None:
    looks = Looks.between(0, 60)
    prices = [looks.price(look) for look in looks.at]
    assert sum(1 / price for price in prices) == pytest.approx(1)  # together they spend 1 - level, no more
    assert coverage(looks.at, prices) >= LEAST


def test_peeking_without_paying_fails_that_test() -> None:
    looks = list(range(2, 61))
    assert coverage(looks, [1.0] * len(looks)) < LEAST


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
    looks = Looks.between(0, found.ledger.n_replicates).at
    assert found.price == pytest.approx(sum(looks) / looks[-1])
    wide = np.diff(found.interval(0.9), axis=1)[:, 0] / 2
    assert wide == pytest.approx(half_widths(found.estimate, 1 - 0.1 / found.price))
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
