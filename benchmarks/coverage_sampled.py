"""How often intervals from sampled coalitions cover, on models with rare events and on models without.

python benchmarks/coverage_sampled.py [--quick] [--runs 200] [--only TEXT ...] [--out FILE] [--against FILE]

hard        n = 10: steps, a ReLU that wakes up at the end, a square root, a product, one coalition that carries all
narrow      a polynomial of pairs with sigma = 0.2
two         two replicates
tolerance   runs that stop at a tolerance of 0.05; a run that does not claim to have reached it is fine
solid       models without rare events, on which there should be no doubts
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any

import numpy as np
from coverage_cells import Claim, Outcome, command, explained, phi_outcome
from coverage_models import model, tensor
from coverage_truth import Array, Truth

import gralis

N, BUDGETS = 10, (300, 1000)
N_MODELS = 4
HARD = (
    "sigmoid 50",
    "sigmoid 300",
    "tanh 1000",
    "relu at the end",
    "saturated",
    "square root",
    "product",
    "one coalition",
)
SOLID = ("relu", "tanh", "max", "log-sum-exp", "oscillating")


def sampled(kind: str, settings: dict[str, Any], seed: int) -> Outcome:
    return phi_outcome(model(kind, N, seed % N_MODELS), seed, **settings)


def stopped(kind: str, seed: int) -> Outcome:
    """A run that says that it reached its tolerance must cover; one that does not say so claims nothing."""
    truth = model(kind, N, seed % N_MODELS)
    e = explained(truth, seed, budget=1000, tolerance=0.05)
    found = Outcome.of(e.values, e.half_widths(), truth.phi(), e, e.cost.n_gradients)
    return found if e.reached else Outcome(True, found.doubt, found.width, found.error, found.gradients)


@lru_cache
def pairwise(n: int, sigma: float | None, seed: int) -> tuple[Truth, Array]:
    """sum_i b_i z_i + sum_ij a_ij z_i z_j, and phi_i = b_i + sum_j a_ij / 2 P(j in T | i in T) in closed form."""
    rng = np.random.default_rng([seed, n])
    single, pairs = rng.normal(size=n), np.triu(rng.normal(size=(n, n)), 1) / np.sqrt(n) * 3
    a, b = tensor(pairs), tensor(single)
    sizes = np.arange(n)  # of T without i; every set of one size weighs the same, as all distances are equal
    log_kernel = np.zeros(n) if sigma is None else -sizes / n / (2 * sigma**2)
    share = np.exp(log_kernel) / np.exp(log_kernel).sum()  # Shapley's weight times the number of sets is 1 / n
    together = float(share @ sizes) / (n - 1)
    phi = single + (pairs + pairs.T).sum(1) / 2 * together
    return Truth(lambda z: z @ b + ((z @ a) * z).sum(1), np.ones(n)), phi


def polynomial(n: int, sigma: float | None, settings: dict[str, Any], seed: int) -> Outcome:
    truth, phi = pairwise(n, sigma, seed % N_MODELS)
    kernel = gralis.Uniform() if sigma is None else gralis.Gaussian(sigma)
    e = explained(truth, seed, kernel=kernel, **settings)
    half = np.diff(e.interval(), axis=1)[:, 0] / 2
    return Outcome.of(e.values, half, phi, e, e.cost.n_gradients)


def claims() -> dict[str, Claim]:
    found: dict[str, Claim] = {}
    for budget in BUDGETS:
        settings = {"budget": budget}
        for kind in HARD:
            found[f"hard, {kind}, {budget}"] = partial(sampled, kind, settings)
        for n in (30, 60):
            found[f"narrow, n = {n}, {budget}"] = partial(polynomial, n, 0.2, settings)
        for kind in SOLID:
            found[f"solid, {kind}, {budget}"] = partial(sampled, kind, settings)
    two = {"budget": 300, "replicates": 2}
    for n in (10, 50):
        found[f"two replicates, polynomial, n = {n}, 300"] = partial(polynomial, n, 0.75, two)
    found["two replicates, relu, n = 10, 300"] = partial(sampled, "relu", two)
    for kind in ("sigmoid 50", "sigmoid 300", "relu"):
        found[f"tolerance, {kind}"] = partial(stopped, kind)
    return found


if __name__ == "__main__":
    command(__doc__.splitlines()[0], "coverage_sampled", claims(), 200)
