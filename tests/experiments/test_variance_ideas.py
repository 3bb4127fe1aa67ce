"""The variances of ways to draw nodes from recorded rays, on rays whose variances have closed forms."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from gralis.rays.quadrature import UNIFORM

FOLDER = Path(__file__).parents[2] / "benchmarks"
N_NODES = 64


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    yield __import__("variance_ideas"), __import__("variance_pool")
    for name in ("variance_ideas", "variance_densities", "variance_pool", "variance_parts", "report", "zoo"):
        sys.modules.pop(name, None)


def study(scripts, slope, shares, seed=0):
    """Rays on which feature i has the slope shares_i(ray) slope(a), with uniform nodes and W = 1."""
    ideas, pools = scripts
    n_rays, n = shares.shape
    nodes = np.tile((np.arange(N_NODES) + 0.5) / N_NODES, (n_rays, 1))
    rows = slope(nodes)[..., None] * shares[:, None]
    total = rows.sum(2)
    moved = np.cumsum(total, axis=1) / N_NODES - total / (2 * N_NODES)
    weights, values = np.full(nodes.shape, 1 / N_NODES), total.mean(1)
    pool = pools.Pool("known", np.ones((n_rays, n), bool), np.ones((n_rays, n)), nodes, weights, rows, moved, values)
    made = ideas.Study(pool, seed)
    made.density, made.chance = UNIFORM, weights
    return made


def test_stratified_nodes_have_the_variance_of_their_cells(scripts):
    one = study(scripts, lambda a: a, np.ones((6, 1)))
    for k in (1, 2, 4):
        assert one.node_part(one.cells(k), one.nothing) == pytest.approx(1 / (12 * k**3), rel=0.01)
    assert one.cells(3).sum((1, 2)) == pytest.approx(np.ones(6))
    assert one.rays_at_cost(2, 2) == pytest.approx(one.rays_at_cost() / 2)
    cancels = study(scripts, lambda a: a, np.tile([1.0, -1.0], (6, 1)))
    assert cancels.node_part(cancels.cells(1), cancels.checksum) == pytest.approx(2 / 12, rel=0.01)
    assert cancels.mirrored() < 1e-3  # a straight line has no variance at u and 1 - u


def test_any_density_has_the_mean_of_the_ray(scripts):
    one = study(scripts, np.exp, np.ones((4, 2)))
    chance = one.chance * (0.2 + one.pool.nodes)
    chance /= chance.sum(1, keepdims=True)
    for k in (1, 3):
        mass = one.cells(k, chance)
        inside, of_cell = mass / mass.sum(2, keepdims=True), mass.sum(2, keepdims=True)
        mean = (inside * of_cell * (one.pool.weights / mass.sum(1))[:, None]) @ one.rows
        assert mean.sum(1) == pytest.approx((one.pool.weights[..., None] * one.rows).sum(1))
        rest, again = one.noise(mass)
        assert again == pytest.approx(inside)
        assert (inside[..., None] * rest).sum(2) == pytest.approx(0, abs=1e-12)


def test_a_checksum_removes_what_follows_it_and_nothing_of_a_feature_that_stands_still(scripts):
    rng = np.random.default_rng(0)
    fixed = study(scripts, lambda a: np.sin(9 * a), np.tile([1.0, 2.0, 0.0], (30, 1)))
    noise, inside = fixed.noise(fixed.cells())
    for controls in (fixed.checksum, fixed.covariance, fixed.by_parts, fixed.segments):
        explained = fixed._explained(noise, inside, controls(noise, inside))
        assert not explained[..., 2].any()
        assert fixed.left(noise - explained, inside) < 1e-4 * fixed.left(noise, inside)
    sizes = study(scripts, lambda a: np.sin(9 * a), np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]] * 10))
    sizes.masks[1::2, 1] = False  # the still feature makes the sizes 3 and 2, which are not in proportion to the shares
    assert sizes.node_part(sizes.cells(), sizes.checksum) < 1e-4 * sizes.node_part(sizes.cells(), sizes.nothing)
    free = study(scripts, lambda a: np.sin(9 * a), rng.normal(size=(30, 3)))
    left = free.node_part(free.cells(), free.checksum)
    assert left > 0.3 * free.node_part(free.cells(), free.nothing)
    assert free.left(*free.own_shares()) < 1e-12 < left  # every ray has shares of its own


def test_the_best_number_and_density_are_at_least_as_good(scripts):
    one = study(scripts, lambda a: (a < 0.1) * 1.0 - 0.1, np.linspace(1, 3, 8)[:, None] * np.ones((8, 1)))
    each, best = one.moments(one.noise(one.cells())[0])
    assert (best <= each * (1 + 1e-12)).all()
    assert each == pytest.approx(np.linspace(1, 3, 8) ** 2 * 0.09, rel=0.1)


def test_a_recording_is_read_back(scripts, tmp_path, monkeypatch):
    ideas, pools = scripts
    x, labels = torch.tensor([1.0, 2.0, 3.0, 0.0]), torch.arange(4)
    cell = pools.Cell(lambda z: (z**2).sum(1)[None], x, torch.zeros(4), labels, ("F",))
    pools.record(cell, tmp_path / "torchcrepe.npz", 12, 8)
    (pool,) = pools.load(tmp_path)
    assert pool.values == pytest.approx((pool.masks * x.numpy() ** 2).sum(1))
    present = pool.masks[:, None] * x.numpy() ** 2
    assert pool.rows * pool.masks[:, None] == pytest.approx(2 * pool.nodes[..., None] * present, rel=1e-5)
    assert pool.moved == pytest.approx(pool.nodes**2 * pool.values[:, None], rel=1e-5)
    monkeypatch.setattr(ideas, "PENALTIES", (1.0,))
    found = ideas.ideas(ideas.Study(pool, 0))
    assert all(np.isfinite(error) and error >= 0 for error in found.values())
    assert found["the pilot counts too"] < found["default"]
