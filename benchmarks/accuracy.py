"""Mean squared error of Algorithm 1 divided by that of the default plan, at equal total cost and on real networks.

python benchmarks/accuracy.py [--quick] [--workers 2] [--n-nodes 2] [--out benchmarks/results/accuracy.json]
python benchmarks/accuracy.py --real [--cells NAME ...] [--n-nodes 2] [--out benchmarks/results/accuracy_real.json]

The truth of the small models comes from enumeration. In the cost, a forward counts as a third of a gradient.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from math import floor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from report import geometric_mean, options, table, verdict, write
from threadpoolctl import threadpool_limits
from zoo import EXACT, Case, exact_case

import gralis
from gralis import Explanation
from gralis.kernels import Kernel

KERNELS = {"uniform": gralis.Uniform(), "0.75": gralis.Gaussian(0.75), "0.3": gralis.Gaussian(0.3)}
N_NODES = 10  # Algorithm 1's midpoints
FORWARD = 1 / 3  # of the cost of a gradient
TARGETS = {"geometric mean": 25.0, "least": 6.0}
MOONSHOT = {"geometric mean": 45.0, "least": 10.0}

Array = NDArray[np.float64]


def run(
    models: Sequence[str] | None = None,
    permutations: Sequence[int] = (10, 30),
    n_seeds: int = 30,
    workers: int = 1,
    n_nodes: int | None = None,
) -> dict[str, Any]:
    """Every model x kernel x number of permutations. Our plan uses n_nodes on each ray; None means its default."""
    work = [(name, m, n_seeds, n_nodes) for name in models or EXACT for m in permutations]
    if workers == 1:
        parts = [cells_of(*one) for one in work]
    else:
        with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
            parts = list(pool.map(cells_of, *zip(*work, strict=True)))
    cells = [cell for part in parts for cell in part]
    gains = [cell["gain"] for cell in cells]
    return {
        "n_seeds": n_seeds,
        "cells": cells,
        "geometric_mean": geometric_mean(gains),
        "least": min(gains),
        "mean_calibration": float(np.mean([cell["calibration"] for cell in cells])),
        "targets": TARGETS,
        "moonshot": MOONSHOT,
    }


def cells_of(name: str, n_permutations: int, n_seeds: int, n_nodes: int | None) -> list[dict[str, Any]]:
    """All kernels of one model and budget; the truth comes from one exhaustive ledger."""
    with threadpool_limits(1):  # everything is small here, so more threads only wait for each other
        case = exact_case(name)
        exhaustive = truth(case)
        runs = [algorithm_1(case, n_permutations, seed) for seed in range(n_seeds)]  # the same for every kernel
        cost = float(n_permutations * case.x.numel() * N_NODES)
        cells = []
        for label, kernel in KERNELS.items():
            phi = exhaustive.with_kernel(kernel).values
            theirs = np.stack([other.with_kernel(kernel).values for other in runs]) - phi
            ours = [at_cost(case, kernel, cost, seed, n_nodes) for seed in range(n_seeds)]
            comparison = compare(theirs, ours, phi, cost)
            cells.append({"model": name, "kernel": label, "permutations": n_permutations, **comparison})
            print(f"{name}, {label}, m = {n_permutations}: gain {comparison['gain']:.3g}", file=sys.stderr, flush=True)
        return cells


def compare(theirs: Array, ours: Sequence[Explanation], phi: Array, cost: float) -> dict[str, Any]:
    """Errors over seeds and features. The calibration is the actual error divided by the stated error."""
    errors = np.stack([explanation.values for explanation in ours]) - phi
    stated = np.stack([explanation.stderr for explanation in ours])
    methods = Counter(explanation.method.removeprefix("adjusted rays (")[:-1] for explanation in ours)
    return {
        "cost": round(cost),
        "our_cost": round(max(map(total_cost, ours))),
        "mse_algorithm_1": float((theirs**2).mean()),
        "mse": float((errors**2).mean()),
        "gain": float((theirs**2).mean() / (errors**2).mean()),
        "calibration": float(np.sqrt((errors**2).mean() / (stated**2).mean())),
        "bias": float(np.sqrt((errors.mean(0) ** 2).mean() / (errors**2).mean() * len(ours))),  # about 1: no bias
        "methods": dict(methods.most_common()),
    }


def truth(case: Case) -> Explanation:
    """All 2^n - 1 coalitions; Gauss-Legendre where the model is smooth, many midpoints where it has kinks."""
    rule, n_nodes = ("gauss-legendre", 48) if case.smooth else ("midpoint", 400)
    return gralis.explain(
        case.model,
        case.x,
        baseline=case.baseline,
        plan="exhaustive",
        quadrature=rule,
        n_nodes=n_nodes,
        budget=None,
        coalition_values=False,
        batch_size=8192,
    )


def algorithm_1(case: Case, n_permutations: int, seed: int) -> Explanation:
    return gralis.explain(
        case.model,
        case.x,
        baseline=case.baseline,
        plan=gralis.plans.permutation(n_permutations=n_permutations, antithetic=True),
        n_nodes=N_NODES,
        coalition_values=False,
        budget=None,
        seed=seed,
        batch_size=1024,
    )


def at_cost(case: Case, kernel: Kernel, cost: float, seed: int, n_nodes: int | None) -> Explanation:
    """The default plan within this cost, which includes a forward for each ray and for each single feature."""
    budget = floor((cost - FORWARD * (case.x.numel() + 2)) / (1 + FORWARD / (n_nodes or 1)))
    explanation = gralis.explain(
        case.model,
        case.x,
        baseline=case.baseline,
        kernel=kernel,
        plan="shared",
        budget=budget,
        n_nodes=n_nodes,
        seed=1000 + seed,
        batch_size=1024,
    )
    assert total_cost(explanation) <= cost, f"a cost of {total_cost(explanation)} instead of {cost}"
    return explanation


def total_cost(explanation: Explanation) -> float:
    return explanation.cost.n_gradients + FORWARD * explanation.cost.n_forwards


def show(result: dict[str, Any]) -> str:
    rows = [
        {
            "model": cell["model"],
            "kernel": cell["kernel"],
            "m": cell["permutations"],
            "cost": cell["cost"],
            "ours": cell["our_cost"],
            "MSE Alg. 1": cell["mse_algorithm_1"],
            "MSE ours": cell["mse"],
            "gain": cell["gain"],
            "calibration": cell["calibration"],
            "bias": cell["bias"],
            "surrogate": ", ".join(f"{method} {count}" for method, count in cell["methods"].items()),
        }
        for cell in result["cells"]
    ]
    gains = {"geometric mean": result["geometric_mean"], "least": result["least"]}
    summary: list[dict[str, object]] = [
        {
            "gain": name,
            "": value,
            "target": verdict(value, TARGETS[name], at_most=False),
            "moonshot": verdict(value, MOONSHOT[name], at_most=False),
        }
        for name, value in gains.items()
    ]
    summary.append({"gain": "mean calibration", "": result["mean_calibration"], "target": "about 1", "moonshot": ""})
    return table(f"accuracy at equal cost, {result['n_seeds']} seeds", rows) + "\n" + table("in all", summary)


def main() -> None:
    parser = options(__doc__.splitlines()[0])
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count(), help="number of processes; it does not change the numbers"
    )
    parser.add_argument("--models", nargs="+", choices=EXACT, help="run only these models")
    parser.add_argument("--n-nodes", type=int, help="number of nodes on each ray of our plan")
    parser.add_argument("--real", action="store_true", help="use real networks (takes hours; finished parts are kept)")
    parser.add_argument("--cells", nargs="+", help="with --real: run only these cells")
    parser.add_argument(
        "--permutations", type=int, default=30, help="with --real: the number of permutations of Algorithm 1"
    )
    arguments = parser.parse_args()
    if arguments.real:
        from real_networks import run_cells

        run_cells(arguments.out, arguments.cells, 2 if arguments.quick else arguments.permutations, arguments.n_nodes)
        return
    n_seeds = 5 if arguments.quick else 30
    result = run(arguments.models, n_seeds=n_seeds, workers=arguments.workers, n_nodes=arguments.n_nodes)
    print(show(result))
    write(arguments.out, "accuracy", result)


if __name__ == "__main__":
    main()
