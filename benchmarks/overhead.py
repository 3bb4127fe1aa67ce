"""Wall time of `explain` divided by that of the bare forward and backward of as many points, on real networks.

python benchmarks/overhead.py [--quick] [--networks NAME ...] [--out benchmarks/results/overhead.json]

The bare side knows everything beforehand: its parameters are frozen, it computes input gradients only, and it uses one
constant batch at the best batch size and memory format of a search. `explain` has to choose both during the run. Both
alternate in one process.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from report import options, table, timed, verdict, write
from torch import Tensor, nn
from zoo import GREY, densenet, efficientnet, photograph, superpixels

import gralis
from gralis import Explanation

BATCH_SIZES = (4, 8, 16, 32)
FORMATS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
TARGET = 1.08

NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "EfficientNet-Lite0": efficientnet,
    "DenseNet-121": lambda: densenet()[0],
}

Setting = tuple[int, str]  # batch size, memory format


def run(networks: list[str] | None = None, budget: int = 512, repetitions: int = 5) -> dict[str, Any]:
    """All networks, with the ratio of the medians."""
    photo = photograph("chelsea")
    return {
        "budget": budget,
        "repetitions": repetitions,
        "target": TARGET,
        "networks": {name: measure(NETWORKS[name](), photo, budget, repetitions) for name in networks or NETWORKS},
    }


def measure(net: nn.Module, photo: Tensor, budget: int, repetitions: int) -> dict[str, Any]:
    """Search for the best bare setting, then let both sides alternate."""
    target = int(net(photo[None])[0].argmax())
    search = {setting: float("inf") for setting in settings()}  # the smallest number of seconds per point
    for _ in range(3):
        for setting, least in search.items():
            search[setting] = min(least, timed(bare, net, photo, target, 64, setting)[0] / 64)
    best = min(search, key=search.__getitem__)
    explanation, ours, theirs = explain(net, photo, target, 128), [], []  # this run warms up
    for _ in range(repetitions):
        *seconds, explanation = timed(explain, net, photo, target, budget)
        ours.append(seconds)
        theirs.append(timed(bare, net, photo, target, explanation.cost.n_gradients, best)[:2])
    wall, bare_wall = [w for w, _ in ours], [w for w, _ in theirs]
    return {
        "n_points": explanation.cost.n_gradients,
        "bare_seconds": bare_wall,
        "seconds": wall,
        "ratio": median(wall) / median(bare_wall),
        "ratio_of_minima": min(wall) / min(bare_wall),
        "ratio_of_processor_time": median(c for _, c in ours) / median(c for _, c in theirs),
        "bare_setting": best,
        "our_setting": (explanation.cost.batch_size, explanation.cost.layout),
        "n_batches": explanation.cost.n_batches,
        "search_ms_per_point": {f"{size} {layout}": 1e3 * seconds for (size, layout), seconds in search.items()},
    }


def settings() -> list[Setting]:
    return [(size, layout) for size in BATCH_SIZES for layout in FORMATS]


def bare(net: nn.Module, photo: Tensor, target: int, n_points: int, setting: Setting) -> None:
    """Exactly n_points forwards and backwards at one setting; the last batch may be smaller."""
    size, layout = setting
    batch = photo.expand(size, *photo.shape).contiguous(memory_format=FORMATS[layout])
    for start in range(0, n_points, size):
        points = batch[: n_points - start].detach().requires_grad_()
        torch.autograd.grad(net(points)[:, target].sum(), points)


def explain(net: nn.Module, photo: Tensor, target: int, budget: int) -> Explanation:
    return gralis.explain(
        net,
        photo,
        target=target,
        baseline=GREY,
        features=superpixels(photo),
        budget=budget,
        coalition_values=False,
        progress=False,
    )


def show(result: dict[str, Any]) -> str:
    rows = [
        {
            "network": name,
            "points": one["n_points"],
            "bare s": median(one["bare_seconds"]),
            "explain s": median(one["seconds"]),
            "ratio": one["ratio"],
            "target": verdict(one["ratio"], TARGET, at_most=True),
            "of minima": one["ratio_of_minima"],
            "of processor": one["ratio_of_processor_time"],
            "bare batch": "{} {}".format(*one["bare_setting"]),
            "our batch": "{} {}".format(*one["our_setting"]),
            "batches": one["n_batches"],
        }
        for name, one in result["networks"].items()
    ]
    return table(f"overhead, medians of {result['repetitions']} alternating runs", rows)


def main() -> None:
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", choices=list(NETWORKS), help="run only these networks")
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    budget, repetitions = (128, 1) if arguments.quick else (512, arguments.repetitions)
    result = run(arguments.networks, budget, repetitions)
    print(show(result))
    write(arguments.out, "overhead", result)


if __name__ == "__main__":
    main()
