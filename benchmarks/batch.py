"""Wall time of sixteen calls of `explain` divided by that of one call of `explain_batch`, on small models.

python benchmarks/batch.py [--quick] [--out benchmarks/results/batch.json]

Both use the same budget for each input and alternate in one process. The benchmark also reports the errors of both,
because the one call must not be faster at the price of accuracy. The truth of the first four inputs comes from
enumeration.
"""

from __future__ import annotations

from statistics import median
from typing import Any

import numpy as np
import torch
from report import options, table, timed, verdict, write
from torch import Tensor, nn

import gralis

TARGET = 3.0
N_INPUTS, N_FEATURES = 16, 12
N_ENUMERATED = 4  # inputs whose truth comes from enumeration


def models() -> dict[str, nn.Module]:
    torch.manual_seed(0)
    activations = {"softplus": nn.Softplus, "tanh": nn.Tanh, "relu": nn.ReLU}
    return {
        name: nn.Sequential(nn.Linear(N_FEATURES, 64), kind(), nn.Linear(64, 64), kind(), nn.Linear(64, 3)).eval()
        for name, kind in activations.items()
    }


def run(quick: bool) -> dict[str, Any]:
    budget, repetitions = (200, 1) if quick else (512, 3)
    xs = torch.randn(N_INPUTS, N_FEATURES, generator=torch.Generator().manual_seed(1))
    rows = {}
    for name, net in models().items():
        apart, together = [], []
        for repetition in range(repetitions + 1):
            wall, _, singles = timed(one_by_one, net, xs, budget)
            wall_batch, _, batch = timed(gralis.explain_batch, net, xs, target=0, budget=budget, progress=False)
            if repetition:  # the first pair warms up
                apart.append(wall)
                together.append(wall_batch)
        some = range(N_ENUMERATED)
        truth = np.stack([gralis.explain(net, xs[k], target=0, plan="exhaustive", budget=None).values for k in some])
        rows[name] = {
            "sixteen_calls": apart,
            "one_call": together,
            "ratio": median(apart) / median(together),
            "rmse_sixteen_calls": rms(singles[some] - truth),
            "rmse_one_call": rms(batch.values[some] - truth),
        }
    return {"n_inputs": N_INPUTS, "budget": budget, "target": TARGET, "models": rows}


def one_by_one(net: nn.Module, xs: Tensor, budget: int) -> Any:
    return np.stack([gralis.explain(net, x, target=0, budget=budget, progress=False).values for x in xs])


def rms(numbers: Any) -> float:
    return float(np.sqrt(np.mean(np.square(numbers))))


def show(result: dict[str, Any]) -> str:
    rows = [
        {
            "model": name,
            "16 calls s": median(row["sixteen_calls"]),
            "one call s": median(row["one_call"]),
            "ratio": row["ratio"],
            "target": verdict(row["ratio"], TARGET, at_most=False),
            "RMSE, calls": row["rmse_sixteen_calls"],
            "RMSE, one call": row["rmse_one_call"],
        }
        for name, row in result["models"].items()
    ]
    return table(f"{N_INPUTS} inputs of {N_FEATURES} features, budget {result['budget']} each", rows)


def main() -> None:
    arguments = options(__doc__.splitlines()[0]).parse_args()
    result = run(arguments.quick)
    print(show(result))
    write(arguments.out, "batch", result)


if __name__ == "__main__":
    main()
