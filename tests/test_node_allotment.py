"""Rays with unequal numbers of random nodes: how many each gets, how they are stored, and what error they show."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gralis
from gralis.estimators.checksum_shares import checksum_shares
from gralis.estimators.copies import _contrasts
from gralis.laws import all_masks
from gralis.ledger import Ledger
from gralis.plans.node_allotment import nodes_by_ray
from gralis.rays import RayRequest
from gralis.rays.quadrature import RandomRule
from honest_models import relu_net

COUNTS = np.array([4, 9, 20])
MASKS = np.array([[True, True, False], [False, True, True], [True, True, True]])


def unequal_request(seed: int = 0) -> RayRequest:
    nodes, weights = RandomRule(11).on_rays_apart(np.random.default_rng(seed), COUNTS)
    return RayRequest.of(MASKS, np.zeros(3), 0, nodes, weights)


@pytest.mark.parametrize("n_nodes", [5, 8, 32])
@pytest.mark.parametrize("n_features", [3, 6])
def test_the_nodes_are_where_they_lower_the_error_most(n_nodes: int, n_features: int) -> None:
    """sum (W |T|)^2 / k^3 is convex, so giving one node after the other to where it helps most is optimal."""
    masks = all_masks(n_features)[all_masks(n_features).sum(1) > 1]
    sizes, weight = masks.sum(1), np.random.default_rng(n_features).exponential(size=len(masks))
    counts = nodes_by_ray(weight, sizes, n_nodes)
    least = max(4, n_nodes // 2)
    assert counts.sum() == n_nodes * len(masks)
    assert counts.min() >= least

    def error(k: np.ndarray) -> np.ndarray:
        return (weight * sizes) ** 2 / k**3

    best = np.full(len(masks), float(least))
    while best.sum() < counts.sum():
        best[np.argmax(error(best) - error(best + 1))] += 1
    assert error(counts.astype(float)).sum() <= 1.02 * error(best).sum()
    assert error(best).sum() < 0.8 * error(np.full(len(masks), float(n_nodes))).sum()


def test_few_nodes_or_no_weights_leave_nothing_to_allot() -> None:
    assert nodes_by_ray(np.array([0.1, 0.9]), np.array([2, 3]), 4).tolist() == [4, 4]
    assert nodes_by_ray(np.zeros(2), np.array([2, 3]), 9).tolist() == [9, 9]


def test_a_ray_has_one_node_in_each_of_its_cells_and_nothing_behind_them() -> None:
    nodes, weights = RandomRule(11).on_rays_apart(np.random.default_rng(0), COUNTS)
    assert np.isfinite(nodes).sum(1).tolist() == COUNTS.tolist()
    assert (np.isfinite(nodes) == np.isfinite(weights)).all()
    np.testing.assert_allclose(np.nansum(weights, axis=1), 1.0)
    for row, count in zip(nodes, COUNTS, strict=True):
        assert np.floor(row[:count] * count).tolist() == list(range(count))


def test_a_request_lists_the_points_that_exist_ray_after_ray() -> None:
    request = unequal_request()
    assert request.n_points == COUNTS.sum()
    assert request.ray.tolist() == np.repeat(np.arange(3), COUNTS).tolist()
    for name in ("nodes", "places", "stretch", "weights"):
        assert np.isfinite(request.by_point(name)).all()
    gradient = np.random.default_rng(1).normal(size=(request.n_points, 3))
    ledger = Ledger.record(request, gradient, np.zeros(3))
    assert ledger.nodes_per_ray.tolist() == COUNTS.tolist()
    for ray, count in enumerate(COUNTS):
        mine = gradient[ledger.ray == ray]
        np.testing.assert_allclose(ledger.rays[ray], MASKS[ray] * mine.sum(0) / count)


def test_the_contrasts_of_unequal_rays_sum_to_the_variance() -> None:
    """Noise of size 1 in every cell of weight 1 / k: the variance of ray r is 1 / k_r."""
    rng, found = np.random.default_rng(2), np.zeros(3)
    ledger = Ledger.record(unequal_request(), np.zeros((COUNTS.sum(), 3)), np.zeros(3))
    for _ in range(4000):
        cells = rng.normal(size=(COUNTS.sum(), 1)) / COUNTS[ledger.ray, None]
        rows, ray = _contrasts(ledger, cells)
        found += np.bincount(ray, rows[:, 0] ** 2, 3) / 4000
    np.testing.assert_allclose(found, 1 / COUNTS, rtol=0.06)
    line = np.concatenate([np.arange(count) * 0.3 for count in COUNTS])[:, None]
    np.testing.assert_allclose(_contrasts(ledger, line)[0], 0.0, atol=1e-12)  # no contrast spans two rays


def test_rays_count_alike_in_the_shares_whatever_their_number_of_nodes() -> None:
    rng = np.random.default_rng(3)
    masks = np.array([[True, True, False], [False, True, True], [True, True, True], [True, False, True]])
    ray = np.repeat(np.arange(4), 5)
    noise = rng.normal(size=(20, 3)) * masks[ray]
    often = np.concatenate([noise] + [noise[ray == 2] / 3] * 9)  # ten times the rows, twice the variance
    plain = checksum_shares(masks, noise, ray)
    found = checksum_shares(masks, often, np.concatenate([ray, np.full(45, 2)]))
    np.testing.assert_allclose(found.shares, plain.shares, atol=1e-9)


def test_the_default_gives_heavy_rays_more_nodes_and_spends_the_same() -> None:
    x = torch.ones(6, dtype=torch.float64)
    e = gralis.explain(relu_net(6, 0), x, progress=False)
    drawn = e.ledger.replicate >= 0
    counts, full = e.ledger.nodes_per_ray[drawn], e.ledger.masks[drawn].all(1)
    assert e.plan["n_nodes"] == round(counts.mean())
    assert counts[full] == counts.max()
    assert counts.max() > 1.5 * counts.min()
    assert e.cost.n_gradients <= 1024
    asked = gralis.explain(relu_net(6, 0), x, plan="exhaustive", quadrature="random", n_nodes=8, budget=None)
    assert set(asked.ledger.nodes_per_ray[asked.ledger.replicate >= 0]) == {8}  # as many on every ray
