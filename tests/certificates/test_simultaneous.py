"""The simultaneous critical value: between one interval's and Bonferroni's, and covering what it says."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.stats import t as student

from gralis.certificates.simultaneous import critical, half_widths
from gralis.estimators import Estimate


def correlated(rng: np.random.Generator, n_replicates: int, n_features: int, correlation: float) -> np.ndarray:
    shared = rng.standard_normal((n_replicates, 1))
    own = rng.standard_normal((n_replicates, n_features))
    return np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own


def centred(rows: np.ndarray) -> np.ndarray:
    return rows - rows.mean(0)


def test_one_feature_is_student() -> None:
    rows = centred(np.random.default_rng(0).standard_normal((12, 1)))
    assert critical(rows, 0.95) == pytest.approx(student.ppf(0.975, 11))


def test_between_one_interval_and_bonferroni() -> None:
    rng = np.random.default_rng(1)
    single, bonferroni = student.ppf(0.975, 11), student.ppf(1 - 0.025 / 20, 11)
    apart = critical(centred(correlated(rng, 12, 20, 0.0)), 0.95)
    together = critical(centred(correlated(rng, 12, 20, 0.99)), 0.95)
    assert single < together < apart <= bonferroni
    assert together < single + 0.35 * (bonferroni - single)
    assert apart > single + 0.8 * (bonferroni - single)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.95])
def test_covers_all_features_together(correlation: float) -> None:
    rng = np.random.default_rng(2)
    n_runs, hits = 200, 0
    for _ in range(n_runs):
        found = Estimate.mean(correlated(rng, 12, 8, correlation), "test")
        hits += bool((np.abs(found.values) <= half_widths(found, 0.9)).all())
    assert hits / n_runs >= 0.84  # 90% intended; below 84% has probability below 1%
    assert hits / n_runs <= 0.97  # and not by being far too wide


def test_exact_has_no_width_and_one_replicate_cannot_tell() -> None:
    values = np.array([1.0, 2.0])
    assert half_widths(Estimate(values, np.zeros((1, 2)), "exact", exact=True), 0.95).tolist() == [0.0, 0.0]
    assert np.isnan(half_widths(Estimate(values, np.zeros((1, 2)), "one"), 0.95)).all()


def test_features_that_never_vary_do_not_widen_the_others() -> None:
    rows = centred(np.random.default_rng(3).standard_normal((12, 4)))
    padded = np.concatenate([rows, np.zeros((12, 50))], axis=1)
    assert critical(padded, 0.95) == pytest.approx(critical(rows, 0.95), rel=0.02)


def test_many_replicates_need_no_more_numbers_than_their_values() -> None:
    """A root of the correlation has as many rows as there are features, however many replicates there are."""
    rows = centred(correlated(np.random.default_rng(5), 400, 4, 0.5))
    tracemalloc.start()
    try:
        found = critical(rows, 0.95)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 300e6  # one number per draw and pair of replicates would take 2.6e9 bytes
    draws = np.abs(correlated(np.random.default_rng(6), 200_000, 4, 0.5)).max(1)  # with 399 dof, t is almost normal
    assert found == pytest.approx(np.quantile(draws, 0.95), rel=0.03)
