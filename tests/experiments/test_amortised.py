"""The trained explainer: coalitions of the Shapley kernel, a loss that leads to Shapley values, an honest table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from itertools import product
from math import comb
from pathlib import Path

import numpy as np
import pytest
import torch

import gralis

FOLDER = Path(__file__).parents[2] / "experiments" / "amortised"


@pytest.fixture
def explainer(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.delitem(sys.modules, "explainer", raising=False)
    yield __import__("explainer")
    sys.modules.pop("explainer", None)


def test_coalitions_follow_the_shapley_kernel(explainer):
    n, rows = 5, 60_000
    masks = explainer.kernel_coalitions(np.random.default_rng(0), rows, n)
    found = np.bincount(masks @ (1 << np.arange(n)), minlength=2**n) / rows
    sizes = np.array([sum(bits) for bits in product((0, 1), repeat=n)])  # a permutation of the codes, same counts
    weight = {s: (n - 1) / (comb(n, s) * s * (n - s)) for s in range(1, n)}
    total = sum(weight.get(int(s), 0.0) for s in sizes)
    codes = np.array([bin(code).count("1") for code in range(2**n)])
    expected = np.array([weight.get(int(s), 0.0) / total for s in codes])
    assert found[0] == found[-1] == 0
    assert np.abs(found - expected).max() < 5 * np.sqrt(expected.max() / rows)


def test_for_one_image_the_loss_leads_to_its_shapley_values(explainer):
    x = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0)) + 0.5

    def value(points):
        cells = points.mean(1).unfold(1, 4, 4).unfold(2, 4, 4).mean((3, 4)).flatten(1)
        return cells[:, 0] * cells[:, 1] + 2 * cells[:, 2] - cells[:, 1] * cells[:, 3] * cells[:, 0]

    trained, n_forwards = explainer.train(value, x, 2, epochs=600, n_masks=64, rate=0.01)
    exact = gralis.explain(
        value, x[0], features=gralis.features.grid((3, 8, 8), 4), plan="exhaustive", budget=None
    ).shapley()
    found = explainer.explain(trained, value, x[0])
    assert found == pytest.approx(exact.values, abs=0.02)
    assert found.sum() == pytest.approx(float(value(x)), abs=1e-5)
    assert n_forwards == 2 + 600 * 64


def test_the_small_table(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(gralis.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(FOLDER / "run.py"), "--small", "--out", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "amortised.json").read_text())
    by = {(line["method"], line["model"]): line for line in found["lines"]}
    for model in ("as trained", "fine-tuned", "trained anew"):
        error = by["gralis, 128 forwards", model]["error"]
        assert error < by["gralis, 32 forwards", model]["error"]
        assert error < min(line["error"] for line in found["lines"] if "explainer" in line["method"])
    old, renewed = (by[f"explainer{how}", "trained anew"] for how in (" of the first model", ", trained again"))
    assert renewed["error"] < old["error"]  # what was learnt of one model is not true of another
    assert (old["training_forwards"], renewed["training_forwards"] > 1000) == (0, True)
    assert "| trained anew | gralis, 128 forwards |" in (tmp_path / "amortised.md").read_text()
