"""Entries of the axiom table that hold in part: the condition under which they hold, measured there."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from gralis import canonical
from gralis.api.explain import explain
from gralis.arrays import Array
from gralis.kernels import Gaussian, Uniform
from gralis.paper.cases import N_FEATURES, Case, case, exchangeable
from gralis.paper.networks import Over
from gralis.paper.row import Row, at_most, exceeds, near, vanishes

_MODELS = 8
_SOURCE = "Tab. axioms, notes"


def rows() -> list[Row]:
    return [
        vanishes("Efficiency, GRALIS: affine F", max(map(_affine, range(_MODELS))), _SOURCE),
        vanishes("Symmetry of v, GRALIS: multilinear F, uniform kernel", max(map(_uniform, range(_MODELS))), _SOURCE),
        vanishes("Symmetry, LIME: all coalitions, not a sample", max(map(_all_coalitions, range(_MODELS))), _SOURCE),
        vanishes("Dummy, LIME: affine F, no penalty", max(map(_no_penalty, range(_MODELS))), _SOURCE),
        vanishes("Linearity, GradCAM: without its ReLU", max(map(_no_relu, range(_MODELS))), _SOURCE),
        *_centres(),
        *_interactions(),
    ]


def _slopes(seed: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng([seed, 8]).standard_normal(N_FEATURES))


def _affine(seed: int) -> float:
    slopes = _slopes(seed)
    one = case("GRALIS", seed, lambda u: u @ slopes + 1)
    return abs(float(one.attribution().sum()) - one.delta)


def _uniform(seed: int) -> float:
    """Multilinear, and the same for features 0 and 1 in v though their x differ."""
    c = _slopes(seed)

    def shape(u: Tensor) -> Tensor:
        both, either = u[:, 0] * u[:, 1], u[:, 0] + u[:, 1]
        return c[0] * both + c[1] * either * u[:, 2] + c[2] * both * u[:, 3] + c[3] * either

    one = case("GRALIS", seed, shape)
    phi = canonical.gralis(one.function, one.x, kernel=Uniform(), n_nodes=4).attribution()
    return float(abs(phi[0] - phi[1]))


def _all_coalitions(seed: int) -> float:
    one = case("LIME", seed, exchangeable(seed), alike=True)
    phi = canonical.lime(one.function, one.x).attribution()
    return float(abs(phi[0] - phi[1]))


def _no_penalty(seed: int) -> float:
    slopes = _slopes(seed)
    slopes[2] = 0
    one = case("LIME", seed, lambda u: u @ slopes)
    return float(abs(canonical.lime(one.function, one.x, ridge=0.0).attribution()[2]))


def _no_relu(seed: int) -> float:
    one, two = case("GradCAM", seed), case("GradCAM", seed + 100)

    def both(z: Tensor) -> Tensor:
        return one.function(z) - 2 * two.function(z)

    parts = _lin(Case("GradCAM", both, one.x)), _lin(one), _lin(Case("GradCAM", two.function, one.x))
    return float(np.abs(parts[0] - parts[1] + 2 * parts[2]).max())


def _lin(one: Case) -> Array:
    net = nn.Sequential(nn.Identity(), Over(one.function)).eval()
    return canonical.gradcam_lin(net, one.x, layer=net[0]).attribution()


def _centres() -> list[Row]:
    """What the coalition nearest to x weighs, over what the one nearest to x' weighs."""
    ends = np.array([[True] * N_FEATURES, [False] * N_FEATURES])
    lime = np.exp(-(((1 - np.sqrt(ends.mean(1))) / 0.25) ** 2) / 2)
    ends[0, 0] = False  # the nearest to x that can precede feature 0
    ours = np.exp(Gaussian(0.75).log_weight(ends, np.ones(N_FEATURES)))
    return [
        exceeds("Locality, LIME: weight nearest x / nearest x'", 1.0, float(lime[0] / lime[1]), _SOURCE),
        at_most("Locality, GRALIS: weight nearest x / nearest x'", 1.0, float(ours[0] / ours[1]), _SOURCE),
    ]


def _interactions() -> list[Row]:
    found = explain(lambda z: z[:, 0] * z[:, 1] + z[:, 2], np.ones(3), plan="exhaustive", budget=None)
    return [near("Interactions, SHAP and GRALIS: from the same v(T)", 1.0, found.interactions(2)[0, 1], _SOURCE)]
