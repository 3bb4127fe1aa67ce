"""Rare events: the intervals of a bump cover, or the result says why not; well-behaved functions stay as they are.

This is the small version of benchmarks/coverage_sensitivity.py.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from gralis.certificates.simultaneous import half_widths
from gralis.sobol import sensitivity

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def coverage(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark, imported as its own command line would."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("coverage_sensitivity")


def test_a_bump_is_covered_where_the_jackknife_alone_misses_it(coverage: ModuleType) -> None:
    f, bounds, truth = coverage.box(3, 0.1)
    alone = together = 0
    for seed in range(8):
        result = sensitivity(f, bounds, method="sampling", budget=2**14, seed=seed)
        first = result.estimates["first"]
        alone += bool((np.abs(first.values - truth["first"]) <= half_widths(replace(first, carriers=None), 0.95)).all())
        together += all(coverage.covers(result, truth, kind) for kind in coverage.KINDS)
        assert any("rare events" in doubt for doubt in result.doubts)
        assert f"doubt: {result.doubts[0]}" in repr(result)
    assert alone <= 4
    assert together >= 7


@pytest.mark.parametrize("name", ["ishigami", "sobol-g", "polynomial", "additive"])
def test_a_well_behaved_function_has_no_doubts_and_hardly_wider_intervals(coverage: ModuleType, name: str) -> None:
    f, bounds, truth = coverage.smooth_cases()[name]
    result = sensitivity(f, bounds, method="sampling")
    assert not result.doubts
    for kind in coverage.KINDS:
        before = half_widths(replace(result.estimates[kind], carriers=None), 0.95)
        after = result._half(kind)
        assert after.shape == truth[kind].shape
        assert np.median(after / np.maximum(before, 1e-300)) < 1.1, kind


@pytest.mark.slow
def test_intervals_hold_or_are_doubted(coverage: ModuleType) -> None:
    for name, case in {**coverage.smooth_cases(), **coverage.rare_cases()}.items():
        cell = coverage.sensitivity_cell(name, case, coverage.BUDGETS[0], 30, "sampling")
        for kind in coverage.KINDS:  # each kind promises by itself
            assert max(cell[kind], cell["doubts"]) >= 0.8, (name, kind)  # 0.92, with 30 runs
        if name in coverage.smooth_cases():
            assert cell["doubts"] <= 0.05
            assert cell["wider"] <= 1.1


@pytest.mark.slow
def test_one_pass_and_importance_cover(coverage: ModuleType) -> None:
    shares = coverage.one_pass_cell(20)
    assert min(shares["shares"], shares["closed"]) >= 0.8
    for cell in coverage.importance_cells(25, (30, 100)):
        assert min(cell["mean_abs"], cell["mean"]) >= 0.8, cell
