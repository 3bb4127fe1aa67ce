"""Wall time of the deletion AUC of 50 images, batched by `gralis.faithfulness` against one point at a time.

python benchmarks/deletion.py [--quick] [--out benchmarks/results/deletion.json]

The other side is the plain loop: one image with the next region replaced, one forward without a graph, a list of
numbers. Both remove the same regions in the same order and alternate in one process; the curves must agree.
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

TARGET = 5.0
SIDE = 32
CLASSES = 10


def network() -> nn.Sequential:
    """A small convnet, random but always the same."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(
            *(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(8, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1)),
            *(nn.Flatten(), nn.Linear(32, CLASSES)),
        )
    return net.eval().requires_grad_(False)


def run(n_images: int = 50, repetitions: int = 5) -> dict[str, Any]:
    """Both sides over all images; the ratio is that of the medians."""
    net, rng = network(), np.random.default_rng(0)
    images = torch.from_numpy(rng.random((n_images, 3, SIDE, SIDE), dtype=np.float32))
    regions = gralis.features.grid(images.shape[1:], 4)  # 64 regions, 65 points on every curve
    scores = rng.standard_normal((n_images, regions.n_features))
    seconds: dict[str, list[float]] = {"batched": [], "one_by_one": []}
    for _ in range(repetitions + 1):  # the first one warms up
        began = time.perf_counter()
        batched = [
            gralis.faithfulness.deletion(net, image, phi, target=0, features=regions, steps=regions.n_features)
            for image, phi in zip(images, scores, strict=True)
        ]
        middle = time.perf_counter()
        plain = [one_by_one(net, image, phi, regions) for image, phi in zip(images, scores, strict=True)]
        seconds["batched"].append(middle - began)
        seconds["one_by_one"].append(time.perf_counter() - middle)
    curves = np.stack([score.curve.values for score in batched if score.curve is not None])
    return {
        "n_images": n_images,
        "n_points": int(curves.shape[1]),
        "repetitions": repetitions,
        "target": TARGET,
        "seconds": {side: times[1:] for side, times in seconds.items()},
        "ratio": median(seconds["one_by_one"][1:]) / median(seconds["batched"][1:]),
        "largest_difference": float(np.abs(curves - np.array(plain)).max()),
        "mean_auc": gralis.faithfulness.over(batched).mean,
    }


def one_by_one(net: nn.Module, image: Tensor, phi: np.ndarray, regions: gralis.Features) -> list[float]:
    """F as regions are set to zero, the largest phi first, a forward each."""
    labels, point = torch.from_numpy(regions.labels[0].copy()), image.clone()
    with torch.no_grad():
        values = [net(point[None])[0, 0].item()]
        for region in np.argsort(-phi):
            point[labels == region] = 0.0
            values.append(net(point[None])[0, 0].item())
    return values


def show(result: dict[str, Any]) -> str:
    row = {
        "images": result["n_images"],
        "points each": result["n_points"],
        "one by one s": median(result["seconds"]["one_by_one"]),
        "batched s": median(result["seconds"]["batched"]),
        "ratio": result["ratio"],
        "target": verdict(result["ratio"], TARGET, at_most=False),
        "largest difference": result["largest_difference"],
    }
    return table(f"deletion AUC, medians of {result['repetitions']} alternating runs", [row])


def main() -> None:
    arguments = options(__doc__.splitlines()[0]).parse_args()
    result = run(5, 1) if arguments.quick else run()
    print(show(result))
    write(arguments.out, "deletion", result)


if __name__ == "__main__":
    main()
