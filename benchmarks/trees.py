"""Tree ensembles: the time of phi and of Shapley values compared with shap, Woodelf and shapiq on one thread.

python benchmarks/trees.py [--quick] [--out benchmarks/results/trees.json]

The model is XGBoost with 500 trees of depth 6 on 30 columns, with 100 background rows. shap computes the same
interventional Shapley values, and so does Woodelf, whose time grows with the rows plus the background instead of their
product (`pip install woodelf_explainer`; the table says if it is missing). A second table has more background rows,
where that matters. shapiq 1.4 has no tree explainer with a background: its TreeExplainer computes another game
(path-dependent), so only its time is compared, on a random forest of the same size, because it cannot read XGBoost with
pandas 3. Times are processor time, and the sides alternate. The times of the first calls, in which numba loads or
compiles the functions, are listed apart.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import xgboost
from report import options, table, verdict, write
from sklearn.ensemble import RandomForestRegressor
from threadpoolctl import threadpool_limits

import gralis
from gralis.trees import TreeEnsemble, phi_of_rows, singles_of_rows

TARGETS = {"Shapley": 1.5, "GRALIS": 15.0}  # our time divided by that of shap
SIZES = {"n_trees": 500, "depth": 6, "n_columns": 30, "n_background": 100, "n_rows": 1000, "n_repeats": 3}
QUICK = {"n_trees": 20, "depth": 4, "n_columns": 8, "n_background": 10, "n_rows": 20, "n_repeats": 1}
BACKGROUNDS = (100, 1000, 4000)  # rows of the background in the comparison with Woodelf
LARGE = ({"n_trees": 50, "depth": 12}, {"n_trees": 5000, "depth": 6})  # must work; 20 background rows, 2 rows


def data(n_rows: int, n_columns: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of normal numbers, and a target with squares, waves and products."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_columns))
    y = (X[:, : n_columns // 3] ** 2).sum(1) + X[:, 0] * X[:, 1] + np.sin(X).sum(1) + rng.normal(size=n_rows)
    return X, y


def model(n_trees: int, depth: int, X: np.ndarray, y: np.ndarray) -> Any:
    return xgboost.XGBRegressor(n_estimators=n_trees, max_depth=depth, learning_rate=0.05, n_jobs=1).fit(X, y)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """The processor seconds of one call, and its result."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def run(n_trees: int, depth: int, n_columns: int, n_background: int, n_rows: int, n_repeats: int) -> dict[str, Any]:
    """The times per row of all methods, and how far the Shapley values of shap and ours are apart."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # shap and shapiq use what other packages are about to remove
        import shap
        import shapiq
    X, y = data(4000, n_columns)
    estimator = model(n_trees, depth, X, y)
    background, rows = X[:n_background], X[n_background : n_background + n_rows]
    trees = gralis.models.trees(estimator)
    encoded, baselines = trees.encode(rows), trees.encode(background)
    peer = shap.TreeExplainer(estimator, background, feature_perturbation="interventional")
    few = encoded[: max(n_rows // 10, 1)]  # phi of all rows would take minutes, and the time is proportional
    kernel = gralis.Gaussian(0.75)
    first = {
        "Shapley": seconds(lambda: singles_of_rows(trees.trees([0]), encoded[:2], baselines[:2]))[0],
        "Shapley, one row": seconds(lambda: singles_of_rows(trees.trees([0]), encoded[:1], baselines[:1]))[0],
        "GRALIS": seconds(lambda: phi_of_rows(trees.trees([0]), encoded[:1], baselines[:1], kernel))[0],
    }
    peer.shap_values(rows[:1])
    times: dict[str, list[float]] = {
        name: [] for name in ("shap", "Shapley", "Shapley, one row", "GRALIS", "GRALIS, uniform")
    }
    for _ in range(n_repeats):
        spent, theirs = seconds(lambda: peer.shap_values(rows[: len(few)]))
        times["shap"].append(spent / len(few))
        spent, ours = seconds(lambda: singles_of_rows(trees, encoded, baselines))
        times["Shapley"].append(spent / n_rows)
        times["Shapley, one row"].append(seconds(lambda: singles_of_rows(trees, encoded[:1], baselines))[0])
        times["GRALIS"].append(seconds(lambda: phi_of_rows(trees, few, baselines, kernel))[0] / len(few))
        uniform = seconds(lambda: phi_of_rows(trees, few, baselines, gralis.Uniform()))[0]
        times["GRALIS, uniform"].append(uniform / len(few))
    forest = RandomForestRegressor(n_trees, max_depth=depth).fit(X[:1000], y[:1000])
    explainer = shapiq.TreeExplainer(forest, max_order=1, index="SV")
    per_row = {name: float(np.median(values)) for name, values in times.items()}
    per_row["shapiq (path-dependent)"] = seconds(lambda: explainer.explain(rows[0]))[0]
    difference = float(np.abs(ours[: len(few), 0] - theirs).max() / np.abs(theirs).max())
    return {
        **{"n_trees": n_trees, "depth": depth, "n_columns": n_columns, "n_background": n_background, "n_rows": n_rows},
        "n_nodes": trees.n_nodes,
        "seconds_per_row": per_row,
        "ratio_to_shap": {name: value / per_row["shap"] for name, value in per_row.items()},
        "first_call_seconds": first,
        "largest_difference": difference,
        "backgrounds": backgrounds(trees, estimator, X, n_rows, BACKGROUNDS if n_trees >= 500 else (n_background,)),
        "large": [large(**sizes) for sizes in LARGE] if n_trees >= 500 else [],
        "memory": memory(trees, encoded, baselines),
    }


def backgrounds(
    trees: TreeEnsemble, estimator: Any, X: np.ndarray, n_rows: int, sizes: tuple[int, ...]
) -> list[dict[str, Any]]:
    """Shapley values of all rows for backgrounds of several sizes: seconds of ours, and of Woodelf if it is installed.

    Both read the trees and the background anew, as a first question does.
    """
    rows, cells = X[-n_rows:], []
    for size in sizes:
        spent, ours = seconds(lambda size=size: singles_of_rows(trees, trees.encode(rows), trees.encode(X[:size])))
        cell: dict[str, Any] = {"background rows": size, "rows": n_rows, "ours": spent}
        theirs = woodelf(estimator, X[:size], rows)
        if theirs is not None:
            apart = np.abs(ours[:, 0] - theirs[1]).max() / np.abs(theirs[1]).max()
            cell |= {"Woodelf": theirs[0], "ratio": spent / theirs[0], "largest difference": float(apart)}
        cells.append(cell)
    return cells


def woodelf(estimator: Any, background: np.ndarray, rows: np.ndarray) -> tuple[float, np.ndarray] | None:
    """The seconds and the Shapley values of Woodelf, which wants frames and prints; None if it is not installed."""
    if importlib.util.find_spec("woodelf") is None:
        return None
    from woodelf import WoodelfExplainer

    frames = [pd.DataFrame(part, columns=[f"f{k}" for k in range(part.shape[1])]) for part in (background, rows)]

    def both() -> np.ndarray:
        return np.asarray(WoodelfExplainer(estimator, frames[0]).shap_values(frames[1]))

    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
        return seconds(both)


def large(n_trees: int, depth: int) -> dict[str, Any]:
    """Deep and many trees: that they work, and that the Shapley values add up."""
    X, y = data(2000, 30, seed=1)
    trees = gralis.models.trees(model(n_trees, depth, X, y))
    rows, baselines = trees.encode(X[:2]), trees.encode(X[10:30])
    spent, phi = seconds(lambda: phi_of_rows(trees, rows, baselines, gralis.Gaussian(0.75)))
    shapley = singles_of_rows(trees, rows, baselines)[:, 0]
    gap = shapley.sum(1) - (trees.outputs(rows)[:, 0] - trees.outputs(baselines)[:, 0].mean())
    assert np.isfinite(phi).all()
    about = {"n_trees": n_trees, "depth": trees.depth, "n_nodes": trees.n_nodes}
    return {**about, "seconds_per_row": spent / 2, "sum_gap": float(np.abs(gap).max())}


def memory(trees: TreeEnsemble, rows: np.ndarray, baselines: np.ndarray) -> dict[str, float]:
    """By how much the peak memory of the process grows for many rows, in MiB, besides the numbers themselves."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    many = np.tile(rows, (20, 1))
    result = singles_of_rows(trees, many, baselines)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"n_rows": len(many), "growth": (after - before) / 1024, "numbers": (result.nbytes + many.nbytes) / 2**20}


def show(result: dict[str, Any]) -> str:
    ratio = result["ratio_to_shap"]
    rows = [
        {"method": name, "ms per row": 1000 * value, "of shap": ratio[name], "target": _target(name, ratio[name])}
        for name, value in result["seconds_per_row"].items()
    ]
    title = (
        f"{result['n_trees']} trees of depth {result['depth']}, {result['n_background']} background rows, one thread"
    )
    text = (
        table(title, rows) + f"\nlargest difference from shap: {result['largest_difference']:.2g} of the largest value"
    )
    text += "\nfirst calls: " + ", ".join(
        f"{name} {value:.1f} s" for name, value in result["first_call_seconds"].items()
    )
    text += table("Shapley values of all rows, seconds", result["backgrounds"])
    if "Woodelf" not in result["backgrounds"][0]:
        text += "\nWoodelf is not installed (pip install woodelf_explainer), so it was not measured"
    grown = result["memory"]
    text += (
        f"\n{grown['n_rows']} rows: peak memory + {grown['growth']:.0f} MiB, of which numbers {grown['numbers']:.0f}"
    )
    return text + (table("larger ensembles", result["large"]) if result["large"] else "")


def _target(name: str, ratio: float) -> str:
    return verdict(ratio, TARGETS[name], at_most=True) if name in TARGETS else ""


def main() -> None:
    arguments = options(__doc__.splitlines()[0]).parse_args()
    with threadpool_limits(1):
        result = run(**(QUICK if arguments.quick else SIZES))
    print(show(result))
    write(arguments.out, "trees", result)


if __name__ == "__main__":
    main()
