"""Folders of results for the tests of the gallery: small true runs, and a large one with random tables."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gralis
from report_cases import HOSTILE

_BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "gallery.py"


def _benchmark() -> Any:
    """The benchmark by its file: with its folder on the path, its neighbours would hide tests of the same name."""
    spec = importlib.util.spec_from_file_location("benchmark_gallery", _BENCHMARK)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    path, known = list(sys.path), "report" in sys.modules
    sys.path.insert(0, str(_BENCHMARK.parent))  # for its own import of benchmarks/report.py
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = path
        if not known:
            sys.modules.pop("report", None)
    return module


__all__ = ["CLASSES", "NAMES", "large_run", "network", "pictures_run", "small_run"]

NAMES = ("age", "dose", "weight", "pulse", "sodium", "lactate", "=1+1", HOSTILE)
CLASSES = ("healthy", "ill", "unclear")


def network() -> torch.nn.Module:
    generator = torch.Generator().manual_seed(5)
    net = torch.nn.Sequential(torch.nn.Linear(8, 10), torch.nn.Softplus(), torch.nn.Linear(10, 3))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return net.eval()


def small_run(folder: Path, n: int = 24, **options: Any) -> gralis.many.Results:
    """A run over a table with labels, of which some are wrong; the last input fails."""
    x = torch.randn(n, 8, generator=torch.Generator().manual_seed(6))
    x[n - 1, 0] = float("nan")
    labels = network()(x).argmax(1)
    labels[::4] = (labels[::4] + 1) % 3
    ids = [f"patient {i:02d}" for i in range(n - 2)] + [HOSTILE, "=cmd()"]
    data = {name: (x[i], int(labels[i])) for i, name in enumerate(ids)}
    chosen = {"target": "predicted", "budget": 300, "features": gralis.features.columns(list(NAMES)), **options}
    return gralis.explain_many(network(), data, out=folder, block_size=7, progress=False, **chosen)


def pictures_run(folder: Path, n: int = 4) -> gralis.many.Results:
    """A run over pictures, each with the same squares, and their explanations."""
    rng = np.random.default_rng(1)
    x = torch.tensor(rng.random((n, 3, 64, 64)), dtype=torch.float32)
    model = lambda z: torch.stack([z[:, :, :32].mean((1, 2, 3)), z[:, :, 32:].mean((1, 2, 3))], 1)  # noqa: E731
    squares = gralis.features.grid((3, 64, 64), 16)
    return gralis.explain_many(
        model, x, out=folder, target="predicted", features=squares, budget=200, ledgers=True, progress=False
    )


def large_run(folder: Path, n: int = 10_000) -> gralis.many.Results:
    """As many rows as asked for, with random numbers in the tables of a run and nothing behind them."""
    return _benchmark().large_run(folder, n, NAMES)
