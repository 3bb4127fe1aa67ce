"""What the tests of the command line work with: two small models, a table, and the command itself."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch

import gralis

NET = """
import torch
from torch import nn

def build():
    torch.manual_seed(0)
    body = nn.Conv2d(3, 4, 3, stride=4), nn.Tanh(), nn.AdaptiveAvgPool2d(2)
    return nn.Sequential(*body, nn.Flatten(), nn.Linear(16, 3))

def rows():
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).double()

def classifier():
    from text_models import network, tokenizer
    return network("bert"), tokenizer()

def other_classifier():
    model, tok = classifier()
    for parameter in model.parameters():
        parameter.data.mul_(1.05)
    return model, tok

def writer():
    from text_models import network, tokenizer
    return network("gpt2"), tokenizer(bos=False)
"""

#: Every row of table.csv: age, height, weight, price; the model of rows sees the first three.
TABLE = "age,height,weight,price\\n31,1.8,80,5\\n45,1.6,55,7\\n23,1.7,68,1\\n"


@functools.cache
def command() -> list[str]:
    """The installed command if it is that of this source tree, else the module."""
    found = shutil.which("gralis", path=str(Path(sys.executable).parent))
    own = Path(gralis.__file__).resolve().parents[1]
    if found is None or "PYTHONPATH" in os.environ:
        return [sys.executable, "-m", "gralis"]
    where = subprocess.run(
        [sys.executable, "-c", "import gralis; print(gralis.__file__)"], capture_output=True, text=True, cwd="/"
    )
    return [found] if Path(where.stdout.strip()).is_relative_to(own) else [sys.executable, "-m", "gralis"]


def network(name: str = "build") -> torch.nn.Module:
    space: dict[str, object] = {}
    with torch.random.fork_rng():
        exec(NET, space)
        made = space[name]()  # type: ignore[operator]
    return made.eval()
