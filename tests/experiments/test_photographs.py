"""The photographs: the script from a folder to its page and its text, with small networks in place of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

FOLDER = Path(__file__).parents[2] / "experiments" / "photographs"
MODULES = ("run", "equal_cost", "mobilenet", "text")


@pytest.fixture
def modules(monkeypatch):
    """The files of the experiment as its own script sees them; forgotten afterwards, their names are common."""
    monkeypatch.syspath_prepend(FOLDER)
    for name in MODULES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield {name: __import__(name) for name in MODULES}
    for name in MODULES:
        sys.modules.pop(name, None)


def small() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        parts = (nn.Conv2d(3, 4, 8, stride=8), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64, 5))
        return nn.Sequential(*parts).eval()


def test_from_a_folder_to_a_page_and_a_text_and_not_twice(modules, tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for number in range(2):
        coarse = rng.integers(0, 256, (6, 6, 3)).astype(np.uint8)
        Image.fromarray(coarse).resize((70, 66)).save(tmp_path / "photos" / f"{number}.png")
    (tmp_path / "photos" / "broken.png").write_bytes(b"not a picture")
    script, methods = modules["run"], modules["equal_cost"].METHODS
    monkeypatch.setattr(script, "NETWORKS", {"one": small, "two": small})
    given = f"--data {tmp_path / 'photos'} --out {tmp_path / 'out'} --docs {tmp_path / 'photographs.md'}"
    options = "--budget 80 --segments 8 --side 64 --repeats-on 1 --remark Busy."
    monkeypatch.setattr(sys, "argv", ["run.py", *given.split(), *options.split()])
    script.main()

    text = (tmp_path / "photographs.md").read_text()
    assert text == (tmp_path / "out" / "photographs.md").read_text()
    for method in methods:
        assert text.count(f"\n| {method} | ") == 6  # over everything, the cost, and four cells
    assert "\n2 photographs at 64 x 64 pixels, 2 networks (one, two)" in text  # what failed is told, not counted
    assert "\nbroken.png was left out: " in text
    assert "Busy." in text
    assert (tmp_path / "out" / "page.html").is_file()

    records = [json.loads(path.read_text()) for path in (tmp_path / "out" / "records").glob("*.json")]
    assert len(records) == 8
    for record in records:
        cost = {name: one["gradients"] + one["forwards"] / 3 for name, one in record["costs"].items()}
        assert record["costs"]["gralis"]["gradients"] > 0
        assert cost["integrated_gradients"] == pytest.approx(cost["gralis"], abs=0.5)  # as many gradients
        assert cost["kernel_shap"] <= cost["gralis"] + 0.5
        assert max(cost[name] for name in ("singles", "gradcam", "occlusion", "random")) < cost["gralis"]
        stated = {name for name, one in record["uncertainty"].items() if one["stated"] is not None}
        assert "gralis" in stated
        assert not stated & {"integrated_gradients", "gradcam", "occlusion", "singles"}

    capsys.readouterr()
    script.main()  # everything is known
    assert " s\n" not in capsys.readouterr().out
    assert (tmp_path / "photographs.md").read_text() == text


def test_the_error_seen_is_the_standard_error_of_two_runs(modules):
    from gralis.estimators import Estimate
    from gralis.results import Attribution

    rng = np.random.default_rng(1)
    truth, names = np.full(4000, 5.0), tuple(map(str, range(4000)))
    runs = [
        Attribution(Estimate(truth + rng.normal(0, 1, 4000), np.zeros((2, 4000)), "test"), names, 0.0) for _ in range(2)
    ]
    assert modules["equal_cost"].spread(*runs) == pytest.approx(1 / np.sqrt(26), rel=0.05)


def test_mobilenet_has_the_shape_of_its_weights(modules):
    network = modules["mobilenet"].MobileNetV2()
    state = network.state_dict()
    assert sum(p.numel() for p in network.parameters()) == 3_504_872  # as in the table of torchvision
    assert state["features.1.conv.0.0.weight"].shape == (32, 1, 3, 3)
    assert state["features.18.0.weight"].shape == (1280, 320, 1, 1)
    assert "mean" not in state
    with torch.no_grad():
        assert network.eval()(torch.zeros(1, 3, 64, 64)).shape == (1, 1000)
