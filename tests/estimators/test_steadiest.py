"""Choosing among estimates by their spread, without looking at the replicates that are averaged."""

from __future__ import annotations

import numpy as np

from gralis.estimators.estimate import Estimate
from gralis.estimators.steadiest import Steadiest


def _two_skewed_estimates(rng, n=6):
    """Two unbiased estimates of zero from the same replicates; both are skewed, so a small spread means a low mean."""
    return [Estimate.mean((rng.exponential(size=(n, 1)) ** 2 - 2.0), name) for name in ("a", "b")]


def test_the_choice_has_no_bias():
    rng = np.random.default_rng(0)
    honest, greedy = [], []
    for _ in range(6000):
        tried = _two_skewed_estimates(rng)
        honest.append(Steadiest.of(tried).values[0])
        greedy.append(min(tried, key=lambda e: (e.departures**2).sum()).values[0])
    error = np.std(honest) / np.sqrt(len(honest))
    assert abs(np.mean(honest)) < 4 * error
    assert np.mean(greedy) < -20 * error  # the choice by the whole spread is off by far


def test_the_clearly_better_estimate_wins_and_keeps_its_widening():
    rng = np.random.default_rng(1)
    rough, fine = (
        Estimate.mean(rng.normal(size=(8, 3)) * scale, name) for scale, name in ((1.0, "rough"), (0.01, "f"))
    )
    search = Steadiest()
    search.look_at(rough)
    search.look_at(fine, 1.5)
    assert search.estimate.method == "f"
    assert np.allclose(search.estimate.departures, 1.5 * fine.departures)
    assert not search.over


def test_the_search_ends_after_two_failures():
    rng = np.random.default_rng(2)
    search = Steadiest()
    for scale in (1.0, 2.0, 3.0):
        search.look_at(Estimate.mean(rng.normal(size=(8, 3)) * scale, str(scale)))
    assert search.over
    assert search.estimate.method == "1.0"
