"""Hundreds of features on a small budget: rays enough for all of them, or a refusal; never an error of zero."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from gralis import BudgetError, Gaussian, Uniform, explain


def pairs(z: torch.Tensor) -> torch.Tensor:
    return z.sum(1) + (z[:, :-1] * z[:, 1:]).sum(1)


X = torch.linspace(0.01, 0.1, 400, dtype=torch.float64)


def test_large_coalitions_need_few_gradients() -> None:
    found = explain(pairs, X, kernel=Uniform(), budget=256)
    assert found.ledger.masks[found.ledger.replicate >= 0].any(0).all()
    assert np.isfinite(found.stderr).all()


def test_small_coalitions_need_more_and_say_so() -> None:
    with pytest.raises(BudgetError, match=r"budget of 256 .*400 features.*at least"):
        explain(pairs, X, kernel=Gaussian(0.05), budget=256)


def test_a_feature_on_no_ray_has_no_error_rather_than_none() -> None:
    found = explain(pairs, X[:60], budget=300)
    ledger = found.ledger
    alone = ledger.take(~ledger.masks[:, 7] | (ledger.sizes == 1))
    again = found.design.estimate(alone)
    assert np.isnan(again.stderr[7])
    assert np.isfinite(np.delete(again.stderr, 7)).all()
    still = np.array(found.squared_distance)
    still[:, 7] = 0  # a feature that does not move is known to be nothing
    assert replace(found.design, squared_distance=still).estimate(alone).stderr[7] < 1e-12
