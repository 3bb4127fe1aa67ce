"""Small models: what an explanation costs where the model costs next to nothing.

python benchmarks/small.py [--quick] [--out benchmarks/results/small.json]

1. `explain_batch` on a network of 30 columns: explanations per second of processor time, beside the bare gradients of
   as many points, and how often the intervals hold.
2. Shapley values of 30 columns from a black box: our processor time divided by that of shap's Permutation explainer at
   equal accuracy, for models that cost nothing, little and more. Ours are those of `plans.values(orders=True)`
   with the smallest budget that is at least as accurate.
3. What the fits cost: the time of one explanation divided by that of its model calls.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from report import options, table, timed, verdict, write
from sklearn.ensemble import RandomForestRegressor
from torch import nn

import gralis

N_COLUMNS = 30
PER_SECOND, AGAINST_SHAP = 200.0, 1.0
BUDGET = 256
PERMUTATIONS = (3, 10, 30)
BUDGETS = (240, 300, 400, 500, 610, 700, 850, 1000, 1200, 1400, 1830, 2200, 2600, 3200, 4000)


def network(n: int) -> nn.Module:
    """Two hidden layers of 64."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = [nn.Linear(n, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1)]
        return nn.Sequential(*layers).eval()


def batch(n_rows: int, n_checked: int, budget_of_truth: int) -> dict[str, Any]:
    """Explanations per second, and how often the intervals of some rows hold."""
    net, rows = network(N_COLUMNS), torch.randn(n_rows, N_COLUMNS, generator=torch.Generator().manual_seed(1))
    gralis.explain_batch(net, rows[:4], target=0, budget=BUDGET)
    _, seconds, found = timed(gralis.explain_batch, net, rows, target=0, budget=BUDGET, progress=False)
    points = torch.randn(n_rows * BUDGET, N_COLUMNS)

    def bare() -> None:
        for part in points.split(1024):
            part = part.requires_grad_(True)
            torch.autograd.grad(net(part).sum(), part)

    _, bare_seconds, _ = timed(bare)
    some = np.linspace(0, n_rows - 1, n_checked).astype(int)
    truth = [gralis.explain(net, rows[k], target=0, budget=budget_of_truth, seed=99, progress=False) for k in some]
    held, each = [], []
    for k, known in zip(some, truth, strict=True):
        low, high = found[int(k)].interval().T
        inside = (low <= known.values) & (known.values <= high)
        held.append(bool(inside.all()))
        each.append(float(inside.mean()))
    return {
        "n_rows": n_rows,
        "budget": BUDGET,
        "per_second": n_rows / seconds,
        "bare_per_second": n_rows / bare_seconds,
        "intervals_hold": float(np.mean(held)),
        "features_inside": float(np.mean(each)),
    }


def black_boxes() -> dict[str, Callable[[np.ndarray], np.ndarray]]:
    """A quadratic form with interactions of three, a network in NumPy, and a random forest."""
    rng = np.random.default_rng(0)
    first = rng.standard_normal((N_COLUMNS, 64)) * 1.5 / np.sqrt(N_COLUMNS)
    second, last = rng.standard_normal((64, 64)) / 8, rng.standard_normal(64) / 8
    directions = rng.standard_normal((3, N_COLUMNS)) / np.sqrt(N_COLUMNS)

    def nothing(z: np.ndarray) -> np.ndarray:
        return np.asarray((z @ directions.T).prod(1) + z.sum(1) / 10)

    def little(z: np.ndarray) -> np.ndarray:
        return np.asarray(np.maximum(np.maximum(z @ first, 0) @ second, 0) @ last)

    table_of = rng.standard_normal((1500, N_COLUMNS))
    forest = RandomForestRegressor(100, max_depth=10, n_jobs=1, random_state=0).fit(table_of, little(table_of))
    return {"costs nothing": nothing, "network": little, "forest": forest.predict}


def true_shapley(f: Callable[[np.ndarray], np.ndarray], x: np.ndarray, n_pairs: int) -> np.ndarray:
    """Shapley values from pairs of opposite permutations, by the definition; the baseline is zero."""
    rng, total, n = np.random.default_rng(7), np.zeros(N_COLUMNS), N_COLUMNS
    for _ in range(n_pairs):
        order = rng.permutation(n)
        for one in (order, order[::-1]):
            rank = np.empty(n, dtype=int)
            rank[one] = np.arange(n)
            values = f(np.where(rank < np.arange(n + 1)[:, None], x, 0.0))
            total[one] += np.diff(values)
    return total / (2 * n_pairs)


def against_shap(n_seeds: int, n_pairs: int) -> list[dict[str, Any]]:
    """Our time over that of shap, with the smallest of our budgets that is at least as accurate."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # shap uses what other packages are about to remove
        import shap
    x = np.random.default_rng(3).standard_normal(N_COLUMNS)
    cells, orders = [], gralis.plans.values(orders=True)
    for name, f in black_boxes().items():
        truth = true_shapley(f, x, n_pairs)

        def error(values: list[np.ndarray], truth: np.ndarray = truth) -> float:
            return float(np.sqrt(np.mean([(one - truth) ** 2 for one in values])))

        ours = {}
        for budget in BUDGETS:
            runs = [
                timed(gralis.explain, gralis.models.blackbox(f), x, plan=orders, budget=budget, seed=s, progress=False)
                for s in range(n_seeds)
            ]
            ours[budget] = (min(run[1] for run in runs), error([run[2].values for run in runs]))
        for m in PERMUTATIONS:
            evaluations = m * (2 * N_COLUMNS + 1)
            runs = []
            for s in range(n_seeds):
                explainer = shap.PermutationExplainer(f, np.zeros((1, N_COLUMNS)), seed=s)
                runs.append(timed(explainer, x[None], max_evals=evaluations, silent=True))
            wanted = error([run[2].values[0] for run in runs])
            enough = [budget for budget in BUDGETS if ours[budget][1] <= wanted]
            budget = enough[0] if enough else BUDGETS[-1]
            seconds = min(run[1] for run in runs)
            cells.append(
                {
                    "model": name,
                    "shap_evaluations": evaluations,
                    "shap_rmse": wanted,
                    "shap_seconds": seconds,
                    "forwards": budget,
                    "rmse": ours[budget][1],
                    "seconds": ours[budget][0],
                    "ratio": ours[budget][0] / seconds,
                    "as_accurate": bool(enough),
                }
            )
    return cells


def fits() -> list[dict[str, Any]]:
    """Seconds of one explanation and of what is read from it, divided by those of its model calls."""
    cells = []
    for n, budget in ((12, 300), (12, 1024), (30, 1024)):
        net, x = network(n), torch.randn(n, generator=torch.Generator().manual_seed(2))
        gralis.explain(net, x, target=0, budget=budget, progress=False)
        _, seconds, found = timed(gralis.explain, net, x, target=0, budget=budget, progress=False)
        points = torch.randn(found.cost.n_gradients, n, requires_grad=True)
        _, bare, _ = timed(lambda net=net, points=points: torch.autograd.grad(net(points).sum(), points))
        cells.append(
            {
                "columns": n,
                "budget": budget,
                "explain": seconds,
                "ranks": timed(found.ranks)[1],
                "convergence": timed(found.plot, "convergence")[1],
                "bare gradients": bare,
            }
        )
    return cells


def run(*, quick: bool = False) -> dict[str, Any]:
    torch.set_num_threads(1)
    return {
        "batch": batch(200 if quick else 1000, 8 if quick else 20, 6000 if quick else 12_000),
        "fits": fits(),
        "shapley": against_shap(2 if quick else 4, 50 if quick else 1000),
        "quick": quick,
        "targets": {"per_second": PER_SECOND, "against_shap": AGAINST_SHAP},
    }


def show(result: dict[str, Any]) -> str:
    one = result["batch"]
    rows = [{**one, "target": verdict(one["per_second"], PER_SECOND, at_most=False)}]
    cells = [{**cell, "target": verdict(cell["ratio"], AGAINST_SHAP, at_most=True)} for cell in result["shapley"]]
    return "\n".join(
        [
            table(f"explain_batch, {N_COLUMNS} columns, processor time", rows),
            table("processor seconds of one explanation and of what is read from it", result["fits"]),
            table("Shapley values at the accuracy of shap's Permutation explainer", cells),
        ]
    )


def main() -> None:
    arguments = options(__doc__.splitlines()[0]).parse_args()
    result = run(quick=arguments.quick)
    print(show(result))
    write(arguments.out, "small", result)


if __name__ == "__main__":
    main()
