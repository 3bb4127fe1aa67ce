"""Wall time of `explain` over the bare forward and backward of as many points, on real networks.

python benchmarks/overhead.py [--quick] [--networks NAME ...] [--out benchmarks/results/overhead.json]

The bare side knows everything beforehand: frozen parameters, input gradients only, one batch that never changes, at the
best batch size and memory format that a search finds. `explain` has to find its own. Both alternate in one process.
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
    """Every network; the ratio is that of the medians."""
    photo = photograph("chelsea")
    return {
        "budget": budget,
        "repetitions": repetitions,
        "target": TARGET,
        "networks": {name: measure(NETWORKS[name](), photo, budget, repetitions) for name in networks or NETWORKS},
    }


def measure(net: nn.Module, photo: Tensor, budget: int, repetitions: int) -> dict[str, Any]:
    """Search the best bare setting, then let both sides alternate."""
    target = int(net(photo[None])[0].argmax())
    search = {setting: float("inf") for setting in settings()}  # the least seconds per point
    for _ in range(3):
        for setting, least in search.items():
            search[setting] = min(least, timed(bare, net, photo, target, 64, setting)[0] / 64)
    best = min(search, key=search.__getitem__)
    found, ours, theirs = explain(net, photo, target, 128), [], []  # once to warm up
    for _ in range(repetitions):
        *seconds, found = timed(explain, net, photo, target, budget)
        ours.append(seconds)
        theirs.append(timed(bare, net, photo, target, found.cost.n_gradients, best)[:2])
    wall, bare_wall = [w for w, _ in ours], [w for w, _ in theirs]
    return {
        "n_points": found.cost.n_gradients,
        "bare_seconds": bare_wall,
        "seconds": wall,
        "ratio": median(wall) / median(bare_wall),
        "ratio_of_minima": min(wall) / min(bare_wall),
        "ratio_of_processor_time": median(c for _, c in ours) / median(c for _, c in theirs),
        "bare_setting": best,
        "our_setting": (found.cost.batch_size, found.cost.layout),
        "n_batches": found.cost.n_batches,
        "search_ms_per_point": {f"{size} {layout}": 1e3 * seconds for (size, layout), seconds in search.items()},
    }


def settings() -> list[Setting]:
    return [(size, layout) for size in BATCH_SIZES for layout in FORMATS]


def bare(net: nn.Module, photo: Tensor, target: int, n_points: int, setting: Setting) -> None:
    """n_points forwards and backwards at one setting; a last, smaller batch makes the number exact."""
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
    parser.add_argument("--networks", nargs="+", choices=list(NETWORKS), help="only these")
    parser.add_argument("--repetitions", type=int, default=5)
    arguments = parser.parse_args()
    budget, repetitions = (128, 1) if arguments.quick else (512, arguments.repetitions)
    result = run(arguments.networks, budget, repetitions)
    print(show(result))
    write(arguments.out, "overhead", result)


if __name__ == "__main__":
    main()
