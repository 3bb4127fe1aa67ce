"""Shapley values from sampled coalitions: plan="values" compared with shapiq, shap and captum at equal model calls.

python benchmarks/shapley.py [--quick] [--games NAME ...] [--out benchmarks/results/shapley.json [--resume]]

The RMSE is over features and seeds; the truth is exact (`coalition_games.py`). Every cell is written to the file at
once, and --resume skips the cells in the file. The geometric means compare each other estimator with ours over the
cells where it can run.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
from coalition_games import GAMES, Game, game
from peers import PEERS, Counted, estimate, offered
from report import geometric_mean, options, table, verdict, write
from threadpoolctl import threadpool_limits

import gralis

BUDGETS = (500, 2000)
N_SEEDS = 5
TARGETS = {"geometric mean": 1.0, "worst cell": 1.2}  # RMSE of ours divided by that of another estimator

Cell = dict[str, Any]


def run(
    games: Sequence[str] | None = None,
    budgets: Sequence[int] = BUDGETS,
    n_seeds: int = N_SEEDS,
    workers: int = 1,
    path: Path | None = None,
    kept: Sequence[Cell] = (),
) -> dict[str, Any]:
    """Compute every game x budget that is not among the kept cells. The file is written after each cell."""
    done = {(cell["game"], cell["budget"]) for cell in kept}
    work = [(name, b, n_seeds) for name in games or GAMES for b in budgets if (name, b) not in done]
    cells = list(kept)
    for cell in _cells(work, workers):
        cells.append(cell)
        print(f"{cell['game']}, {cell['budget']}: {cell['ratio']:.3g} of {cell['best']}", file=sys.stderr, flush=True)
        write(path, "shapley", _result(cells, n_seeds))
    return _result(cells, n_seeds)


def _cells(work: Sequence[tuple[str, int, int]], workers: int) -> Iterator[Cell]:
    if workers == 1:
        yield from (cell_of(*one) for one in work)
        return
    with ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        for future in as_completed([pool.submit(cell_of, *one) for one in work]):
            yield future.result()


def cell_of(name: str, budget: int, n_seeds: int) -> Cell:
    """Our estimator and all others on one game."""
    with threadpool_limits(1):  # everything is small here, so more threads only wait for each other
        known = game(name)
        peers = {peer: peer_error(peer, known, budget, n_seeds) for peer in offered(known.n_features, budget)}
        mine = our_error(known, budget, n_seeds)
    best = min(peers, key=lambda peer: peers[peer]["rmse"])
    return {
        "game": name,
        "n_features": known.n_features,
        "budget": budget,
        "rms_shapley": _rms(known.shapley),
        "ours": mine,
        "peers": peers,
        "best": best,
        "ratio": mine["rmse"] / peers[best]["rmse"],
    }


def our_error(known: Game, budget: int, n_seeds: int) -> dict[str, float]:
    errors, calls = [], []
    for seed in range(n_seeds):
        counted = Counted(known.value)
        model = gralis.models.blackbox(counted)
        ones = np.ones(known.n_features)
        explanation = gralis.explain(model, ones, baseline=0.0, plan="values", budget=budget, seed=seed)
        assert counted.calls == counted.distinct <= budget, "a coalition was evaluated twice, or one too many"
        errors.append(explanation.values - known.shapley)
        calls.append(counted.calls)
    return {"rmse": _rms(errors), "calls": max(calls)}


def peer_error(peer: str, known: Game, budget: int, n_seeds: int) -> dict[str, float]:
    errors, calls, distinct = [], [], []
    for seed in range(n_seeds):
        counted = Counted(known.value)
        errors.append(estimate(peer, counted, known.n_features, budget, seed) - known.shapley)
        calls.append(counted.calls)
        distinct.append(counted.distinct)
    return {"rmse": _rms(errors), "calls": max(calls), "distinct": max(distinct)}


def _result(cells: Sequence[Cell], n_seeds: int) -> dict[str, Any]:
    order = {name: place for place, name in enumerate(GAMES)}
    cells = sorted(cells, key=lambda cell: (order[cell["game"]], cell["budget"]))
    against = {}
    for peer in PEERS:
        ratios = [cell["ours"]["rmse"] / cell["peers"][peer]["rmse"] for cell in cells if peer in cell["peers"]]
        if ratios:
            against[peer] = {"cells": len(ratios), "geometric_mean": geometric_mean(ratios), "worst": max(ratios)}
    return {
        "n_seeds": n_seeds,
        "cells": cells,
        "against": against,
        "against_best": geometric_mean([cell["ratio"] for cell in cells]),
        "worst": max(cell["ratio"] for cell in cells),
        "targets": TARGETS,
    }


def show(result: dict[str, Any]) -> str:
    rows = [
        {
            "game": cell["game"],
            "budget": cell["budget"],
            "best peer": cell["best"],
            "its RMSE": cell["peers"][cell["best"]]["rmse"],
            "ours": cell["ours"]["rmse"],
            "ratio": cell["ratio"],
            "calls": cell["ours"]["calls"],
        }
        for cell in result["cells"]
    ]
    against = [
        {
            "ours over": peer,
            "cells": ratios["cells"],
            "geometric mean": ratios["geometric_mean"],
            "worst": ratios["worst"],
            "target": verdict(ratios["geometric_mean"], TARGETS["geometric mean"], at_most=True),
        }
        for peer, ratios in result["against"].items()
    ]
    worst = verdict(result["worst"], TARGETS["worst cell"], at_most=True)
    best = {"ours over": "the best peer of each cell", "cells": len(rows), "geometric mean": result["against_best"]}
    against.append({**best, "worst": result["worst"], "target": f"worst {worst}"})
    title = f"Shapley values at equal model calls, RMSE, {result['n_seeds']} seeds"
    return table(title, rows) + "\n" + table("in all", against)


def _rms(numbers: Any) -> float:
    return float(np.sqrt(np.mean(np.square(numbers))))


def main() -> None:
    parser = options(__doc__.splitlines()[0])
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count(), help="number of processes; it does not change the numbers"
    )
    parser.add_argument(
        "--games", nargs="+", choices=GAMES, metavar="NAME", help=f"run only these of {', '.join(GAMES)}"
    )
    parser.add_argument("--resume", action="store_true", help="keep the cells in the file of --out")
    arguments = parser.parse_args()
    path = arguments.out
    kept = json.loads(path.read_text())["cells"] if arguments.resume and path is not None and path.exists() else []
    if arguments.quick:
        result = run(arguments.games or ["relu, 14", "trees, 30"], (500,), 2, arguments.workers, path, kept)
    else:
        result = run(arguments.games, workers=arguments.workers, path=path, kept=kept)
    print(show(result))
    write(path, "shapley", result)


if __name__ == "__main__":
    main()
