"""Data sets: throughput of Ray workers and of the local engine, and memory over the number of inputs.

python benchmarks/many.py [--quick] [--out benchmarks/results/many.json]

Throughput is measured from the first block to the last, so that it does not include the start of the workers. The bare
model computes as many gradients and forwards, in batches of the same size, and nothing else. Memory is measured in a
separate process. The leak is the growth of its resident memory from a tenth of the run to the end.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch
from report import options, table, verdict, write
from torch import Tensor, nn

import gralis

WORKERS, BARE, FLAT = 1.7, 0.9, 1.1
BATCH = 64


def convnet() -> nn.Module:
    """Four convolutions on 32 x 32 pixels, 24 million multiplications: 1/170 of a ResNet-50."""
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for before, after in ((3, 32), (32, 32), (32, 64), (64, 64)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.ReLU()]
        layers += [nn.MaxPool2d(2)] if len(layers) == 4 else []
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).eval()


def pictures(n: int) -> Tensor:
    return torch.randn(n, 3, 32, 32, generator=torch.Generator().manual_seed(1))


def rows(n: int) -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(2)
    return (torch.randn(4, generator=generator) for _ in range(n))


def rate(folder: Path, n: int, block: int, **engine: Any) -> tuple[float, gralis.many.Results]:
    """Inputs per second from the first block to the last."""
    seen: list[tuple[float, int]] = []
    results = gralis.explain_many(
        convnet(),
        pictures(n),
        out=folder,
        target=0,
        features=gralis.features.grid((3, 32, 32), 8),
        budget=256,
        batch_size=BATCH,
        block_size=block,
        progress=lambda done, total: seen.append((time.perf_counter(), done)),
        **engine,
    )
    (began, first), (ended, last) = seen[0], seen[-1]
    return (last - first) / (ended - began), results


def bare(results: gralis.many.Results, block: int) -> float:
    """Inputs per second of the model alone, with as many gradients and forwards as these results."""
    table = results.inputs_table()
    n_inputs = table.num_rows - block
    gradients, forwards = (sum(table[name].to_pylist()[block:]) for name in ("n_gradients", "n_forwards"))
    net, points = convnet(), pictures(BATCH)
    for parameter in net.parameters():
        parameter.requires_grad_(False)
    began = time.perf_counter()
    for start in range(0, gradients, BATCH):
        batch = points[: min(BATCH, gradients - start)].clone().requires_grad_()
        torch.autograd.grad(net(batch)[:, 0].sum(), batch)
    with torch.no_grad():
        for start in range(0, forwards, BATCH):
            net(points[: min(BATCH, forwards - start)])
    return n_inputs / (time.perf_counter() - began)


def throughput(quick: bool) -> dict[str, Any]:
    n, block, repetitions = (6, 3, 1) if quick else (48, 16, 2)
    engine, alone = [], []
    with tempfile.TemporaryDirectory() as folder:
        for repetition in range(repetitions):
            one, results = rate(Path(folder) / str(repetition), n, block)
            engine.append(one)
            alone.append(bare(results, block))
    return {"engine": engine, "bare": alone, "ratio": median(a / b for a, b in zip(engine, alone, strict=True))}


def workers(quick: bool) -> dict[str, Any] | None:
    try:
        import ray
    except ImportError:
        return None
    n, block, repetitions = (8, 1, 1) if quick else (48, 4, 2)
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    rates: dict[int, list[float]] = {1: [], 2: []}
    try:
        with tempfile.TemporaryDirectory() as folder:
            for repetition in range(repetitions):
                for count in rates:
                    where = Path(folder) / f"{count}-{repetition}"
                    rates[count].append(rate(where, n, block, engine="ray", workers=count)[0])
    finally:
        ray.shutdown()
    return {"one": rates[1], "two": rates[2], "ratio": median(rates[2]) / median(rates[1])}


def memory(quick: bool) -> dict[str, Any]:
    few, many, long = (64, 256, 512) if quick else (100, 5000, 10_000)
    peaks = {n: json.loads(_alone("peak", n)) for n in (few, many)}
    early, late = json.loads(_alone("leak", long))
    return {
        "inputs": [few, many],
        "peak_bytes": [peaks[few], peaks[many]],
        "ratio": peaks[many] / peaks[few],
        "leak_inputs": long,
        "leak_bytes": [early, late],
        "leak_ratio": late / early,
    }


def _alone(what: str, n: int) -> str:
    command = [sys.executable, __file__, "--in-this-process", what, str(n)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def in_this_process(what: str, n: int) -> Any:
    """Peak memory of a run on n rows, or the resident memory after a tenth of it and at its end."""
    import psutil

    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).eval()
    resident: list[tuple[int, int]] = []
    process = psutil.Process()
    with tempfile.TemporaryDirectory() as folder:
        gralis.explain_many(
            net,
            rows(n),
            out=folder,
            budget=60,
            progress=lambda done, total: resident.append((done, process.memory_info().rss)),
        )
    if what == "peak":
        return max(size for _, size in resident)
    return next(size for done, size in resident if done >= n / 10), resident[-1][1]


def run(quick: bool) -> dict[str, Any]:
    torch.set_num_threads(1)
    return {"throughput": throughput(quick), "workers": workers(quick), "memory": memory(quick)}


def show(result: dict[str, Any]) -> str:
    bare_, memory_ = result["throughput"], result["memory"]
    few, many = memory_["inputs"]
    ratios = [
        ("local engine / bare model", bare_["ratio"], BARE, False),
        (f"memory, {many} inputs / {few} inputs", memory_["ratio"], FLAT, True),
        (
            f"memory within {memory_['leak_inputs']} explanations, at the end / after a tenth",
            memory_["leak_ratio"],
            FLAT,
            True,
        ),
    ]
    if result["workers"]:
        ratios.insert(0, ("two Ray workers / one", result["workers"]["ratio"], WORKERS, False))
    return table(
        "explain_many",
        [
            {"what": what, "ratio": ratio, "target": verdict(ratio, target, at_most=at_most)}
            for what, ratio, target, at_most in ratios
        ],
    )


def main() -> None:
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--in-this-process", nargs=2, help="used by the benchmark itself")
    arguments = parser.parse_args()
    if arguments.in_this_process:
        what, n = arguments.in_this_process
        print(json.dumps(in_this_process(what, int(n))))
        return
    result = run(arguments.quick)
    print(show(result))
    write(arguments.out, "many", result)


if __name__ == "__main__":
    main()
