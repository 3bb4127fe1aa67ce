"""Many features: the folded ledger."""

from __future__ import annotations

import numpy as np
import pytest

import gralis
from artificial_clock import ArtificialClock, Timed
from explained import Counting, Interrupted, easy, smooth, spread, truth
from gralis import Gaussian, GralisError, SizeKernel, Uniform
from gralis.ledger import FoldedLedger


@pytest.fixture
def folding(monkeypatch):
    """Every ledger that can be folded is."""
    monkeypatch.setattr("gralis.run.settings._KEEP_BYTES", 0)


@pytest.mark.parametrize("plan", ["shared", "independent"])
@pytest.mark.usefixtures("folding")
def test_a_folded_ledger_agrees_with_the_truth_within_its_errors(plan):
    x, other = spread(9), SizeKernel(lambda s: 0.7**s)
    kernels = [Gaussian(0.75) if plan == "shared" else other, Uniform()]
    exact = truth(smooth, x, kernel=kernels[0])
    model = Counting()
    folded = gralis.explain(model, x, plan=plan, budget=3000, kernel=kernels)
    assert isinstance(folded.ledger, FoldedLedger)
    assert model.agrees_with(folded.cost)
    assert folded.cost.n_gradients <= 3000
    assert (np.abs(folded.values - exact) <= 5 * folded.stderr).all()
    assert folded.stderr.max() < 0.2 * np.abs(exact).max()
    calls = model.calls
    uniform = folded.with_kernel(Uniform())
    assert (np.abs(uniform.values - truth(smooth, x, kernel=Uniform())) <= 5 * uniform.stderr).all()
    with pytest.raises(GralisError, match=r"folded .* kernel=\[\.\.\.\]"):
        folded.with_kernel(Gaussian(0.3))
    with pytest.raises(GralisError, match="folded"):
        _ = folded.effective_rays
    assert folded.interval().shape == (9, 2)
    assert "folded" in str(folded)
    assert model.calls == calls


@pytest.mark.usefixtures("folding")
def test_what_can_be_enumerated_is_not_folded():
    explanation = gralis.explain(smooth, spread(5))
    assert explanation.plan["name"] == "exhaustive"
    assert (explanation.stderr < 1e-10).all()
    np.testing.assert_allclose(explanation.values, truth(smooth, spread(5)), rtol=1e-10)


@pytest.mark.usefixtures("folding")
def test_a_folded_ledger_is_unbiased():
    """Over many seeds the mean is the truth, up to the error of that mean."""
    x = spread(8)
    exact = truth(smooth, x)
    runs = np.stack([gralis.explain(smooth, x, budget=500, seed=seed).values for seed in range(24)])
    error = runs.std(0, ddof=1) / np.sqrt(len(runs))
    assert (np.abs(runs.mean(0) - exact) <= 4.5 * error).all()


@pytest.mark.usefixtures("folding")
def test_a_folded_ledger_gives_the_same_at_any_batch_size_and_can_be_extended():
    options = {"model": smooth, "x": spread(8), "budget": 800}
    first, *others = (gralis.explain(batch_size=size, **options) for size in ("auto", 1, 17))
    for other in others:
        np.testing.assert_allclose(other.values, first.values, rtol=1e-10)
    sums = first.ledger.rays.copy()
    longer = first.extend(3200)
    assert np.array_equal(first.ledger.rays, sums)
    assert longer.cost.n_gradients > first.cost.n_gradients
    assert longer.ledger.n_replicates == longer.plan["n_replicates"]
    assert np.sqrt((longer.stderr**2).mean()) < 0.8 * np.sqrt((first.stderr**2).mean())


@pytest.mark.usefixtures("folding")
def test_a_folded_run_stops_at_its_tolerance_or_time(monkeypatch):
    easily = gralis.explain(easy, spread(14), budget=20_000, tolerance=0.05)
    assert isinstance(easily.ledger, FoldedLedger)
    assert easily.reached is True
    assert easily.cost.n_gradients < 10_000
    late = gralis.explain(
        Timed(ArtificialClock(monkeypatch), 0.01, 0.02), spread(12), budget=30_000, max_seconds=20.0, batch_size=32
    )
    assert late.complete is False
    assert np.isfinite(late.values).all()
    partial = gralis.explain(
        Interrupted(30).eval(), spread(10), budget=3000, batch_size=16, on_interrupt="return", seed=2
    )
    assert partial.complete is False
    assert partial.extend(500).complete
