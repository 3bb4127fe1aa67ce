"""How often simultaneous 95% intervals cover every feature of an enumerated truth, and how wide they are.

python benchmarks/coverage.py [--quick] [--workers 2] [--rules RULE ...] [--out benchmarks/results/coverage.json]

fixed      a fixed budget (400 or 1000 gradients, pooled)
stop       tolerance=...: the run stops at this precision, and its intervals account for the repeated checks
guaranteed the Bernstein certificate with a true bound, with plan="independent"
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from accuracy import KERNELS, truth
from numpy.typing import NDArray
from report import options, table, verdict, write
from scipy.stats import norm
from threadpoolctl import threadpool_limits
from zoo import EXACT, Case, Mlp, exact_case

import gralis
from gralis import Explanation

LEVEL = 0.95
BUDGETS = {400: 112, 1000: 40}  # gradients: runs per cell
CEILING = max(BUDGETS)
RUNS = {"stop": 36, "guaranteed": 60}
RULES = ("fixed", "stop", "guaranteed")
TARGETS = {"in all": 0.94, "least cell": 0.88, "width": 1.6, "guaranteed": 0.95}
STEEPEST = {"sigmoid": 0.25}  # sup |activation'|; 1 for the others

Array = NDArray[np.float64]


def run(
    models: Sequence[str] | None = None, share: float = 1.0, workers: int = 1, rules: Sequence[str] = RULES
) -> dict[str, Any]:
    """All rules for every model and kernel."""
    names = list(models or EXACT)
    if workers == 1:
        parts = [cells_of(name, share, rules) for name in names]
    else:
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            parts = list(pool.map(cells_of, names, [share] * len(names), [rules] * len(names)))
    cells = [cell for part in parts for cell in part]
    return {"level": LEVEL, "cells": cells, "summary": summary(cells), "targets": TARGETS}


def cells_of(name: str, share: float, rules: Sequence[str]) -> list[dict[str, Any]]:
    with threadpool_limits(1):
        case = exact_case(name)
        exhaustive = truth(case)
        cells = []
        for label, kernel in KERNELS.items():
            phi = exhaustive.with_kernel(kernel).values
            for rule in rules:
                if rule == "guaranteed" and not isinstance(case.model, Mlp):
                    continue  # there is no known bound for other models
                measured = measure(case, kernel, rule, share, phi)
                cells.append({"model": name, "kernel": label, "rule": rule, **measured})
                print(f"{name}, {label}, {rule}: {measured['coverage']:.3f}", file=sys.stderr, flush=True)
        return cells


def measure(case: Case, kernel: Any, rule: str, share: float, phi: Array) -> dict[str, Any]:
    """One cell: the coverage over seeds, and the width as a multiple of an oracle's width.

    The oracle multiplies the true error by a normal quantile.
    """
    settings: list[tuple[dict[str, Any], int]] = {
        "fixed": [({"budget": budget}, n) for budget, n in BUDGETS.items()],
        "stop": [({"budget": CEILING, "tolerance": tolerance_for(case, kernel)}, RUNS["stop"])],
        "guaranteed": [({"budget": CEILING, "plan": "independent"}, RUNS["guaranteed"])],
    }[rule]
    hits, widths, spent = [], [], []
    for settled, n_runs in settings:
        errors, halves = [], []
        for seed in range(max(2, round(share * n_runs))):
            common = {"baseline": case.baseline, "kernel": kernel, "batch_size": 1024}
            explanation = gralis.explain(case.model, case.x, seed=10_000 + seed, **common, **settled)
            errors.append(np.abs(explanation.values - phi))
            halves.append(half_widths(explanation, case, rule))
            spent.append(explanation.cost.n_gradients)
        error, half = np.stack(errors), np.stack(halves)
        oracle = norm.isf((1 - LEVEL) / 2 / len(phi)) * np.sqrt((error**2).mean(0))
        hits += (error <= half).all(1).tolist()
        widths += [float((half.mean(0) / oracle).mean())] * len(error)
    return {
        "n_runs": len(hits),
        "coverage": float(np.mean(hits)),
        "width": float(np.mean(widths)),
        "gradients": float(np.mean(spent)),
    }


def half_widths(explanation: Explanation, case: Case, rule: str) -> Array:
    if rule == "guaranteed":
        assert isinstance(case.model, Mlp)
        slope = case.model.slope_bound(STEEPEST.get(case.name, 1.0)) * (case.x - case.baseline).abs()
        certificate = explanation.certificate(1 - LEVEL, "bernstein", bound=slope.numpy())
        assert certificate.kind == "guaranteed"
        return certificate.half_widths
    return np.diff(explanation.interval(LEVEL), axis=1)[:, 0] / 2


def tolerance_for(case: Case, kernel: Any) -> float:
    """A tolerance that runs reach about half-way to the budget, so that they stop at different times."""
    half = []
    for seed in range(5):
        e = gralis.explain(
            case.model, case.x, baseline=case.baseline, kernel=kernel, budget=sum(BUDGETS) // 2, seed=seed
        )
        half.append(np.diff(e.interval(1 - (1 - LEVEL) / 6), axis=1).max() / 2 / abs(e.delta))
    return float(np.median(half))


def summary(cells: Sequence[dict[str, Any]]) -> dict[str, Any]:
    totals: dict[str, Any] = {}
    for rule in RULES:
        chosen = [c for c in cells if c["rule"] == rule]
        if chosen:
            n_runs = np.array([c["n_runs"] for c in chosen])
            totals[rule] = {
                "n_runs": int(n_runs.sum()),
                "coverage": float(np.average([c["coverage"] for c in chosen], weights=n_runs)),
                "least": min(c["coverage"] for c in chosen),
                "width": float(np.average([c["width"] for c in chosen], weights=n_runs)),
                "widest": max(c["width"] for c in chosen),
            }
    return totals


def show(result: dict[str, Any]) -> str:
    keys = ("model", "kernel", "rule", "n_runs", "coverage", "width", "gradients")
    rows = []
    for rule, totals in result["summary"].items():
        guaranteed = rule == "guaranteed"
        rows.append(
            {
                "rule": rule,
                "runs": totals["n_runs"],
                "coverage": totals["coverage"],
                "target": verdict(totals["coverage"], TARGETS["guaranteed" if guaranteed else "in all"], at_most=False),
                "least cell": totals["least"],
                "least target": "" if guaranteed else verdict(totals["least"], TARGETS["least cell"], at_most=False),
                "width / oracle": totals["width"],
                "width target": "" if rule != "fixed" else verdict(totals["width"], TARGETS["width"], at_most=True),
            }
        )
    cells = [{key: cell[key] for key in keys} for cell in result["cells"]]
    return table("coverage of simultaneous 95% intervals", cells) + "\n" + table("in all", rows)


def main() -> None:
    parser = options(__doc__.splitlines()[0])
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--models", nargs="+", choices=EXACT)
    parser.add_argument(
        "--rules", nargs="+", choices=RULES, default=RULES, help="run only these; the others in --out are kept"
    )
    arguments = parser.parse_args()
    result = run(arguments.models, 0.04 if arguments.quick else 1.0, arguments.workers, arguments.rules)
    if set(arguments.rules) < set(RULES) and arguments.out is not None and arguments.out.exists():
        kept = [c for c in json.loads(arguments.out.read_text())["cells"] if c["rule"] not in arguments.rules]
        result["cells"] = kept + result["cells"]
        result["summary"] = summary(result["cells"])
    print(show(result))
    write(arguments.out, "coverage", result)


if __name__ == "__main__":
    main()
