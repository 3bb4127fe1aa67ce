"""Values never miss a jump: forwards along a few rays show where nodes belong."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gralis
from gralis.kernels import Gaussian
from gralis.laws import all_masks
from gralis.plans import PlanningTask
from gralis.plans.ray_walk import WALK_FORWARDS, walked_density

N = 6


def task(along, **changes):
    """A task whose F on the ray of T at a is along(mask of T, a)."""
    asked = []

    def evaluate(masks, baseline, nodes):
        asked.append(len(masks) * len(nodes))
        return np.array([[[along(mask, float(a)) for a in nodes] for mask in masks]])

    settings = {"budget": 500, "seed": 3, "quadrature": None, "n_nodes": None, "replicates": None, "with_values": True}
    given = PlanningTask(Gaussian(0.75), np.ones((1, N)), np.ones(1), **settings, along=evaluate, **changes)
    return given, asked


def test_the_density_follows_the_square_root_to_its_end():
    given, asked = task(lambda mask, a: np.sqrt(mask.sum() * a))
    density = walked_density(given)
    a = np.array([1e-3, 1e-2, 0.1, 0.5, 0.9])
    slope = 0.25 + 0.75 / (2 * np.sqrt(a))  # the floor, and the share of |dF/da| in the total variation
    np.testing.assert_allclose(density(a), slope, rtol=0.25)
    assert density(np.zeros(1))[0] > 20
    assert sum(asked) <= WALK_FORWARDS


def test_a_jump_at_one_place_is_found_within_a_thousandth():
    given, _ = task(lambda mask, a: float(a > 0.4321))
    density = walked_density(given)
    inside = density.cumulative(np.array([0.4311, 0.4331]))
    assert inside[1] - inside[0] > 0.5


def test_jumps_at_other_places_on_every_ray_teach_no_density():
    """What one ray shows must help on another."""
    order = np.random.default_rng(0).permutation(63)
    places = {mask.tobytes(): 0.1 + 0.85 * place / 63 for mask, place in zip(all_masks(N), order, strict=True)}
    assert walked_density(task(lambda mask, a: float(a > places[mask.tobytes()]))[0]) is None


@pytest.mark.parametrize("smooth", [lambda mask, a: a, lambda mask, a: np.tanh(2 * a), lambda mask, a: 0.0])
def test_smooth_rays_cost_eleven_forwards_and_change_nothing(smooth):
    given, asked = task(smooth)
    assert walked_density(given) is None
    assert sum(asked) == 11  # one of them is F(x), which is known


def test_nothing_is_evaluated_without_values_or_beside_discrete_features():
    given, asked = task(lambda mask, a: np.sqrt(a), halves=True)
    assert walked_density(given) is None
    assert not asked
    rows = []

    def model(z):
        rows.append((len(z), z.requires_grad))
        return torch.sqrt(z.mean(1) + 1e-12)

    gralis.explain(model, torch.ones(10, dtype=torch.float64), budget=200, coalition_values=False, batch_size=500)
    assert sum(count for count, gradient in rows if not gradient) == 2 + 6  # F(x), F(x') and the six of the probe


def test_nodes_near_the_end_halve_the_error_of_a_square_root():
    weights = torch.tensor(np.random.default_rng(0).uniform(0.5, 1.5, 10))

    def model(z):
        return torch.sqrt(z @ weights + 1e-9)

    x = torch.ones(10, dtype=torch.float64)
    found = [gralis.explain(model, x, budget=300, seed=seed) for seed in range(8)]
    truth = np.mean([gralis.explain(model, x, budget=8000, seed=seed).values for seed in range(2)], axis=0)
    assert found[0].plan["density_heights"][0] > 20
    errors = [np.abs(e.values - truth).max() / truth.max() for e in found]
    assert np.median(errors) < 0.017  # 0.022 with nodes from gradients alone


def test_two_features_have_one_ray_to_walk():
    """A step that is narrower than the nodes of the first look: the only other coalition is that of all features."""
    e = gralis.explain(lambda z: torch.sigmoid(300 * (z.mean(1) - 0.62)), torch.ones(2, dtype=torch.float64))
    assert e.plan["quadrature"] == "random"
    assert max(e.plan["density_heights"]) > 20
    assert (np.abs(e.values - e.values.mean()) <= e.half_widths()).all()  # both features are alike
