"""A model that looks at one region only, pictures for it, and a source that needs no files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from gralis.bench import Item
from gralis.features import grid

SIDE, PATCH = 16, 4
NET = f"""
import torch
from torch import nn

class Planted(nn.Module):
    \"\"\"Class 1 has as its logit the mean of one patch, scaled; class 0 has minus that.\"\"\"

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(3.0))
        self.body = nn.Conv2d(3, 2, 1)
        with torch.no_grad():
            self.body.weight.fill_(1 / 3)
            self.body.bias.zero_()

    def forward(self, x):
        inside = self.body(x)[:, 0, {PATCH}:{2 * PATCH}, {2 * PATCH}:{3 * PATCH}].mean((1, 2))
        score = self.scale * (inside + 0.3 * inside**2)
        return torch.stack([-score, score], 1)

def build():
    return Planted()
"""
REGION = (SIDE // PATCH) * 1 + 2  # of the grid: second row, third column


def network() -> nn.Module:
    space: dict[str, Any] = {}
    exec(NET, space)
    made: nn.Module = space["build"]()
    return made.eval()


@dataclass(frozen=True)
class Generated:
    """Random pictures, brighter inside the planted region, over a grid of patches."""

    n: int = 6

    def names(self) -> list[str]:
        return [f"image {number}" for number in range(self.n)]

    def settings(self) -> Mapping[str, Any]:
        return {"patch": PATCH}

    def digest(self, index: int) -> str:
        return str(index)

    def load(self, index: int) -> Item:
        rng = np.random.default_rng([7, index])
        x = torch.tensor(rng.uniform(0.0, 0.3, (3, SIDE, SIDE)), dtype=torch.float32)
        x[:, PATCH : 2 * PATCH, 2 * PATCH : 3 * PATCH] += 0.8
        return Item(
            self.names()[index], x, grid(x.shape, PATCH), target=1, about={"label": "one", "patient": str(index // 2)}
        )


def furnish(folder: Path, n: int = 3) -> None:
    """Pictures, labels.csv and net.py in a folder."""
    from PIL import Image

    (folder / "photos").mkdir()
    lines = ["file,label,patient"]
    for number in range(n):
        rng = np.random.default_rng([3, number])
        pixels = np.kron(rng.integers(0, 255, (4, 4, 3)), np.ones((8, 8, 1))).astype(np.uint8)
        Image.fromarray(pixels).save(folder / "photos" / f"p{number}.png")
        lines.append(f"p{number}.png,one,{number // 2}")
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")
    (folder / "net.py").write_text(NET)
