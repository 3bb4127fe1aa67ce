"""The axiom table, measured: the largest violation of each axiom by each method, over random small models.

Symmetry and Dummy can be read in two ways: as a property of F (and x), or only of the game v(T) = F(x_T) - F(x').
The numbers of a row are in the order GradCAM, SHAP, LIME, IG, GRALIS. "part" means that the axiom holds under a
condition; the module `axiom_conditions` measures it there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from gralis.arrays import Array
from gralis.paper import axiom_conditions
from gralis.paper.axiom_cases import METHODS, N_FEATURES, FractionFunction, axiom_case, exchangeable
from gralis.paper.claim_row import ROUNDING, VISIBLE, ClaimRow
from gralis.paper.networks import network

MODELS = 8


@dataclass(frozen=True)
class Axiom:
    """One line of the table: what is measured, which entries are expected, and which the paper has."""

    name: str
    measure: Callable[[str, int], float]  # method, seed
    expected: str  # yes, no or part, in the order of METHODS
    paper: str = ""  # where it has other entries
    worst: Callable[[list[float]], float] = max
    response: bool = False  # True: "yes" means a visible number; False: "yes" means a violation of zero

    def measured(self) -> tuple[float, ...]:
        """The worst number of every method over the models."""
        return tuple(self.worst([self.measure(method, seed) for seed in range(MODELS)]) for method in METHODS)

    def row(self) -> ClaimRow:
        """The line as one row, which holds if all five numbers agree with the expected entries."""
        values = self.measured()
        expected, paper = self.expected.split(), (self.paper or self.expected).split()
        wrong = [m for m, s, v in zip(METHODS, expected, values, strict=True) if not self._agrees(s, v)]
        differs = [f"{m} {p}" for m, s, p in zip(METHODS, expected, paper, strict=True) if s != p]
        predicted = self.expected + (f" (paper: {', '.join(differs)})" if differs else "")
        computed = " ".join(f"{v:.1g}" for v in values) + (f" (unexpected: {', '.join(wrong)})" if wrong else "")
        return ClaimRow(self.name, predicted, computed, not wrong, "Tab. axioms")

    def _agrees(self, entry: str, value: float) -> bool:
        return value > VISIBLE if (entry == "yes") == self.response else 0 <= value <= ROUNDING


def rows() -> list[ClaimRow]:
    return [*(axiom.row() for axiom in AXIOMS), *axiom_conditions.rows()]


def _efficiency(method: str, seed: int) -> float:
    example = axiom_case(method, seed)
    return abs(float(example.attribution().sum()) - example.delta)


def _symmetric(method: str, seed: int) -> float:
    """Features 0 and 1 are symmetric in F and have the same x."""
    phi = axiom_case(method, seed, exchangeable(seed), same_x=True).attribution()
    return float(abs(phi[0] - phi[1]))


def _interchangeable(method: str, seed: int) -> float:
    """Features 0 and 1 are symmetric in v; F treats them differently between the corners."""
    inner = network(seed, N_FEATURES)

    def shape(u: Tensor) -> Tensor:
        return inner(torch.stack([u[:, 0] * u[:, 1] ** 2, u[:, 0] + u[:, 1] ** 3, u[:, 2], u[:, 3]], dim=1))

    phi = axiom_case(method, seed, shape).attribution()
    return float(abs(phi[0] - phi[1]))


def _ignored(method: str, seed: int) -> float:
    """F does not depend on feature 2."""
    inner = network(seed, N_FEATURES - 1)
    return float(abs(axiom_case(method, seed, lambda u: inner(u[:, [0, 1, 3]])).attribution()[2]))


def _null(method: str, seed: int) -> float:
    """v does not depend on feature 2; F depends on it between the corners."""
    inner, hidden = network(seed, N_FEATURES - 1), network(seed + 100, N_FEATURES - 1)

    def shape(u: Tensor) -> Tensor:
        others = u[:, [0, 1, 3]]
        return inner(others) + 4 * u[:, 2] * (1 - u[:, 2]) * hidden(others)

    return float(abs(axiom_case(method, seed, shape).attribution()[2]))


def _linear(method: str, seed: int) -> float:
    f, g = network(seed, N_FEATURES), network(seed + 100, N_FEATURES)
    both, of_f, of_g = (axiom_case(method, seed, h).attribution() for h in (lambda u: f(u) - 2 * g(u), f, g))
    return float(np.abs(both - of_f + 2 * of_g).max())


def _gradients(method: str, seed: int) -> float:
    """How far the attribution moves when F changes between the corners only, by 3 u_0 u_1 (1 - u_1)."""
    f = network(seed, N_FEATURES)
    changed = axiom_case(method, seed, lambda u: f(u) + 3 * u[:, 0] * u[:, 1] * (1 - u[:, 1])).attribution()
    return float(np.abs(changed - axiom_case(method, seed, f).attribution()).max())


def _one_moves(method: str, seed: int) -> float:
    """|phi_0| / |F(x) - F(x')| where x differs from x' in feature 0 only."""
    example = axiom_case(method, seed).only_first()
    return float(abs(example.attribution()[0]) / abs(example.delta))


def _locality(method: str, seed: int) -> float:
    """How far the attribution moves with the width of the kernel; it is 0 for a method without a kernel."""
    example = axiom_case(method, seed)
    return float(np.abs(example.attribution(sigma=0.25) - example.attribution(sigma=1.0)).max())


def _interactions(method: str, seed: int) -> float:
    """How far the attribution of u_0 u_1 is from that of the additive function whose attribution is nearest to it."""

    def explained(shape: FractionFunction) -> Array:
        return axiom_case(method, seed, shape).attribution()

    def single(u: Tensor, j: int) -> Tensor:
        return u[:, j]

    pair = explained(lambda u: u[:, 0] * u[:, 1])
    table = np.stack([explained(partial(single, j=j)) for j in range(N_FEATURES)], axis=1)
    slopes = torch.from_numpy(np.linalg.lstsq(table, pair, rcond=None)[0])
    return float(np.abs(explained(lambda u: u @ slopes) - pair).max())


_EDGES = "Sensitivity (gradients): response to F between the corners"
_SHARE = "Sensitivity, one feature moves: its least share of the change"
_WIDTH = "Locality: response to the width of a kernel"
_PAIRS = "Interactions: a product distinguished from an additive function"

AXIOMS = (
    Axiom("Efficiency", _efficiency, "no yes no yes part"),
    Axiom("Symmetry, of F and x", _symmetric, "yes yes no yes yes", "no yes no yes part"),
    Axiom("Symmetry, of v", _interchangeable, "no yes no no part", "no yes no yes part"),
    Axiom("Dummy, in F", _ignored, "no yes part yes yes"),
    Axiom("Dummy, in v", _null, "no yes part no no", "no yes part yes yes"),
    Axiom("Linearity in F", _linear, "part yes yes yes yes"),
    Axiom(_EDGES, _gradients, "yes no no yes yes", response=True),
    Axiom(_SHARE, _one_moves, "no yes yes yes yes", "yes no no yes yes", worst=min, response=True),
    Axiom(_WIDTH, _locality, "no no yes no yes", "no no yes no part", response=True),
    Axiom(_PAIRS, _interactions, "no no no no no", "no part no no part", response=True),
)
