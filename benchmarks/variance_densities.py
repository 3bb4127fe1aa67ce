"""Node densities for recorded rays: the one that the default plan learns, and one for each ray from F along it."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray
from variance_pool import Pool

from gralis.plans.node_density import PILOT_DENSITY, node_density
from gralis.plans.ray_walk import walked_density
from gralis.rays.quadrature import Density

Array = NDArray[np.float64]

FLOOR = 0.5  # of the density from the steps of F


def learnt_density(pool: Pool, rng: np.random.Generator, n_points: int) -> Density:
    """What the library learns from one node on each of n_points rays, and from F along four of them."""
    rays = rng.choice(len(pool.masks), n_points, replace=n_points > len(pool.masks))
    chance = pool.weights * PILOT_DENSITY(pool.nodes)
    chance /= chance.sum(1, keepdims=True)
    node = np.array([rng.choice(chance.shape[1], p=chance[ray]) for ray in rays])
    pilot = SimpleNamespace(
        gradient=pool.rows[rays, node],
        masks=pool.masks,
        ray=rays,
        sizes=pool.masks.sum(1),
        node=pool.nodes[rays, node],
        weight=pool.weights[rays, node] / chance[rays, node],
    )
    return node_density([pilot], walked_density(_walk(pool, rng)))  # type: ignore[list-item,arg-type]


def _walk(pool: Pool, rng: np.random.Generator) -> SimpleNamespace:
    """A planning task whose forwards are read off recorded rays; the largest stands for the ray of all features."""
    largest = int(pool.masks.sum(1).argmax())
    row_of = {mask.tobytes(): row for row, mask in enumerate(pool.masks)}

    def along(masks: NDArray[np.bool_], baseline: int, nodes: Array) -> Array:
        found = [value_at(pool, row_of.get(mask.tobytes(), largest), nodes) for mask in masks]
        return np.stack(found)[None]

    def propose(rng: np.random.Generator, n_rays: int, least: int) -> tuple[NDArray[np.bool_], Array]:
        return pool.masks[rng.choice(len(pool.masks), n_rays, replace=False)], np.zeros(n_rays)

    return SimpleNamespace(
        n_features=pool.masks.shape[1],
        baseline_weights=np.ones(1),
        halves=False,
        has_census=True,
        along=along,
        laws=[SimpleNamespace(propose=propose)],
        rng=lambda *path: rng,
    )


def value_at(pool: Pool, ray: int, nodes: Array) -> Array:
    """F - F(x') on a recorded ray, linear between its nodes."""
    knots = np.concatenate([[0.0], pool.nodes[ray], [1.0]])
    return np.interp(nodes, knots, np.concatenate([[0.0], pool.moved[ray], [pool.values[ray]]]))


def by_steps(pool: Pool, density: Density, chance: Array, n_segments: int) -> Array:
    """The chance of every node if each ray draws equally probable segments of the density in proportion to |dF| too."""
    knots = density.quantile(np.arange(n_segments + 1) / n_segments)
    values = np.stack([value_at(pool, ray, knots) for ray in range(len(pool.nodes))])
    steps = np.abs(np.diff(values, axis=1))
    heights = FLOOR + (1 - FLOOR) * steps / np.maximum(steps.mean(1, keepdims=True), 1e-300)
    segment = np.minimum((density.cumulative(pool.nodes) * n_segments).astype(int), n_segments - 1)
    drawn = chance * np.take_along_axis(heights, segment, 1)
    return np.asarray(drawn / drawn.sum(1, keepdims=True))
