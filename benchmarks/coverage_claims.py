"""How often the other claims of a result hold: audit, compare, ranks, residual, other explainers, other plans, scales.

python benchmarks/coverage_claims.py [--quick] [--runs 200] [--only TEXT ...] [--out FILE] [--against FILE]

audit       of the true values: no feature is flagged
compare     of a float32 network with itself, and with its hidden units in another order: nothing changed
ranks       of a feature and its duplicate: neither is above the other
residual    each part by itself; the numerical part is truly 0
shapley     Shapley values and pair interactions from the default plan, integrated gradients from the ledger
plan        "endpoint", "permutation" and "values"
multiscale  the levels of single features and of pairs, combined
"""

from __future__ import annotations

import copy
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from coverage_cells import KINK, LEVEL, Claim, Outcome, command, explained
from coverage_models import model
from coverage_truth import Array, Truth, law, rays
from torch import nn

import gralis

N_MODELS = 4
FEW, MANY, BUDGET = 5, 10, 300  # features, and gradients for many of them
SAMPLED = {"budget": BUDGET}


def audit(kind: str, n: int, settings: dict[str, Any], seed: int) -> Outcome:
    truth = model(kind, n, seed % N_MODELS)
    e = explained(truth, seed, **settings)
    return Outcome(not e.audit(truth.phi(), LEVEL).disagree.any(), bool(getattr(e, "doubts", ())))


def audit_affine(n: int, seed: int) -> Outcome:
    """An affine model in float32, whose phi is slope times input."""
    net = float32_network(n, seed, depth=1)
    x = torch.from_numpy(np.random.default_rng(seed).normal(size=n)).float()
    e = gralis.explain(net, x, seed=seed, progress=False)
    phi = net[0].weight.detach().double().numpy()[0] * x.double().numpy()
    return Outcome(not e.audit(phi, LEVEL).disagree.any(), bool(getattr(e, "doubts", ())))


def large_offset(seed: int) -> Outcome:
    """1e6 + a signal of size 1, in float32."""
    slopes = torch.from_numpy(np.random.default_rng(seed).normal(size=FEW)).float()
    x = torch.ones(FEW)
    e = gralis.explain(lambda z: 1e6 + z @ slopes, x, seed=seed, progress=False)
    return Outcome.of(e.values, e.half_widths(), slopes.double().numpy(), e)


def float32_network(n: int, seed: int, depth: int = 3, width: int = 64) -> nn.Sequential:
    """A network of `depth` layers with ReLU between them."""
    generator = torch.Generator().manual_seed(seed)
    sizes = [n, *[width] * (depth - 1), 1]
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layer = nn.Linear(before, after)
        layer.weight.data = torch.randn(after, before, generator=generator) * (2 / before) ** 0.5
        layer.bias.data = 0.1 * torch.randn(after, generator=generator)
        layers += [layer, nn.ReLU()]
    return nn.Sequential(*layers[:-1]).eval()


def permuted(net: nn.Sequential, seed: int) -> nn.Sequential:
    """The same function: the hidden units of every layer in another order."""
    again, generator = copy.deepcopy(net), torch.Generator().manual_seed(seed)
    linear = [layer for layer in again if isinstance(layer, nn.Linear)]
    for layer, following in pairwise(linear):
        order = torch.randperm(layer.out_features, generator=generator)
        layer.weight.data, layer.bias.data = layer.weight.data[order], layer.bias.data[order]
        following.weight.data = following.weight.data[:, order]
    return again


def compare(n: int, settings: dict[str, Any], reorder: bool, seed: int) -> Outcome:
    net, x = float32_network(n, seed), torch.ones(n)
    other = permuted(net, seed) if reorder else net
    found = gralis.compare(net, other, x, seed=seed, progress=False, **settings)
    return Outcome(not found.changed(LEVEL).any(), bool(getattr(found.change, "doubts", ())))


def ranks(n: int, settings: dict[str, Any], seed: int) -> Outcome:
    """The first two features are duplicates."""
    net, x = float32_network(n, seed), torch.ones(n)
    net[0].weight.data[:, 1] = net[0].weight.data[:, 0]
    e = gralis.explain(net, x, seed=seed, progress=False, **settings)
    above = e.ranks(LEVEL).above
    return Outcome(not (above[0, 1] or above[1, 0]), bool(getattr(e, "doubts", ())))


def residual(kind: str, n: int, settings: dict[str, Any], seed: int) -> dict[str, Outcome]:
    truth = model(kind, n, seed % N_MODELS)
    e = explained(truth, seed, **settings)
    found = {}
    for part, wanted in truth.residual.items():
        term = getattr(e.residual, part)
        off, scale = abs(term.value - wanted), float(np.abs(truth.phi()).max())
        held = off <= term.half_width + KINK * scale  # the sums are often known exactly, and kinks are in the truth
        found[part] = Outcome(bool(held), bool(getattr(e, "doubts", ())), term.half_width / scale, off / scale)
    return found


def explainers(kind: str, n: int, settings: dict[str, Any], seed: int) -> dict[str, Outcome]:
    """Shapley values, pair interactions and integrated gradients from one ledger."""
    truth = model(kind, n, seed % N_MODELS)
    e = explained(truth, seed, **settings)
    shapley, pairs, path = e.shapley(), e.interactions(2), e.integrated_gradients()
    place = [pairs.coalitions.index(pair) for pair in truth.pairs]
    return {
        "shapley": _covers(shapley, truth.marginal(), e),
        "pairs": Outcome.of(
            np.asarray(pairs.estimate.values)[place],
            np.asarray(pairs.half_widths(LEVEL))[place],
            np.array(list(truth.pairs.values())),
            e,
            size=float(np.abs(truth.values).max()),
        ),
        "integrated gradients": _covers(path, truth.integrated_gradients, e),
    }


def plan(name: str, kind: str, n: int, budget: int, seed: int) -> Outcome:
    truth = model(kind, n, seed % N_MODELS)
    wanted = {"endpoint": lambda: truth.marginal(0.75), "permutation": truth.phi, "values": truth.marginal}[name]()
    e = explained(truth, seed, plan=name, budget=budget)
    return _covers(e, wanted, e)


@lru_cache
def two_levels(kind: str, seed: int) -> tuple[Truth, Array]:
    """A model of eight coordinates, and phi of single coordinates and of pairs of neighbours, (2, 8)."""
    truth = model(kind, 8, seed)
    pairs = Truth(lambda z: truth.function(z.repeat_interleave(2, 1)), np.ones(4))
    of_pairs = (law(pairs.masks, np.full(4, 2.0)) * rays(pairs.function, pairs.masks * pairs.x)).sum(0)
    return truth, np.stack([truth.phi(), of_pairs.repeat(2) / 2])


def multiscale(kind: str, per_feature: bool, seed: int) -> Outcome:
    """The intervals are about the combination of the levels with the weights that were chosen."""
    truth, levels = two_levels(kind, seed % N_MODELS)
    features = [gralis.features.groups(np.arange(8) // size) for size in (1, 2)]
    found = gralis.multiscale(
        truth.function, truth.x, features, per_feature=per_feature, budget=200, seed=seed, progress=False
    )
    wanted = (np.asarray(found.weights).reshape(2, -1) * levels).sum(0)
    doubts = any(getattr(level.explanation, "doubts", ()) for level in found.levels)
    covers = Outcome.of(found.values, found.half_widths(LEVEL), wanted, found)
    return Outcome(covers.held, doubts, covers.width, covers.error)


def _covers(result: Any, truth: Array, explanation: gralis.Explanation) -> Outcome:
    return Outcome.of(np.asarray(result.values), np.asarray(result.half_widths(LEVEL)), truth, explanation)


def claims() -> dict[str, Claim]:
    found: dict[str, Claim] = {}
    for kind in ("relu", "steep", "tanh"):
        found[f"audit, {kind}, n = {FEW}"] = partial(audit, kind, FEW, {})
    found[f"audit, relu, n = {MANY}, {BUDGET}"] = partial(audit, "relu", MANY, SAMPLED)
    found["audit, affine in float32, n = 8"] = partial(audit_affine, 8)
    found["offset of 1e6 in float32"] = large_offset
    for n, settings in ((FEW, {}), (12, SAMPLED)):
        found[f"compare, same network, n = {n}"] = partial(compare, n, settings, False)
        found[f"compare, units reordered, n = {n}"] = partial(compare, n, settings, True)
        found[f"ranks of duplicates, n = {n}"] = partial(ranks, n, settings)
    for n, settings, kinds in ((FEW, {}, ("relu", "steep")), (MANY, SAMPLED, ("relu", "sigmoid 50"))):
        for kind in kinds:
            found[f"residual, {kind}, n = {n}"] = partial(residual, kind, n, settings)
    many = ("tanh", "relu", "oscillating", "sigmoid 50", "sigmoid 300")
    for n, settings, kinds in ((FEW, {}, ("relu", "steep")), (MANY, SAMPLED, many)):
        for kind in kinds:
            found[f"ledger, {kind}, n = {n}"] = partial(explainers, kind, n, settings)
    for name, budget in (("endpoint", 300), ("endpoint", 1000), ("permutation", 2000)):
        for kind in ("relu", "tanh", "sigmoid 50"):
            found[f"plan {name}, {kind}, {budget}"] = partial(plan, name, kind, MANY, budget)
    for kind in ("relu", "tanh", "sigmoid 50", "sigmoid 300", "product"):
        for budget in (100, 300):
            found[f"plan values, {kind}, {budget}"] = partial(plan, "values", kind, MANY, budget)
    for kind in ("relu", "tanh"):
        found[f"multiscale, {kind}"] = partial(multiscale, kind, False)
        found[f"multiscale per feature, {kind}"] = partial(multiscale, kind, True)
    return found


if __name__ == "__main__":
    command(__doc__.splitlines()[0], "coverage_claims", claims(), 200)
