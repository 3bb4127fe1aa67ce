"""Wall time of `explain` over the bare forward and backward of as many points, on real networks.

python benchmarks/overhead.py [--quick] [--networks NAME ...] [--out benchmarks/results/overhead.json]

The bare side knows everything beforehand: frozen parameters, input gradients only, one batch that never changes, at the
best batch size and memory format that a search finds. `explain` has to find its own. Both alternate in one process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
from report import options, table, verdict, write
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
    search = {setting: median(bare(net, photo, target, 64, setting) / 64 for _ in range(3)) for setting in settings()}
    best = min(search, key=search.__getitem__)
    bare_seconds, our_seconds = [], []
    for _ in range(repetitions):
        began = time.perf_counter()
        found = explain(net, photo, target, budget)
        our_seconds.append(time.perf_counter() - began)
        bare_seconds.append(bare(net, photo, target, found.cost.n_gradients, best))
    return {
        "n_points": found.cost.n_gradients,
        "bare_seconds": bare_seconds,
        "seconds": our_seconds,
        "ratio": median(our_seconds) / median(bare_seconds),
        "ratio_of_minima": min(our_seconds) / min(bare_seconds),
        "bare_setting": best,
        "our_setting": (found.cost.batch_size, found.cost.layout),
        "n_batches": found.cost.n_batches,
        "search_ms_per_point": {f"{size} {layout}": 1e3 * seconds for (size, layout), seconds in search.items()},
    }


def settings() -> list[Setting]:
    return [(size, layout) for size in BATCH_SIZES for layout in FORMATS]


def bare(net: nn.Module, photo: Tensor, target: int, n_points: int, setting: Setting) -> float:
    """Seconds for n_points forwards and backwards at one setting; a last, smaller batch makes the number exact."""
    size, layout = setting
    noise = 0.01 * torch.randn(size, *photo.shape, generator=torch.Generator().manual_seed(0))
    batch = (photo + noise).to(memory_format=FORMATS[layout])
    began = time.perf_counter()
    for start in range(0, n_points, size):
        points = batch[: n_points - start].detach().requires_grad_()
        torch.autograd.grad(net(points)[:, target].sum(), points)
    return time.perf_counter() - began


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
    result = run(arguments.networks, repetitions=1 if arguments.quick else arguments.repetitions)
    print(show(result))
    write(arguments.out, "overhead", result)


if __name__ == "__main__":
    main()
