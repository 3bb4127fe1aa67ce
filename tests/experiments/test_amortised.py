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


def cells_of(n: int, side: int, count: int):
    return [gralis.features.grid((3, side, side), side // n)] * count


def test_a_region_has_the_mean_of_the_map_over_it(explainer):
    labels = np.array([[0, 0, 1, 1], [0, 2, 2, 1], [2, 2, 2, 1], [2, 2, 2, 2]])
    halves = np.array([[0, 0, 1, 1]] * 4)
    features = [gralis.features.groups(np.stack([own] * 3)) for own in (labels, halves)]
    pieces = explainer.Pieces(torch.zeros(2, 3, 4, 4), features)
    fine, coarse = pieces.means((4, 4)), pieces.means((2, 2))
    drawn = torch.arange(16.0)
    assert (fine[0] @ drawn).tolist() == pytest.approx([drawn.numpy()[labels.ravel() == r].mean() for r in range(3)])
    assert (coarse[0] @ torch.tensor([1.0, 2.0, 3.0, 4.0])).tolist() == pytest.approx([1, 10 / 4, 27 / 9])
    assert pieces.present.tolist() == [[True] * 3, [True, True, False]]
    assert coarse[1].sum(1).tolist() == [1, 1, 0]


def test_for_one_image_the_loss_leads_to_its_shapley_values(explainer):
    x = torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0)) + 0.5
    pieces = explainer.Pieces(x, cells_of(2, 8, 1))

    def value(points):
        cells = points.mean(1).unfold(1, 4, 4).unfold(2, 4, 4).mean((3, 4)).flatten(1)
        return cells[:, 0] * cells[:, 1] + 2 * cells[:, 2] - cells[:, 1] * cells[:, 3] * cells[:, 0]

    said = explainer.ask(value, pieces, 20_000)
    trained = explainer.train(pieces, said, 1, epochs=600, rate=0.01)
    exact = gralis.explain(value, x[0], features=pieces.features[0], plan="exhaustive", budget=None).shapley()
    found = explainer.explain(trained, value, pieces, 0)
    assert found == pytest.approx(exact.values, abs=0.02)
    assert found.sum() == pytest.approx(float(value(x)), abs=1e-5)
    assert said.n_forwards == 20_002


def test_what_the_model_is_asked_are_the_coalitions_of_the_image(explainer):
    x = torch.rand(3, 3, 6, 6, generator=torch.Generator().manual_seed(1)) + 1
    pieces = explainer.Pieces(x, [*cells_of(2, 6, 2), *cells_of(3, 6, 1)])
    weights = torch.arange(1.0, 37).view(6, 6)
    said = explainer.ask(lambda points: (points[:, 0] * weights).sum((1, 2)) + 5, pieces, 10)
    for row in range(3):
        inside = said.masks[row][:, pieces.region(row)]
        assert said.gained[row].tolist() == pytest.approx((inside * x[row, 0] * weights).sum((1, 2)).tolist(), rel=1e-5)
    assert not said.masks[:2, :, 4:].any()
    assert said.masks[2, :, 4:].any()


def test_the_small_table(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(gralis.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(FOLDER / "run.py"), "--small", "--out", str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "amortised.json").read_text())
    by = {(line["method"], line["model"]): line for line in found["lines"]}
    for model in ("as trained", "fine-tuned", "trained from scratch"):
        error = by["gralis, 128 forwards", model]["error"]
        assert error < by["gralis, 32 forwards", model]["error"]
        assert error < min(line["error"] for line in found["lines"] if "explainer" in line["method"])
    old, renewed = (by[f"explainer{how}", "trained from scratch"] for how in (" of the first model", ", trained again"))
    assert renewed["error"] < old["error"]  # what was learnt of one model is not true of another
    assert (old["training_forwards"], renewed["training_forwards"] > 1000) == (0, True)
    assert "| trained from scratch | gralis, 128 forwards |" in (tmp_path / "amortised.md").read_text()
