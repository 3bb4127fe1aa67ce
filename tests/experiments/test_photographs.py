"""The photographs: the script from a folder to its page and its text, with a small network in place of its own."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

FOLDER = Path(__file__).parents[2] / "experiments" / "photographs"


def small() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        parts = (nn.Conv2d(3, 4, 8, stride=8), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64, 5))
        return nn.Sequential(*parts).eval()


def test_from_a_folder_to_a_page_and_a_text(tmp_path, monkeypatch):
    pytest.importorskip("efficientnet_lite_pytorch")
    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    for number in range(2):
        coarse = rng.integers(0, 256, (6, 6, 3)).astype(np.uint8)
        Image.fromarray(coarse).resize((240, 230)).save(tmp_path / "photos" / f"{number}.png")
    (tmp_path / "photos" / "broken.png").write_bytes(b"not a picture")
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.delitem(sys.modules, "run", raising=False)
    script = __import__("run")
    sys.modules.pop("run")
    monkeypatch.setattr(script, "load_network", small)
    given = f"--data {tmp_path / 'photos'} --out {tmp_path / 'out'} --docs {tmp_path / 'photographs.md'}"
    options = "--workers 1 --budget 120 --segments 8 --repeats-on 1 --remark Busy."
    monkeypatch.setattr(sys, "argv", ["run.py", *given.split(), *options.split()])
    script.main()

    text = (tmp_path / "photographs.md").read_text()
    assert text == (tmp_path / "out" / "photographs.md").read_text()
    for metric in script.METRICS:
        assert f"| {metric} (" in text
    for method in script.METHODS:
        assert f"\n| {method} | " in text
    assert "EfficientNet-Lite0 on 2 photographs" in text  # what failed is told, not counted
    assert "\nFailed: broken.png: " in text
    assert "%. Busy.\n" in text
    assert "Where GRALIS loses (Holm p < 0.05): " in text
    assert (tmp_path / "out" / "page.html").read_text().count("<section>") >= len(script.METRICS)
