"""The output of every benchmark: a table on the screen and, on request, a JSON file."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

import gralis


def options(description: str) -> argparse.ArgumentParser:
    """A parser with --quick and --out, to which each script adds more options."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="run a small version, to check that it works")
    parser.add_argument("--out", type=Path, help="also write the result as JSON to this file")
    return parser


def table(title: str, rows: Sequence[Mapping[str, object]]) -> str:
    """A table with the keys as header and one line per row; text is aligned left, numbers are aligned right.

    >>> print(table("speed", [{"net": "a", "ms": 1.5}, {"net": "b", "ms": 12.25}]))
    <BLANKLINE>
    speed
    net    ms
    a     1.5
    b    12.2
    """
    head = list(rows[0])
    lines = [head, *([_cell(row[key]) for key in head] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    sides = [str.ljust if isinstance(rows[0][key], str) else str.rjust for key in head]
    shown = ["  ".join(side(*cell) for side, *cell in zip(sides, line, widths, strict=True)) for line in lines]
    return "\n".join(["", title, *map(str.rstrip, shown)])


def verdict(value: float, target: float, *, at_most: bool) -> str:
    """The target and whether the value meets it, as in "<= 1.08 met"."""
    met = value <= target if at_most else value >= target
    return f"{'<=' if at_most else '>='} {target:g} {'met' if met else 'MISSED'}"


def timed(work: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[float, float, Any]:
    """Wall and processor seconds of one call, and its result."""
    wall, processor = time.perf_counter(), time.process_time()
    result = work(*arguments, **options)
    return time.perf_counter() - wall, time.process_time() - processor, result


def geometric_mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def machine() -> dict[str, object]:
    """Facts that affect the numbers. They do not identify the machine."""
    return {
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "torch_threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "gralis": gralis.__version__,
    }


def write(path: Path | None, name: str, result: dict[str, Any]) -> None:
    """Write {"benchmark", "machine", **result} as JSON if there is a path. The old file is replaced in one step."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"benchmark": name, "machine": machine(), **result}, indent=1)
    beside = path.with_suffix(".part")
    beside.write_text(text + "\n")
    beside.replace(path)


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
