"""Wall time of the deletion AUC of 50 images with one point at a time, divided by that of `gralis.faithfulness`.

python benchmarks/deletion.py [--quick] [--out benchmarks/results/deletion.json]

The other side is a plain loop, which replaces the next region of one image and runs one forward without a graph. Both
sides remove the same regions in the same order and alternate in one process. Their curves must agree.
"""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import numpy as np
import torch
from report import options, table, verdict, write
from torch import Tensor, nn

import gralis
from gralis.faithfulness import Score, deletion, over

TARGET = 5.0
STEPS = 224
SIDE = 32
CLASSES = 10


def network() -> nn.Sequential:
    """A small convnet with random weights from a fixed seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(
            *(nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.ReLU()),
            *(nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ReLU()),
            *(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()),
            *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, CLASSES)),
        )
    return net.eval().requires_grad_(False)


def run(n_images: int = 50, repetitions: int = 5) -> dict[str, Any]:
    """Regions (64 of them, all steps) and single pixels (224 steps)."""
    shape = (3, SIDE, SIDE)
    levels = {"64 regions": gralis.features.grid(shape, 4), "1024 pixels": gralis.features.grid(shape, 1)}
    return {
        "n_images": n_images,
        "repetitions": repetitions,
        "target": TARGET,
        "levels": {name: measure(features, n_images, repetitions) for name, features in levels.items()},
    }


def measure(features: gralis.Features, n_images: int, repetitions: int) -> dict[str, Any]:
    """Both sides over all images, and the ratio of the medians."""
    net, rng = network(), np.random.default_rng(0)
    images = torch.from_numpy(rng.random((n_images, 3, SIDE, SIDE), dtype=np.float32))
    pairs = list(zip(images, rng.standard_normal((n_images, features.n_features)), strict=True))
    batched: list[Score] = []
    wall: dict[str, list[float]] = {"batched": [], "one_by_one": []}
    processor: dict[str, list[float]] = {"batched": [], "one_by_one": []}
    for _ in range(repetitions + 1):  # the first run warms up
        clocks = [(time.perf_counter(), time.process_time())]
        batched = [deletion(net, x, phi, target=0, features=features, steps=STEPS) for x, phi in pairs]
        clocks.append((time.perf_counter(), time.process_time()))
        plain = [one_by_one(net, x, phi, features) for x, phi in pairs]
        clocks.append((time.perf_counter(), time.process_time()))
        for side, began, ended in zip(wall, clocks[:-1], clocks[1:], strict=True):
            wall[side].append(ended[0] - began[0])
            processor[side].append(ended[1] - began[1])
    curves = np.stack([score.curve.values for score in batched if score.curve is not None])
    return {
        "n_points": int(curves.shape[1]),
        "seconds": {side: times[1:] for side, times in wall.items()},
        "ratio": ratio(wall),
        "ratio_of_processor_time": ratio(processor),
        "largest_difference": float(np.abs(curves - np.array(plain)).max()),
        "mean_auc": over(batched).mean,
    }


def ratio(seconds: dict[str, list[float]]) -> float:
    """Time one by one divided by time in batches: medians without the first run."""
    return median(seconds["one_by_one"][1:]) / median(seconds["batched"][1:])


def one_by_one(net: nn.Module, image: Tensor, phi: np.ndarray, features: gralis.Features) -> list[float]:
    """F as features are set to zero, the largest phi first, with a forward for every step."""
    order, point, n = np.argsort(-phi), image.clone(), len(phi)
    labels = torch.from_numpy(features.labels[0].copy())
    rank = torch.empty(n, dtype=torch.int64)
    rank[torch.from_numpy(order.copy())] = torch.arange(n)
    place = rank[labels]
    counts = np.round(np.linspace(0, n, min(n, STEPS) + 1)).astype(int)
    with torch.no_grad():
        values = []
        for count in counts:
            point[place < count] = 0.0
            values.append(net(point[None])[0, 0].item())
    return values


def show(result: dict[str, Any]) -> str:
    rows = [
        {
            "features": name,
            "points each": one["n_points"],
            "one by one s": median(one["seconds"]["one_by_one"]),
            "batched s": median(one["seconds"]["batched"]),
            "ratio": one["ratio"],
            "target": verdict(one["ratio"], TARGET, at_most=False),
            "of processor": one["ratio_of_processor_time"],
            "largest difference": one["largest_difference"],
        }
        for name, one in result["levels"].items()
    ]
    return table(f"deletion AUC of {result['n_images']} images, medians of {result['repetitions']} runs", rows)


def main() -> None:
    arguments = options(__doc__.splitlines()[0]).parse_args()
    result = run(5, 1) if arguments.quick else run()
    print(show(result))
    write(arguments.out, "deletion", result)


if __name__ == "__main__":
    main()
