"""Small models and explanations for the report's tests; quick, and with every kind of plan."""

from __future__ import annotations

import numpy as np
import torch

import gralis
from gralis import Explanation

HOSTILE = "<img src=x onerror=alert(1)>"


def network(n_features: int, seed: int = 0):
    """A smooth function of n features with interactions."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randn(n_features, 12, generator=generator, dtype=torch.float64) / n_features**0.5
    last = torch.randn(12, generator=generator, dtype=torch.float64)
    return lambda z: torch.tanh(z @ weights) @ last


def row(n_features: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(n_features, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def exhaustive() -> Explanation:
    names = ["age", "dose", HOSTILE, "weight", "a,b", "=1+1"]
    return gralis.explain(network(6), row(6), features=gralis.features.columns(names))


def bent(z: torch.Tensor) -> torch.Tensor:
    """A function with kinks on most rays."""
    return 3 * torch.relu(z.sum(1) - 1) + z[:, 0] * z[:, 1] + torch.relu(z[:, 1] - 0.4 * z[:, 2] - 0.3)


def rounded() -> Explanation:
    """An explanation with doubts: no gradient sees what the second feature does."""
    x = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
    return gralis.explain(lambda z: z[:, 0] ** 2 + 3 * torch.round(z[:, 1]) + z[:, 0] * z[:, 2], x)


def shared(**options: object) -> Explanation:
    return gralis.explain(network(10), row(10), **{"budget": 300, **options})


def picture_model(z: torch.Tensor) -> torch.Tensor:
    """Bright in the upper left and dark in the lower right, and what the two do together."""
    upper, lower = z[:, :, :32, :32].mean((1, 2, 3)), z[:, :, 32:, 32:].mean((1, 2, 3))
    middle = z[:, :, 16:48, 16:48].mean((1, 2, 3))
    return torch.tanh(2 * upper) - lower + upper * middle


def picture() -> Explanation:
    """A 64 pixel image, 16 square regions."""
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.random((3, 64, 64)), dtype=torch.float32)
    return gralis.explain(picture_model, x, features=gralis.features.grid((3, 64, 64), 16), budget=400)


def numbered() -> Explanation:
    """The picture with regions whose numbers are neither their ranks nor their places."""
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.random((3, 64, 64)), dtype=torch.float32)
    names = [f"region {(7 * i + 3) % 16 + 20}" for i in range(16)]
    patches = gralis.features.Features(gralis.features.grid((3, 64, 64), 16).labels, names, "slic")
    return gralis.explain(picture_model, x, features=patches, budget=400)


def opposed_model(z: torch.Tensor) -> torch.Tensor:
    """The first and the last feature help alone and hurt in company."""
    together = z[:, 0] * (z[:, 1] + z[:, 2] + z[:, 3])
    return 4 * z[:, 0] + 5 * z[:, 1] + 5 * z[:, 2] + z[:, 3] - 3 * together


def opposed() -> Explanation:
    """phi and the Shapley value have opposite signs for dose and height, and no error above rounding."""
    names = ["dose", "age", "weight", "height"]
    return gralis.explain(opposed_model, torch.ones(4, dtype=torch.float64), features=gralis.features.columns(names))


def sentence() -> Explanation:
    """A text of ten words, one of them hostile; "not" and "bad" act together."""
    words = ["The", "soup", "was", "not", "bad", ",", "waiter", HOSTILE, "and", "cold"]
    weights = torch.tensor([0, 0.3, 0, -1.5, -1.0, 0, 0.1, -2.0, 0.1, -0.8], dtype=torch.float64)
    tokens = gralis.features.tokens(range(10), names=words)
    x = torch.ones(10, dtype=torch.float64)
    return gralis.explain(lambda z: z @ weights + 3 * z[:, 3] * z[:, 4], x, features=tokens, budget=200)


def series() -> Explanation:
    """Two signals of 120 steps in ten windows of a tenth of a second."""
    steps = torch.arange(120, dtype=torch.float64)
    x = torch.stack([torch.sin(steps / 9), torch.cos(steps / 20)])
    windows = gralis.features.windows(120, 12, channels=2, rate=120.0)
    return gralis.explain(lambda z: z[:, 0, 24:36].mean(1) - z[:, 1, 60:].mean(1) ** 2, x, features=windows, budget=300)


def volume() -> Explanation:
    """12 x 14 x 16 voxels in eight blocks; the first block raises the output, the last one lowers it."""
    x = torch.tensor(np.random.default_rng(0).random((1, 12, 14, 16)), dtype=torch.float64)
    blocks = gralis.features.grid((1, 12, 14, 16), (6, 7, 8))
    return gralis.explain(
        lambda z: 3 * z[:, 0, :6, :7, :8].mean((1, 2, 3)) - 2 * z[:, 0, 6:, 7:, 8:].mean((1, 2, 3)), x, features=blocks
    )


def table_row() -> Explanation:
    """A row against twenty rows of data."""
    rows = np.random.default_rng(0).normal(50, 10, (40, 4))
    names = gralis.features.columns(["age", "dose", "weight", HOSTILE])
    weights = torch.tensor([0.1, -0.2, 0.05, 0.3], dtype=torch.float64)
    background = gralis.baselines.sample(rows, 20)
    return gralis.explain(
        lambda z: torch.tanh(z @ weights / 10), torch.tensor(rows[0]), baseline=background, features=names, budget=600
    )
