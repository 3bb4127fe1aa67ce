"""Wall time of ten targets in one call divided by that of one target, at the same number of points.

python benchmarks/targets.py [--quick] [--out benchmarks/results/targets.json]

Ten targets share every forward and need one backward each. Ten calls with one target would cost ten times as much. Both
sides alternate in one process and use the same number of points. The ten targets have ten times the budget, because the
budget counts backwards.
"""

from __future__ import annotations

from statistics import median
from typing import Any

import torch
from report import options, table, timed, verdict, write
from torch import Tensor, nn
from zoo import GREY, efficientnet, photograph, superpixels

import gralis

TARGET = 6.5
N_TARGETS = 10


def networks(quick: bool) -> dict[str, tuple[nn.Module, Tensor, dict[str, Any]]]:
    """A small dense network, a small convnet, and (unless quick) EfficientNet-Lite0, each with an input."""
    torch.manual_seed(0)
    dense = nn.Sequential(nn.Linear(20, 512), nn.GELU(), nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 100)).eval()
    conv = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 64, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(64, 64, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, 100),
    ).eval()
    image = torch.rand(3, 64, 64)
    cases: dict[str, tuple[nn.Module, Tensor, dict[str, Any]]] = {
        "dense": (dense, torch.randn(20), {}),
        "convnet": (conv, image, {"features": gralis.features.grid(image.shape, 16)}),
    }
    if not quick:
        photo = photograph("chelsea")
        cases["EfficientNet-Lite0"] = (
            efficientnet(),
            photo,
            {"features": superpixels(photo), "baseline": GREY},
        )
    return cases


def run(quick: bool) -> dict[str, Any]:
    n_points, repetitions = (128, 1) if quick else (256, 3)
    rows = {}
    for name, (net, x, about) in networks(quick).items():
        chosen = [int(k) for k in net(x[None])[0].topk(N_TARGETS).indices]
        one, ten = [], []
        for repetition in range(repetitions + 1):
            for seconds, target, times in ((one, chosen[0], 1), (ten, chosen, N_TARGETS)):
                wall, _, explanation = timed(explain, net, x, target, n_points * times, about)
                if repetition:  # the first pair warms up
                    seconds.append(wall)
        rows[name] = {
            "one": one,
            "ten": ten,
            "ratio": median(ten) / median(one),
            "gradients": explanation.cost.n_gradients,
        }
    return {"n_targets": N_TARGETS, "target": TARGET, "networks": rows}


def explain(net: nn.Module, x: Tensor, target: Any, budget: int, about: dict[str, Any]) -> Any:
    return gralis.explain(net, x, target=target, budget=budget, coalition_values=False, progress=False, **about)


def show(result: dict[str, Any]) -> str:
    rows = [
        {
            "network": name,
            "one target s": median(row["one"]),
            "ten targets s": median(row["ten"]),
            "ratio": row["ratio"],
            "target": verdict(row["ratio"], TARGET, at_most=True),
        }
        for name, row in result["networks"].items()
    ]
    return table("ten targets / one target, at the same points", rows)


def main() -> None:
    arguments = options(__doc__.splitlines()[0]).parse_args()
    result = run(arguments.quick)
    print(show(result))
    write(arguments.out, "targets", result)


if __name__ == "__main__":
    main()
