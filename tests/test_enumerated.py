"""With the default budget, a plan without gradients evaluates all coalitions if that is quicker than a fit to fewer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import gralis
from gralis.api.explain import complete
from gralis.options import Options
from gralis.run import pace

WEIGHTS = np.random.default_rng(0).standard_normal((12, 20))
X = np.random.default_rng(1).standard_normal(12)


def smooth(z: np.ndarray) -> np.ndarray:
    return np.asarray(np.tanh(z @ WEIGHTS / 4).sum(1))


@pytest.mark.parametrize("plan", ["values", "endpoint"])
def test_twelve_features_of_a_quick_model_are_enumerated_and_replayed(plan: str) -> None:
    model = gralis.models.blackbox(smooth)
    found = gralis.explain(model, X, plan=plan, progress=False)
    assert found.exact
    assert 2**12 <= found.cost.n_forwards <= 2**12 + 2
    assert gralis.replay(found, model).same
    sampled = gralis.explain(model, X, plan=plan, budget=1024, progress=False)
    assert not sampled.exact
    assert sampled.cost.n_forwards <= 1024


def options() -> Options:
    return Options.checked(complete({}, "explain"))


@pytest.mark.parametrize(
    ("forward", "n_moving", "n_baselines", "budget"),
    [
        (1e-5, 10, 1, 1024),  # as many as the default
        (1e-5, 11, 1, 2048),
        (1e-5, 12, 1, 4096),
        (1e-5, 13, 1, 1024),  # too many
        (1e-5, 10, 3, 3070),
        (1e-5, 10, 5, 1024),
        (1e-5, 60, 1, 1024),
        (0.01, 12, 1, 1024),  # too slow
        (0.004, 12, 1, 4096),
    ],
)
def test_which_runs_are_enumerated(forward: float, n_moving: int, n_baselines: int, budget: int) -> None:
    assert pace.enumerated(options(), forward, n_moving, n_baselines).budget == budget
    limited = replace(options(), max_seconds=1.0)
    assert pace.enumerated(limited, forward, n_moving, n_baselines) is limited
    asked = replace(options(), automatic=False)
    assert pace.enumerated(asked, forward, n_moving, n_baselines) is asked
