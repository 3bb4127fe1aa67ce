"""The spread of phi over baselines against its closed form for an affine model, and against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gralis import GralisError, baselines, explain
from reference import network


def test_affine_spread_is_the_spread_of_the_baseline() -> None:
    """phi_i^b = beta_i (x_i - x'_i): its deviation over b is |beta_i| times that of x'_i."""
    beta = torch.tensor([2.0, -1.0, 0.5, 3.0, 1.0], dtype=torch.float64)
    background = np.random.default_rng(0).normal(0, [1, 2, 0, 0.5, 1], (12, 5))
    expected = np.abs(beta.numpy()) * background.std(0)
    for plan, close in (("exhaustive", 1e-12), ("shared", 0.25)):
        options = {"baseline": baselines.sample(background), "plan": plan, "budget": 2900 if plan == "shared" else None}
        found = explain(lambda z: z @ beta, torch.ones(5, dtype=torch.float64), **options).baseline_spread()
        assert found.spread == pytest.approx(expected, rel=close, abs=close)


def test_spread_of_a_network_by_enumeration() -> None:
    model, x = network("tanh", 4, 2), torch.linspace(0.5, 1.5, 4, dtype=torch.float64)
    background = np.random.default_rng(1).normal(0, 1.5, (6, 4))
    found = explain(model, x, baseline=baselines.sample(background), plan="independent", budget=20_000)
    single = [
        explain(model, x, baseline=torch.from_numpy(row), plan="exhaustive", budget=None).values for row in background
    ]
    assert found.baseline_spread().spread == pytest.approx(np.std(single, axis=0), rel=0.1, abs=0.01)


@pytest.mark.parametrize(
    ("plan", "budget", "close"), [("endpoint", None, 1e-9), ("values", None, 1e-9), ("values", 150, 0.15)]
)
def test_spread_from_coalition_values_alone(plan: str, budget: int | None, close: float) -> None:
    """Against the plan's own values for every baseline on its own, all coalitions enumerated."""
    model, x = network("tanh", 6, 2), torch.linspace(0.5, 1.5, 6, dtype=torch.float64)
    background = np.random.default_rng(1).normal(0, 1.5, (4, 6))
    single = [explain(model, x, baseline=torch.from_numpy(row), plan=plan, budget=None).values for row in background]
    found = explain(model, x, baseline=baselines.sample(background), plan=plan, budget=budget).baseline_spread()
    expected = np.std(single, axis=0)
    assert found.spread == pytest.approx(expected, rel=close, abs=close * expected.max())
    assert ((found.share >= 0) & (found.share <= 1)).all()


def test_one_baseline_has_no_spread() -> None:
    with pytest.raises(GralisError, match=r"several baselines.*baselines\.sample"):
        explain(network("tanh", 4, 2), torch.ones(4, dtype=torch.float64)).baseline_spread()
