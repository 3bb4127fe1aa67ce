"""The axiom table, measured: the largest violation of each axiom by each method, over random small models.

Symmetry and Dummy can be read in two ways: as a property of F (and x), or only of the game v(T) = F(x_T) - F(x').
The numbers of a row are in the order GradCAM, SHAP, LIME, IG, GRALIS. "part" means that the axiom holds under a
condition; the module `axiom_conditions` measures it there. In the rows of the gaps, "yes" means that the method fills
the gap. The paper writes "cause" where a method has the gap, which counts as "no" here, and "-" where none applies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from gralis.arrays import Array
from gralis.paper import axiom_conditions, axiom_gaps
from gralis.paper.axiom_cases import METHODS, N_FEATURES, FractionFunction, axiom_case, exchangeable
from gralis.paper.claim_row import ROUNDING, VISIBLE, ClaimRow, collect
from gralis.paper.networks import network

Entry = Literal["yes", "no", "part", "cause", "-"]

MODELS = 8


@dataclass(frozen=True)
class Axiom:
    """One line of the table: what is measured, which entries are expected, and which the paper has."""

    name: str
    measure: Callable[[str, int], float]  # method, seed
    expected: tuple[Entry, Entry, Entry, Entry, Entry]  # in the order of METHODS
    paper: tuple[Entry, Entry, Entry, Entry, Entry]
    worst: Callable[[list[float]], float] = max
    response: bool = False  # True: "yes" means a visible number; False: "yes" means a violation of zero

    def measured(self) -> tuple[float, ...]:
        """The worst number of every method over the models."""
        return tuple(self.worst([self.measure(method, seed) for seed in range(MODELS)]) for method in METHODS)

    def row(self) -> ClaimRow:
        """The line as one row, which holds if all five numbers agree with the expected entries."""
        values = self.measured()
        wrong = [m for m, s, v in zip(METHODS, self.expected, values, strict=True) if not self._agrees(s, v)]
        entries = zip(METHODS, self.expected, self.paper, strict=True)
        differs = [f"{m} {p}" for m, s, p in entries if s != ("no" if p == "cause" else p)]
        predicted = " ".join(self.expected) + (f" (paper: {', '.join(differs)})" if differs else "")
        computed = " ".join(f"{v:.1g}" for v in values) + (f" (unexpected: {', '.join(wrong)})" if wrong else "")
        return ClaimRow(self.name, predicted, computed, not wrong, "Tab. axioms")

    def _agrees(self, entry: Entry, value: float) -> bool:
        return value > VISIBLE if (entry == "yes") == self.response else 0 <= value <= ROUNDING


def rows() -> list[ClaimRow]:
    return collect(_table, axiom_conditions.rows)


def _table() -> list[ClaimRow]:
    return [axiom.row() for axiom in AXIOMS]


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


def _local_and_complete(method: str, seed: int) -> float:
    """The response to the width of the kernel if the values sum to F(x) - F(x') all the same, and 0 otherwise."""
    return _locality(method, seed) if _efficiency(method, seed) <= ROUNDING else 0.0


def _all_three(method: str, seed: int) -> float:
    """The least of the responses to interactions, to gradients between the corners, and to the width of the kernel."""
    least = np.inf
    for measure in (_locality, _gradients, _interactions):
        least = min(least, measure(method, seed))
        if least <= ROUNDING:
            break
    return least


AXIOMS = (
    Axiom("Efficiency", _efficiency, ("no", "yes", "no", "yes", "part"), ("no", "yes", "no", "yes", "part")),
    Axiom("Symmetry, of F and x", _symmetric, ("yes", "yes", "no", "yes", "yes"), ("no", "yes", "no", "yes", "part")),
    Axiom("Symmetry, of v", _interchangeable, ("no", "yes", "no", "no", "part"), ("no", "yes", "no", "yes", "part")),
    Axiom("Dummy, in F", _ignored, ("no", "yes", "part", "yes", "yes"), ("no", "yes", "part", "yes", "yes")),
    Axiom("Dummy, in v", _null, ("no", "yes", "part", "no", "no"), ("no", "yes", "part", "yes", "yes")),
    Axiom("Linearity in F", _linear, ("part", "yes", "yes", "yes", "yes"), ("part", "yes", "yes", "yes", "yes")),
    Axiom(
        "Sensitivity (gradients): response to F between the corners",
        _gradients,
        expected=("yes", "no", "no", "yes", "yes"),
        paper=("yes", "no", "no", "yes", "yes"),
        response=True,
    ),
    Axiom(
        "Sensitivity, one feature moves: its least share of the change",
        _one_moves,
        expected=("no", "yes", "yes", "yes", "yes"),
        paper=("yes", "no", "no", "yes", "yes"),
        worst=min,
        response=True,
    ),
    Axiom(
        "Locality: response to the width of a kernel",
        _locality,
        expected=("no", "no", "yes", "no", "yes"),
        paper=("no", "no", "yes", "no", "part"),
        response=True,
    ),
    Axiom(
        "Interactions: a product distinguished from an additive function",
        _interactions,
        expected=("no", "no", "no", "no", "no"),
        paper=("no", "part", "no", "no", "part"),
        response=True,
    ),
    Axiom(
        "Multi-scale and Gap 6: response to an inner level while F stays the same",
        axiom_gaps.inner_level,
        expected=("yes", "no", "no", "no", "yes"),
        paper=("part", "no", "no", "no", "part"),
        worst=min,
        response=True,
    ),
    Axiom(
        "Gap 1: the attribution does not move with the baseline",
        axiom_gaps.another_baseline,
        expected=("yes", "no", "no", "no", "no"),
        paper=("-", "part", "no", "cause", "part"),
        worst=min,
    ),
    Axiom(
        "Gap 2: response to F inside the box, off the corners and off the ray of all features",
        axiom_gaps.within_coalitions,
        expected=("no", "no", "no", "no", "yes"),
        paper=("no", "cause", "no", "no", "yes"),
        response=True,
    ),
    Axiom(
        "Gap 3: response to the width of a kernel where the sum is F(x) - F(x')",
        _local_and_complete,
        expected=("no", "no", "no", "no", "no"),
        paper=("no", "no", "cause", "no", "part"),
        response=True,
    ),
    Axiom(
        "Gap 4: largest attribution of a unit of a dense layer",
        axiom_gaps.dense_layer,
        expected=("no", "yes", "yes", "yes", "yes"),
        paper=("cause", "no", "no", "no", "part"),
        response=True,
    ),
    Axiom(
        "Gap 5: least response to interactions, gradients and locality",
        _all_three,
        expected=("no", "no", "no", "no", "no"),
        paper=("no", "no", "no", "no", "part"),
        response=True,
    ),
)
