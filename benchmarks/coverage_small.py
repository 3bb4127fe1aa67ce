"""How often the default intervals of few features cover, where all coalitions can be evaluated.

python benchmarks/coverage_small.py [--quick] [--runs 200] [--only TEXT ...] [--out FILE] [--against FILE]

ReLU networks of two layers, a sigmoid of slope 60, sin(40 z), kinks, a saturated softmax, tanh networks; n = 2 ... 8.
The rows "8 fixed nodes" are the same ReLU networks with eight Gauss-Legendre nodes on every ray.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from coverage_cells import Claim, Outcome, command, phi_outcome
from coverage_models import model

KINDS = ("relu", "steep", "oscillating", "kinked", "saturated", "tanh")
SIZES = range(2, 9)
N_MODELS = {n: 20 if n < 6 else 6 for n in SIZES}  # the truth of large models takes long


def claim(kind: str, n: int, settings: dict[str, Any], seed: int) -> Outcome:
    return phi_outcome(model(kind, n, seed % N_MODELS[n]), seed, **settings)


def claims() -> dict[str, Claim]:
    fixed = {"plan": "exhaustive", "quadrature": "gauss-legendre", "n_nodes": 8, "budget": None}
    found: dict[str, Claim] = {f"{kind}, n = {n}": partial(claim, kind, n, {}) for kind in KINDS for n in SIZES}
    return found | {f"8 fixed nodes, relu, n = {n}": partial(claim, "relu", n, fixed) for n in SIZES}


if __name__ == "__main__":
    command(__doc__.splitlines()[0], "coverage_small", claims(), 200)
