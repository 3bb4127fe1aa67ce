"""Width of the paper's certificate (Theorem 3 and corollaries) divided by that of the default certificate.

python benchmarks/certificate.py [--quick] [--out benchmarks/results/certificate.json]

Algorithm 1 has m permutations and k = 10 midpoints, and the default plan has the same number of gradients, m n k. Both
certificates hold at 95% for all features together. The constants B and E_quad are measured at the points of Algorithm
1, which favours the paper's bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from accuracy import N_NODES, algorithm_1
from report import geometric_mean, options, table, write
from zoo import EXACT, exact_case

import gralis

KERNELS = {**{str(s): gralis.Gaussian(s) for s in (0.3, 0.5, 0.75, 1.0)}, "uniform": gralis.Uniform()}
N_PERMUTATIONS = 30


def run(models: Sequence[str] = EXACT, n_permutations: int = N_PERMUTATIONS) -> dict[str, Any]:
    """The mean half-width of both for every model and sigma, as a share of |F(x) - F(x')|, and their ratio."""
    cells = []
    for name in models:
        case = exact_case(name)
        paper = algorithm_1(case, n_permutations, seed=0)
        for sigma, kernel in KERNELS.items():
            printed = paper.with_kernel(kernel).certificate(0.05, "paper")
            budget = n_permutations * case.x.numel() * N_NODES
            ours = gralis.explain(case.model, case.x, baseline=case.baseline, kernel=kernel, budget=budget, seed=1)
            sharp = ours.certificate(0.05)
            cells.append(
                {
                    "model": name,
                    "sigma": sigma,
                    "gradients": budget,
                    "paper": float(printed.half_widths.mean() / printed.difference),
                    "default": float(sharp.half_widths.mean() / sharp.difference),
                    "ratio": float(printed.half_widths.mean() / sharp.half_widths.mean()),
                    "vacuous": printed.vacuous,
                }
            )
    ratios = {sigma: geometric_mean([c["ratio"] for c in cells if c["sigma"] == sigma]) for sigma in KERNELS}
    return {"cells": cells, "ratio_by_sigma": ratios, "ratio": geometric_mean([c["ratio"] for c in cells])}


def show(result: dict[str, Any]) -> str:
    ratios = {**result["ratio_by_sigma"], "in all": result["ratio"]}
    by_sigma = [{"sigma": sigma, "paper / default": ratio} for sigma, ratio in ratios.items()]
    title = "mean half-width / |F(x) - F(x')|, 95%"
    return table(title, result["cells"]) + "\n" + table("geometric mean over the models", by_sigma)


def main() -> None:
    arguments = options(__doc__.splitlines()[0]).parse_args()
    result = run(EXACT[:2], 4) if arguments.quick else run()
    print(show(result))
    write(arguments.out, "certificate", result)


if __name__ == "__main__":
    main()
