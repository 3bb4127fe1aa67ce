"""The split of the variance of rays into a coalition part and a node part, on rows whose parts are known."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    yield __import__("variance_parts")
    for name in ("variance_parts", "report", "zoo"):
        sys.modules.pop(name, None)


def test_the_parts_of_known_rows_are_found(script):
    rng = np.random.default_rng(0)
    masks = rng.random((20_000, 3)) < 0.5
    of_ray, of_node = rng.normal(0, 2, (20_000, 3)), rng.normal(0, 1, (2, 20_000, 3))
    found = script.split(masks, of_ray + of_node)
    assert found["coalition"] == pytest.approx(3 * 4, rel=0.05)
    assert found["node"] == pytest.approx(3 * 1, rel=0.05)
    assert found["node_share"] == pytest.approx(0.2, rel=0.05)


def test_a_linear_model_has_no_variance_and_a_square_has_only_nodes(script):
    x, labels = torch.tensor([1.0, 2.0, 3.0]), torch.arange(3)
    linear = script.Case(lambda z: z.sum(1), x, torch.zeros(3), labels)
    assert script.parts(linear, 50)["node"] == pytest.approx(0, abs=1e-9)
    squares = script.Case(lambda z: (z**2).sum(1), x, torch.zeros(3), labels)  # the row of i is 2 t x_i^2
    found = script.parts(squares, 4000)
    assert found["node"] == pytest.approx(sum(4 * v**4 / 12 for v in (1, 2, 3)), rel=0.1)
    assert found["node_share"] > 0.95
