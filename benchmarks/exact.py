"""Exact GRALIS of 12 features takes 2^12 - 1 rays, not 12 * 2^11, and agrees with the definition.

python benchmarks/exact.py [--quick] [--out benchmarks/results/exact.json]
"""

from __future__ import annotations

import itertools
import time
from math import factorial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from report import options, table, verdict, write
from threadpoolctl import threadpool_limits
from zoo import mlp

import gralis

N_NODES = 32
KERNELS = (gralis.Uniform(), gralis.Gaussian(0.75), gralis.Gaussian(0.3))
TARGET = 1e-10

Array = NDArray[np.float64]


def run(n_features: int = 12) -> dict[str, Any]:
    """Our values from one exhaustive ledger, compared with a loop that follows the definition, under three kernels."""
    model = mlp(torch.nn.functional.softplus, 1, 1.0, n=n_features)
    x = torch.randn(n_features, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    began = time.perf_counter()
    ours = gralis.explain(model, x, plan="exhaustive", n_nodes=N_NODES, budget=None, kernel=KERNELS[0])
    ours_seconds = time.perf_counter() - began
    n_rays = 2**n_features - 1
    assert ours.cost.n_rays == n_rays, f"{ours.cost.n_rays} rays instead of {n_rays}"
    assert ours.cost.n_gradients == n_rays * N_NODES

    began = time.perf_counter()
    truth = by_definition(model, x.numpy())
    naive_seconds = time.perf_counter() - began
    differences = {str(k): float(np.abs(ours.with_kernel(k).values - phi).max()) for k, phi in truth.items()}
    naive_rays = n_features * 2 ** (n_features - 1)
    return {
        "n_features": n_features,
        "n_nodes": N_NODES,
        "rays": {"ours": n_rays, "definition": naive_rays, "ratio": naive_rays / n_rays},
        "gradients": {"ours": n_rays * N_NODES, "definition": naive_rays * N_NODES},
        "seconds": {"ours": ours_seconds, "definition": naive_seconds},
        "largest_difference": differences,
        "target": TARGET,
    }


def by_definition(model: Any, x: Array) -> dict[gralis.Gaussian | gralis.Uniform, Array]:
    """phi_i = (1 / Z_i) sum over S without i of |S|! (n - |S| - 1)! / n! pi(S) IG_i(S), letter by letter; x' = 0.

    IG_i(S) = x_i * integral of dF/dx_i along the ray of S u {i}, one ray for each pair (S, i).
    """
    n = len(x)
    roots, halves = np.polynomial.legendre.leggauss(N_NODES)
    nodes, weights = (roots + 1) / 2, halves / 2
    sums = {kernel: np.zeros((2, n)) for kernel in KERNELS}  # numerator, normaliser
    for i in range(n):
        others = [j for j in range(n) if j != i]
        subsets = [S for size in range(n) for S in itertools.combinations(others, size)]
        masks = np.array([[j in S for j in range(n)] for S in subsets])
        coefficient = np.array([factorial(len(S)) * factorial(n - len(S) - 1) / factorial(n) for S in subsets])
        with_i = masks | (np.arange(n) == i)
        ig = np.zeros(len(subsets))
        for a, weight in zip(nodes, weights, strict=True):
            points = torch.from_numpy(a * with_i * x).requires_grad_()
            (gradient,) = torch.autograd.grad(model(points).sum(), points)
            ig += weight * x[i] * gradient[:, i].numpy()
        for kernel in KERNELS:
            pi = np.ones(len(subsets))
            if isinstance(kernel, gralis.Gaussian):
                pi = np.exp(-(masks @ x**2) / (x @ x) / (2 * kernel.sigma**2))  # the relative distance
            sums[kernel][:, i] = (coefficient * pi) @ ig, (coefficient * pi).sum()
    return {kernel: numerator / normaliser for kernel, (numerator, normaliser) in sums.items()}


def show(result: dict[str, Any]) -> str:
    rays, gradients, seconds = result["rays"], result["gradients"], result["seconds"]
    ours = {"rays": rays["ours"], "gradients": gradients["ours"], "seconds": seconds["ours"]}
    naive = {"rays": rays["definition"], "gradients": gradients["definition"], "seconds": seconds["definition"]}
    cost = [{"": key, "definition": naive[key], "ours": ours[key], "ratio": naive[key] / ours[key]} for key in ours]
    agreement = [
        {"kernel": kernel, "largest difference": difference, "target": verdict(difference, TARGET, at_most=True)}
        for kernel, difference in result["largest_difference"].items()
    ]
    title = f"exact, {result['n_features']} features"
    return table(title, cost) + "\n" + table("agreement with the definition", agreement)


def main() -> None:
    arguments = options(__doc__.splitlines()[0]).parse_args()
    with threadpool_limits(1):  # everything is small here, so more threads only wait for each other
        result = run(8 if arguments.quick else 12)
    print(show(result))
    write(arguments.out, "exact", result)


if __name__ == "__main__":
    main()
