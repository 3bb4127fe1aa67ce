"""F(x) - F(x') is always known: without coalition values it is the witness that shows what all nodes miss."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gralis
from honest_models import relu_net, smooth

N = 5
FAR = torch.full((N,), 1e4, dtype=torch.float64)  # tanh moves only on the first ten-thousandth of every ray
NO_VALUES = {"coalition_values": False}


def saturated(z: torch.Tensor) -> torch.Tensor:
    return torch.tanh(3 * z).sum(1)  # phi_i = 1 for every kernel


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"plan": "independent", "budget": 300},
        {"plan": "permutation", "budget": 1000},
        {"quadrature": "midpoint", "n_nodes": 4},
        {"quadrature": "gauss-legendre"},
        {"plan": "exhaustive", "quadrature": "random"},
    ],
    ids=str,
)
def test_nodes_that_miss_everything_are_not_exact(options):
    found = gralis.explain(saturated, FAR, **NO_VALUES, **options)
    assert (np.abs(found.values - 1) <= found.half_widths()).all()
    assert not found.exact
    paths = found.integrated_gradients()
    assert not paths.exact
    assert (np.abs(paths.values - 1) <= paths.half_widths()).all()


def test_drawn_coalitions_that_miss_everything_say_so():
    found = gralis.explain(saturated, FAR, budget=100, **NO_VALUES)
    assert any("F jumps where no gradient was taken" in sentence for sentence in found.doubts)
    assert not found.exact


@pytest.mark.parametrize("make", [smooth, relu_net])
@pytest.mark.parametrize("budget", [300, 1024])
def test_models_without_rare_events_have_no_doubts_and_the_same_values(make, budget):
    x = torch.ones(8, dtype=torch.float64)
    for seed in range(4):
        found = gralis.explain(make(8, seed), x, budget=budget, seed=seed, **NO_VALUES)
        with_values = gralis.explain(make(8, seed), x, budget=budget, seed=seed)
        assert not found.doubts
        assert found.half_widths().max() < 5 * with_values.half_widths().max()
        assert not found.ledger.has_values
        assert found.ledger.value[found.ledger.masks.all(1)] == pytest.approx(found.delta)


def test_the_value_of_all_features_costs_no_forward():
    asked: list[int] = []

    def model(z):
        asked.append(len(z))
        return torch.tanh(z).prod(1)

    found = gralis.explain(model, torch.ones(6, dtype=torch.float64), budget=300, **NO_VALUES)
    assert sum(asked) == found.cost.n_gradients + found.cost.n_forwards
    assert found.cost.n_forwards == 8  # F(x), F(x') and the six forwards that check whether the model is a function


def wakes_up_at_the_end(z: torch.Tensor) -> torch.Tensor:
    return torch.relu(z.sum(1) - 9) * 10


@pytest.mark.parametrize("plan", ["permutation", "independent"])
@pytest.mark.parametrize("budget", [200, 400, 1000])
@pytest.mark.parametrize("model", [wakes_up_at_the_end, lambda z: z.prod(1)], ids=["end", "product"])
def test_plain_sums_of_rays_cover_a_rare_event_or_object(plan, budget, model):
    """A feature whose few rays all miss the event has the value 0 in every replicate, and agrees with itself."""
    x = torch.ones(10, dtype=torch.float64)
    truth = gralis.explain(model, x, plan="exhaustive", budget=None, quadrature="midpoint", n_nodes=60).values
    for seed in range(4):
        found = gralis.explain(model, x, plan=plan, budget=budget, seed=seed)
        assert found.doubts or (np.abs(found.values - truth) <= found.half_widths() + 1e-3).all()


@pytest.mark.parametrize("plan", ["permutation", "independent"])
@pytest.mark.parametrize("make", [smooth, relu_net])
def test_plain_sums_of_rays_raise_no_doubt_on_solid_models(plan, make):
    x = torch.ones(10, dtype=torch.float64)
    doubts = [gralis.explain(make(10, seed), x, plan=plan, budget=1000, seed=seed).doubts for seed in range(8)]
    assert sum(map(bool, doubts)) == 0


def test_a_null_feature_alone_is_no_reason_for_doubt():
    x = torch.ones(6, dtype=torch.float64)
    for plan in ("permutation", "independent"):
        found = gralis.explain(lambda z: torch.tanh(z[:, :5].sum(1)), x, plan=plan, budget=2000)
        assert not found.doubts
        assert found.values[5] == 0


def test_every_ray_of_fixed_nodes_is_charged_with_what_the_ray_of_all_features_misses():
    """All gradients vanish, so c(F) = -(F(x) - F(x')), and the shares of the rays of a feature sum to one."""
    found = gralis.explain(saturated, FAR, quadrature="midpoint", n_nodes=4, **NO_VALUES)
    assert found.half_widths() == pytest.approx(np.full(N, abs(found.delta)))
