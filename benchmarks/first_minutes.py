"""Twenty models of other people, explained as the README does it: lines of code, seconds to the first table, warnings.

python benchmarks/first_minutes.py [--quick] [--only NAME ...] [--out benchmarks/results/first_minutes.json]

Each case has two parts: what a user already has (a model and an input, made here without any download) and the lines
that the user writes. Only these lines are counted and timed, imports of gralis excluded. All options are the defaults.
Weights are random unless the name says otherwise, so the numbers mean nothing; whether the call works is the question.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import dedent
from typing import Any

import torch
from first_models import CASES, QUICK, Case
from report import options, table, write

import gralis

MOST_LINES = 3  # the target: nobody writes more than this before the first table


@dataclass(frozen=True)
class Outcome:
    """What happened when a user wrote the lines of a case."""

    name: str
    library: str
    lines: int
    seconds: float
    warnings: tuple[str, ...]
    result: str
    notes: tuple[str, ...]

    @property
    def works(self) -> bool:
        return not self.result.startswith("FAILED")


def run(only: Sequence[str] | None = None) -> dict[str, Any]:
    """Every case, one after the other."""
    outcomes = [outcome(case) for case in CASES if only is None or case.name in only]
    return {
        "cases": [{**vars(one), "works": one.works} for one in outcomes],
        "works": sum(one.works for one in outcomes),
        "n_cases": len(outcomes),
        "most_lines": max(one.lines for one in outcomes),
        "slowest": max(one.seconds for one in outcomes),
    }


def outcome(case: Case) -> Outcome:
    """Make what the user has, run what the user writes, and tell how it went."""
    scope: dict[str, Any] = {"gralis": gralis, "torch": torch}
    written = dedent(case.lines).strip()
    n_lines = len(written.splitlines())
    printed = io.StringIO()
    seconds, told = 0.0, []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.manual_seed(0)
            exec(compile(dedent(case.given), case.name, "exec"), scope)
        with warnings.catch_warnings(record=True) as told, contextlib.redirect_stdout(printed):
            warnings.simplefilter("always")
            begun = time.perf_counter()
            exec(compile(written, case.name, "exec"), scope)
            seconds = time.perf_counter() - begun
        lines = printed.getvalue().splitlines()
        result = lines[0] if lines else "FAILED: nothing was printed"
        notes = tuple(line for line in lines if line.startswith(("note:", "doubt:", "opposite signs:")))
    except Exception as error:  # a failure is a result here
        result, notes = f"FAILED: {type(error).__name__}: {str(error).splitlines()[0]}", ()
    said = tuple(dict.fromkeys(f"{w.category.__name__}: {str(w.message).splitlines()[0]}" for w in told))
    return Outcome(case.name, case.library, n_lines, round(seconds, 2), said, result, notes)


def show(result: dict[str, Any]) -> str:
    """The table, then every note and warning under the name of its case."""
    rows = [
        {
            "model": case["name"],
            "lines": case["lines"],
            "seconds": case["seconds"],
            "warnings": len(case["warnings"]),
            "notes": len(case["notes"]),
            "result": case["result"][:90],
        }
        for case in result["cases"]
    ]
    said = [f"  {c['name']}: {sentence}" for c in result["cases"] for sentence in (*c["warnings"], *c["notes"])]
    ends = (
        f"{result['works']} of {result['n_cases']} work at the first try, with at most {result['most_lines']} lines "
        f"(target {MOST_LINES}); the slowest table took {result['slowest']:.1f} s."
    )
    return "\n".join([table("the first minutes", rows), "", ends, "notes and warnings:", *said])


def find_silero() -> None:
    """silero-vad, from where it is installed or into a temporary folder, without what it depends on."""
    if importlib.util.find_spec("silero_vad") is not None:
        return
    folder = tempfile.mkdtemp()
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, "silero-vad"]
    if subprocess.run(command, capture_output=True, check=False).returncode == 0:
        sys.path.append(folder)


if __name__ == "__main__":
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="run these cases only")
    arguments = parser.parse_args()
    chosen = arguments.only or (QUICK if arguments.quick else None)
    if chosen is None or any("silero" in name for name in chosen):
        find_silero()
    found = run(chosen)
    print(show(found))
    if arguments.out:
        write(arguments.out, "first_minutes", found)
