"""Time from 25 features to all pixel values at the same budget, and memory from budget 1 000 to 10 000.

python benchmarks/scale.py [--quick] [--limits] [--out benchmarks/results/scale.json]

`--limits` measures only whether `max_memory` is kept, and prints it.

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
from gralis.evaluation.cost import peak_bytes

SHAPE = (3, 224, 224)
TIME_TARGET, MEMORY_TARGET = 1.5, 1.2
MEMORY_BUDGETS = (1_000, 10_000)
LIMIT_TARGET = 1.2
LIMITS = (20, 50, 100)  # MiB


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


def limited_models() -> dict[str, tuple[nn.Module, Tensor]]:
    """A convolutional network, a wide one, and one with large temporary arrays, each with an input."""

    class Temporaries(nn.Module):
        def forward(self, z: Tensor) -> Tensor:
            grid = torch.linspace(0, 1, 100_000, device=z.device)
            return torch.sin(grid * z.sum(1, keepdim=True)).square().mean(1, keepdim=True) + z.sum(1, keepdim=True)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        convolutions = [nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1), nn.ReLU()]
        head = [nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(512, 1)]
        wide = nn.Sequential(nn.Linear(64, 100_000), nn.ReLU(), nn.Linear(100_000, 1))
        return {
            "convolutional": (frozen(nn.Sequential(*convolutions, *head)), torch.randn(3, 96, 96)),
            "wide": (frozen(wide), torch.randn(64)),
            "temporaries": (frozen(Temporaries()), torch.randn(64)),
        }


def growth_of(name: str, plan: str, limit: int) -> dict[str, Any]:
    """By how much the peak of this process grows within a limit of so many MiB, beyond that of a run point by point."""
    net, x = limited_models()[name]
    features = gralis.features.grid(x.shape, 24) if x.ndim == 3 else None
    options_of = {"target": 0, "features": features, "plan": plan, "budget": 400, "progress": False}
    gralis.explain(net, x, batch_size=1, **options_of)  # the fixed cost: one point, and what libraries set up once
    before = peak_bytes()
    explanation = gralis.explain(net, x, max_memory=limit * 2**20, **options_of)
    return {
        "model": name,
        "plan": plan,
        "limit": limit * 2**20,
        "growth": peak_bytes() - before,
        "one_point": explanation.cost.bytes_per_point,
        "batch_size": explanation.cost.batch_size,
    }


def memory_by_limit(limits: tuple[int, ...]) -> list[dict[str, Any]]:
    """How the growth beyond one point compares with the limit, in a new process for each."""
    runs = []
    for name in limited_models():
        for plan in ("shared", "values"):
            for limit in limits:
                script = [sys.executable, __file__, "--growth-of", name, plan, str(limit)]
                one = json.loads(subprocess.run(script, check=True, capture_output=True, text=True).stdout)
                one["ratio"] = one["growth"] / one["limit"]
                runs.append(one)
    return runs


def run(*, quick: bool = False) -> dict[str, Any]:
    memory_budgets = (1_000, 2_000) if quick else MEMORY_BUDGETS
    return {
        "limits": memory_by_limit(LIMITS[:1] if quick else LIMITS),
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
    shown = [table("time by features", times), table("peak memory by budget", memory), show_limits(result["limits"])]
    return "\n".join(shown)


def show_limits(limits: list[dict[str, Any]]) -> str:
    rows = [
        {
            "model": one["model"],
            "plan": one["plan"],
            "limit MiB": one["limit"] // 2**20,
            "growth MiB": round(one["growth"] / 2**20),
            "one point MiB": one["one_point"] / 2**20,
            "batch": one["batch_size"],
            "ratio": one["ratio"],
            "target": verdict(one["ratio"], LIMIT_TARGET, at_most=True),
        }
        for one in limits
    ]
    return table("growth of the peak within max_memory", rows)


def main() -> None:
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--peak-of", type=int, metavar="BUDGET", help="do one memory run and print its JSON")
    parser.add_argument("--growth-of", nargs=3, metavar=("MODEL", "PLAN", "MIB"), help="do one run with a limit")
    parser.add_argument("--limits", action="store_true", help="measure only whether max_memory is kept")
    arguments = parser.parse_args()
    if arguments.growth_of:
        name, plan, limit = arguments.growth_of
        print(json.dumps(growth_of(name, plan, int(limit))))
        return
    if arguments.limits:
        limits = memory_by_limit(LIMITS[:1] if arguments.quick else LIMITS)
        print(show_limits(limits))
        write(arguments.out, "limits", {"limits": limits, "target": LIMIT_TARGET})
        return
    if arguments.peak_of:
        print(json.dumps(peak_of(arguments.peak_of)))
        return
    result = run(quick=arguments.quick)
    print(show(result))
    write(arguments.out, "scale", result)


if __name__ == "__main__":
    main()
