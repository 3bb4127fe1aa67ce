"""Measurements for the last rows of the axiom table: multi-scale, and the gaps that the paper sees in other methods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from gralis import canonical
from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.paper.axiom_cases import N_FEATURES, AxiomCase, axiom_case
from gralis.paper.networks import Function, FunctionModule, network, point


def another_baseline(method: str, seed: int) -> float:
    """How far the attribution moves if the baseline is x / 2 instead of 0; GradCAM has no baseline."""
    example = axiom_case(method, seed)
    moved = example
    if method != "GradCAM":
        half = example.x / 2
        moved = replace(example, function=lambda z: example.function(z + half), x=half)
    return float(np.abs(moved.attribution() - example.attribution()).max())


def within_coalitions(method: str, seed: int) -> float:
    """How far the attribution moves if F changes only inside the box, off the corners and off the ray of all features.

    The change 3 u_0 u_1 (1 - u_1) (u_2 - u_3)^2 vanishes with its gradient where all u are equal.
    """
    f = network(seed, N_FEATURES)

    def changed(u: Tensor) -> Tensor:
        return f(u) + 3 * u[:, 0] * u[:, 1] * (1 - u[:, 1]) * (u[:, 2] - u[:, 3]) ** 2

    return float(
        np.abs(axiom_case(method, seed, changed).attribution() - axiom_case(method, seed, f).attribution()).max()
    )


def dense_layer(method: str, seed: int) -> float:
    """The largest attribution of a unit of a dense layer; 0 if the method cannot explain one."""
    first, head = _levels(seed)
    if method == "GradCAM":
        net = nn.Sequential(FunctionModule(first), FunctionModule(head)).eval()
        try:
            return float(np.abs(canonical.gradcam(net, _input(seed), layer=net[0])).max())
        except GralisError:
            return 0.0
    return float(np.abs(AxiomCase(method, head, _inner(first, seed)).attribution()).max())


def inner_level(method: str, seed: int) -> float:
    """How far the attribution moves if an inner level is expressed in other coordinates while F stays the same.

    GradCAM reads the inner level; SHAP, LIME and IG read the input. GRALIS stands for MS-GRALIS here: half of the
    attribution comes from the input and half from the inner level, whose unit j belongs to feature j.
    """
    first, head = _levels(seed)
    mixing = torch.eye(N_FEATURES, dtype=torch.float64) + 0.3 * _matrix(seed + 100)
    back = torch.linalg.inv(mixing)
    one = _on_levels(method, first, head, seed)
    other = _on_levels(method, lambda z: first(z) @ mixing, lambda h: head(h @ back), seed)
    return float(np.abs(one - other).max())


def _on_levels(method: str, first: Function, head: Function, seed: int) -> Array:
    """The attribution of head(first(z)) by a method, with the level between the two."""
    x = _input(seed)
    if method == "GradCAM":
        as_map = FunctionModule(lambda z: first(z).reshape(-1, 1, 2, 2))
        net = nn.Sequential(as_map, FunctionModule(lambda a: head(a.flatten(1)))).eval()
        return canonical.gradcam_lin(net, x, layer=net[0]).attribution()  # GradCAM before its ReLU
    on_input = AxiomCase(method, lambda z: head(first(z)), x).attribution()
    if method != "GRALIS":
        return on_input
    return (on_input + AxiomCase(method, head, _inner(first, seed)).attribution()) / 2


def _levels(seed: int) -> tuple[Function, Function]:
    """A dense layer with four units, and the head that reads them."""
    weights = torch.eye(N_FEATURES, dtype=torch.float64) + 0.3 * _matrix(seed)
    return (lambda z: torch.tanh(z @ weights)), network(seed, N_FEATURES)


def _matrix(seed: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng([seed, 6]).standard_normal((N_FEATURES, N_FEATURES)))


def _input(seed: int) -> Tensor:
    return torch.from_numpy(point(seed, N_FEATURES))


def _inner(first: Function, seed: int) -> Tensor:
    return first(_input(seed)[None])[0]
