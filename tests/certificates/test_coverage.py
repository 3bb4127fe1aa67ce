"""Simultaneous 95% intervals against enumerated truth: the small version of benchmarks/coverage.py."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gralis import Gaussian, Uniform, explain
from gralis.certificates.simultaneous import half_widths
from reference import network

X = torch.linspace(-1.2, 1.5, 9, dtype=torch.float64)
N_RUNS = 30


@pytest.mark.parametrize("kernel", [Uniform(), Gaussian(0.3)], ids=["uniform", "narrow"])
@pytest.mark.parametrize("kind", ["tanh", "relu"])
def test_intervals_cover_every_feature(kind: str, kernel: object) -> None:
    model = network(kind, 9, 1)
    rule = {"quadrature": "midpoint", "n_nodes": 200} if kind == "relu" else {"n_nodes": 32}
    truth = explain(model, X, kernel=kernel, plan="exhaustive", budget=None, coalition_values=False, **rule).values
    found = [explain(model, X, kernel=kernel, budget=220, seed=seed) for seed in range(N_RUNS)]
    error = np.abs(np.stack([e.values for e in found]) - truth)
    half = np.stack([half_widths(e.estimate, 0.95) for e in found])
    assert (error <= half).all(1).mean() >= 0.83  # at 95%, 24 or fewer of 30 have probability 0.3%
    assert (error <= half / 3).all(1).mean() < 0.83  # and not by being far too wide
