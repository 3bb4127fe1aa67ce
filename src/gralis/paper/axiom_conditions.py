"""The entries of the axiom table that hold in part, measured under the condition that makes them hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from gralis import canonical
from gralis.api.explain import explain
from gralis.arrays import Array
from gralis.baselines import sample
from gralis.kernels import Gaussian, Uniform
from gralis.paper.axiom_cases import N_FEATURES, AxiomCase, axiom_case, exchangeable
from gralis.paper.claim_row import ClaimRow, at_most, exceeds, near, vanishes
from gralis.paper.networks import FunctionModule, network, point
from gralis.paper.rational import subsets

_MODELS = 8
_SOURCE = "Tab. axioms, notes"


def rows() -> list[ClaimRow]:
    return [
        vanishes("Efficiency, GRALIS: affine F", max(map(_affine, range(_MODELS))), _SOURCE),
        vanishes("Symmetry of v, GRALIS: multilinear F, uniform kernel", max(map(_uniform, range(_MODELS))), _SOURCE),
        vanishes("Symmetry, LIME: all coalitions, not a sample", max(map(_all_coalitions, range(_MODELS))), _SOURCE),
        vanishes("Dummy, LIME: affine F, no penalty", max(map(_no_penalty, range(_MODELS))), _SOURCE),
        vanishes("Linearity, GradCAM: without its ReLU", max(map(_no_relu, range(_MODELS))), _SOURCE),
        *_centres(),
        *_interactions(),
        vanishes("Gap 1, GRALIS: phi over a sample of baselines is their mean", max(map(_averaged, range(3))), _SOURCE),
        vanishes(
            "Gap 3, GRALIS: joint-path part of the residual = sum of m(T) (1 - 1/|T|)",
            max(map(_missing, range(3))),
            _SOURCE,
        ),
    ]


def _slopes(seed: int) -> Tensor:
    return torch.from_numpy(np.random.default_rng([seed, 8]).standard_normal(N_FEATURES))


def _affine(seed: int) -> float:
    slopes = _slopes(seed)
    example = axiom_case("GRALIS", seed, lambda u: u @ slopes + 1)
    return abs(float(example.attribution().sum()) - example.delta)


def _uniform(seed: int) -> float:
    """F is multilinear, and v is symmetric in features 0 and 1 although their x differ."""
    c = _slopes(seed)

    def shape(u: Tensor) -> Tensor:
        both, either = u[:, 0] * u[:, 1], u[:, 0] + u[:, 1]
        return c[0] * both + c[1] * either * u[:, 2] + c[2] * both * u[:, 3] + c[3] * either

    example = axiom_case("GRALIS", seed, shape)
    phi = canonical.gralis(example.function, example.x, kernel=Uniform(), n_nodes=4).attribution()
    return float(abs(phi[0] - phi[1]))


def _all_coalitions(seed: int) -> float:
    example = axiom_case("LIME", seed, exchangeable(seed), same_x=True)
    phi = canonical.lime(example.function, example.x).attribution()
    return float(abs(phi[0] - phi[1]))


def _no_penalty(seed: int) -> float:
    slopes = _slopes(seed)
    slopes[2] = 0
    example = axiom_case("LIME", seed, lambda u: u @ slopes)
    return float(abs(canonical.lime(example.function, example.x, ridge=0.0).attribution()[2]))


def _no_relu(seed: int) -> float:
    first, second = axiom_case("GradCAM", seed), axiom_case("GradCAM", seed + 100)

    def both(z: Tensor) -> Tensor:
        return first.function(z) - 2 * second.function(z)

    of_both, of_second = (_without_relu(replace(first, function=f)) for f in (both, second.function))
    return float(np.abs(of_both - _without_relu(first) + 2 * of_second).max())


def _without_relu(example: AxiomCase) -> Array:
    net = nn.Sequential(nn.Identity(), FunctionModule(example.function)).eval()
    return canonical.gradcam_lin(net, example.x, layer=net[0]).attribution()


def _centres() -> list[ClaimRow]:
    """The weight of the coalition nearest to x, divided by the weight of the coalition nearest to x'."""
    ends = np.array([[True] * N_FEATURES, [False] * N_FEATURES])
    lime = np.exp(-(((1 - np.sqrt(ends.mean(1))) / 0.25) ** 2) / 2)
    ends[0, 0] = False  # the coalition nearest to x that can precede feature 0
    ours = np.exp(Gaussian(0.75).log_weight(ends, np.ones(N_FEATURES)))
    return [
        exceeds("Locality, LIME: weight nearest x / nearest x'", 1.0, float(lime[0] / lime[1]), _SOURCE),
        at_most("Locality, GRALIS: weight nearest x / nearest x'", 1.0, float(ours[0] / ours[1]), _SOURCE),
    ]


def _interactions() -> list[ClaimRow]:
    explanation = explain(lambda z: z[:, 0] * z[:, 1] + z[:, 2], np.ones(3), plan="exhaustive", budget=None)
    return [near("Interactions, SHAP and GRALIS: from the same v(T)", 1.0, explanation.interactions(2)[0, 1], _SOURCE)]


def _averaged(seed: int) -> float:
    """Five baselines in one explanation against the mean of the five triples."""
    f, x = network(seed, N_FEATURES), point(seed, N_FEATURES)
    rows = np.random.default_rng([seed, 11]).standard_normal((5, N_FEATURES))
    together = explain(f, x, baseline=sample(rows), plan="exhaustive", budget=None, n_nodes=16).values
    apart = [canonical.gralis(f, x, baseline=row, n_nodes=16).attribution() for row in rows]
    return float(np.abs(together - np.mean(apart, axis=0)).max())


def _missing(seed: int) -> float:
    """The residual's part for the joint path against the Moebius coefficients of v, summed set by set."""
    f, x = network(seed, N_FEATURES), point(seed, N_FEATURES)
    sets = subsets(range(N_FEATURES))
    at = {t: float(f(torch.from_numpy(x * np.isin(np.arange(N_FEATURES), list(t)))[None])[0]) for t in sets}
    m = {t: sum((-1) ** (len(t) - len(s)) * at[s] for s in sets if s <= t) for t in sets if t}
    lost = float(sum(value * (1 - 1 / len(t)) for t, value in m.items()))
    return abs(float(explain(f, x, plan="exhaustive", budget=None).residual.path.value) - lost)
