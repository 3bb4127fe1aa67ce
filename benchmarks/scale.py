"""Time from 25 features to all pixel values at the same budget, and memory from budget 1 000 to 10 000.

python benchmarks/scale.py [--quick] [--out benchmarks/results/scale.json]

Time is measured on EfficientNet-Lite0. Memory is measured for the folded ledger of 150 528 features on a small network.
Every run uses a new process, because the peak of a process never decreases.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import torch
from report import options, table, verdict, write
from torch import Tensor, nn
from zoo import GREY, efficientnet, frozen, photograph, superpixels

import gralis
from gralis import Features

SHAPE = (3, 224, 224)
TIME_TARGET, MEMORY_TARGET = 1.5, 1.2
MEMORY_BUDGETS = (1_000, 10_000)


def feature_sets(photo: Tensor) -> dict[str, Features]:
    """The same image with finer and finer features."""
    return {
        "superpixels": superpixels(photo),
        "patches of 8 x 8": gralis.features.grid(SHAPE, 8),
        "pixels": gralis.features.grid(SHAPE, 1),
        "pixel values": gralis.features.coordinates(SHAPE),
    }


def time_by_features(budget: int, repetitions: int) -> list[dict[str, Any]]:
    """Seconds of one explanation for each set of features in turn. The first round warms up and is not counted."""
    net, photo = efficientnet(), photograph("chelsea")
    target = int(net(photo[None])[0].argmax())
    sets = feature_sets(photo)
    seconds: dict[str, list[float]] = {name: [] for name in sets}
    gradients = {}
    for _ in range(1 + repetitions):
        for name, features in sets.items():
            began = time.perf_counter()
            explanation = gralis.explain(
                net,
                photo,
                target=target,
                baseline=GREY,
                features=features,
                budget=budget,
                coalition_values=False,
                progress=False,
            )
            seconds[name].append(time.perf_counter() - began)
            gradients[name] = explanation.cost.n_gradients
    first = min(seconds["superpixels"][1:])  # other load on the machine only adds time
    return [
        {
            "features": name,
            "n_features": sets[name].n_features,
            "n_gradients": gradients[name],
            "seconds": took[1:],
            "ratio": min(took[1:]) / first,
        }
        for name, took in seconds.items()
    ]


def memory_by_budget(budgets: tuple[int, ...]) -> list[dict[str, Any]]:
    """Peak memory of a new process for each budget."""
    runs = []
    for budget in budgets:
        script = [sys.executable, __file__, "--peak-of", str(budget)]
        runs.append(json.loads(subprocess.run(script, check=True, capture_output=True, text=True).stdout))
    for one in runs:
        one["ratio"] = one["peak_bytes"] / runs[0]["peak_bytes"]
    return runs


def peak_of(budget: int) -> dict[str, Any]:
    """One explanation of all pixel values with a small network, and the peak memory of this process."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = [nn.Conv2d(3, 4, 8, stride=8), nn.Softplus(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(64, 1)]
    net = frozen(nn.Sequential(*layers))
    explanation = gralis.explain(net, photograph("chelsea"), target=0, budget=budget, batch_size=32, progress=False)
    return {
        "budget": budget,
        "n_features": explanation.n_features,
        "ledger": type(explanation.ledger).__name__,
        "seconds": explanation.cost.seconds,
        "peak_bytes": explanation.cost.peak_bytes,  # ru_maxrss
    }


def run(*, quick: bool = False) -> dict[str, Any]:
    memory_budgets = (1_000, 2_000) if quick else MEMORY_BUDGETS
    return {
        "memory": memory_by_budget(memory_budgets),
        "time": time_by_features(budget=192, repetitions=1 if quick else 3),
        "targets": {"time": TIME_TARGET, "memory": MEMORY_TARGET},
    }


def show(result: dict[str, Any]) -> str:
    times = [
        {
            "features": one["features"],
            "n": one["n_features"],
            "gradients": one["n_gradients"],
            "seconds": min(one["seconds"]),
            "ratio": one["ratio"],
            "target": verdict(one["ratio"], TIME_TARGET, at_most=True),
        }
        for one in result["time"]
    ]
    memory = [
        {
            "budget": one["budget"],
            "n": one["n_features"],
            "ledger": one["ledger"],
            "seconds": one["seconds"],
            "peak MiB": round(one["peak_bytes"] / 2**20),
            "ratio": one["ratio"],
            "target": verdict(one["ratio"], MEMORY_TARGET, at_most=True),
        }
        for one in result["memory"]
    ]
    return table("time by features", times) + "\n" + table("peak memory by budget", memory)


def main() -> None:
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--peak-of", type=int, metavar="BUDGET", help="do one memory run and print its JSON")
    arguments = parser.parse_args()
    if arguments.peak_of:
        print(json.dumps(peak_of(arguments.peak_of)))
        return
    result = run(quick=arguments.quick)
    print(show(result))
    write(arguments.out, "scale", result)


if __name__ == "__main__":
    main()
