"""plan="values": Shapley values from forwards only, against enumeration and closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gralis
from gralis import BudgetError, explain
from reference import network

X = torch.linspace(-1.2, 1.5, 9, dtype=torch.float64)


def shapley(model, x: torch.Tensor) -> np.ndarray:
    return explain(model, x, plan="endpoint", kernel=gralis.Uniform(), budget=2**9 + 1).values


class Counting:
    def __init__(self) -> None:
        self.rows: list[bytes] = []

    def __call__(self, z: torch.Tensor) -> torch.Tensor:
        self.rows += [row.numpy().tobytes() for row in z.detach()]
        return network("tanh", 9, 1)(z)


def test_every_coalition_once_and_exact_when_all_are_there() -> None:
    model = Counting()
    found = explain(model, X, plan="values", budget=2**9)
    assert len(model.rows) == len(set(model.rows)) <= 2**9
    assert found.cost.n_forwards == len(model.rows)
    assert found.cost.n_gradients == 0
    assert found.values == pytest.approx(shapley(network("tanh", 9, 1), X), abs=1e-9)


def test_close_to_the_truth_with_an_error_that_knows_it() -> None:
    model = network("tanh", 9, 1)
    truth = shapley(model, X)
    found = [explain(model, X, plan="values", budget=150, seed=seed) for seed in range(8)]
    error = np.stack([e.values for e in found]) - truth
    stated = np.stack([e.stderr for e in found])
    assert np.sqrt((error**2).mean()) < 0.1 * np.abs(truth).mean()
    assert 0.4 < np.sqrt((error**2).mean() / (stated**2).mean()) < 2.5
    assert all(e.values.sum() == pytest.approx(e.delta) for e in found)
    assert all(e.method == "Shapley values" and e.shapley().values is e.values for e in found)
    assert "Shapley values" in repr(found[0])


def test_additive_games_and_black_boxes() -> None:
    slopes = np.arange(1.0, 21.0)
    model = gralis.models.blackbox(lambda z: z @ slopes)
    found = explain(model, np.ones(20), plan="values", budget=100)
    assert found.values == pytest.approx(slopes, abs=1e-3)


def test_too_small_a_budget_is_refused() -> None:
    with pytest.raises(BudgetError, match=r"budget of 3 .*at least"):
        explain(network("tanh", 9, 1), X, plan="values", budget=3)
