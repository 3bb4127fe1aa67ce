"""Where F moves along a few rays, by forwards alone: F at a dozen knots, then bisection where it moves most.

Gradients at random nodes miss a jump or an end at which F is steep; values never do. With m_c the share of the total
variation of F that lies in cell c of a ray, averaged over the rays, the density is

    h(a) = FLOOR + (1 - FLOOR) m_c / width_c     for a in cell c.

It is used only if it helps on rays that did not teach it: the density that the other rays give must lower the mean
squared weighted slope of a ray, sum_c (dF_c)^2 / (width_c h_c), clearly below that of the uniform density.
"""

from __future__ import annotations

import numpy as np

from gralis.arrays import Array, Masks
from gralis.plans.plan import PlanningTask
from gralis.rays.quadrature import Density

__all__ = ["WALK_FORWARDS", "walked_density"]

_KNOTS = np.array([0.0, 0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0])
_MORE_RAYS, _CUTS = 3, 10  # if the first ray is steep
_STEEP = 4.0  # times the mean slope of the ray
_FLOOR = 0.25
_HELPS = 0.6  # of the uniform density's cost
_PLACE = 10**6  # among the child seeds of a plan; replicates have the numbers from 0
#: The most forwards that a walk takes for one input.
WALK_FORWARDS = (len(_KNOTS) - 1 + _CUTS) * (1 + _MORE_RAYS)


def walked_density(task: PlanningTask) -> Density | None:
    """The node density that the values of F along a few rays suggest; None if F is not steep anywhere.

    Parameters
    ----------
    task : PlanningTask
        Its `along` evaluates F on rays. Nothing is evaluated without it, or if discrete features jump half-way.

    Returns
    -------
    Density or None
    """
    if task.along is None or task.halves:
        return None
    everyone = np.ones((1, task.n_features), dtype=bool)
    start, knots = int(np.argmax(task.baseline_weights)), _KNOTS
    values = _values(task, everyone, start, knots)
    if not _is_steep(_moves(values), knots):
        return None
    drawn, _ = task.laws[start].propose(task.rng(_PLACE), _MORE_RAYS, 2 if task.has_census else 1)
    others = np.unique(drawn[~drawn.all(1)], axis=0)  # a ray that occurs twice would confirm itself
    rays = np.concatenate([everyone, others])
    if len(others):  # two features have no other coalition
        values = np.concatenate([values, _values(task, others, start, knots)], axis=1)
    for _ in range(_CUTS):
        cell = int((_moves(values) ** 2 / np.diff(knots)).sum(0).argmax())
        middle = (knots[cell] + knots[cell + 1]) / 2
        at_middle = _values(task, rays, start, np.array([middle]))
        values = np.insert(values, [cell + 1], at_middle, axis=2)
        knots = np.insert(knots, cell + 1, middle)
    moves = _moves(values)
    moves = moves[moves.any(1)]
    if not _helps(moves, knots):
        return None
    heights = _heights(moves.mean(0), knots)
    at_knots = (np.append(heights, heights[-1]) + np.insert(heights, 0, heights[0])) / 2
    return Density(knots, at_knots)


def _values(task: PlanningTask, masks: Masks, baseline: int, nodes: Array) -> Array:
    """F - F(x') at the nodes, (n_questions, n_rays, n_nodes); zero at node 0 without a forward."""
    assert task.along is not None
    inner = nodes > 0
    found = task.along(masks, baseline, nodes[inner])
    values = np.zeros((*found.shape[:2], len(nodes)))
    values[:, :, inner] = found
    return values


def _moves(values: Array) -> Array:
    """The share of each cell in the total variation of F, a row for every ray and question; zero if F does not move."""
    steps = np.abs(np.diff(values, axis=2)).reshape(-1, values.shape[2] - 1)
    total = steps.sum(1, keepdims=True)
    return np.asarray(np.divide(steps, total, out=np.zeros_like(steps), where=total > 0))


def _is_steep(moves: Array, knots: Array) -> bool:
    """Whether F moves much faster in some cell than on the whole ray."""
    return bool((moves / np.diff(knots)).max() > _STEEP)


def _heights(mean_moves: Array, knots: Array) -> Array:
    """h in every cell, from the mean over some rays of the moves in the cell."""
    return np.asarray(_FLOOR + (1 - _FLOOR) * mean_moves / np.diff(knots))


def _helps(moves: Array, knots: Array) -> bool:
    """Whether the density of the other rays lowers the cost of each ray, on the average; a single ray is its own."""
    others = (moves.sum(0) - moves) / (len(moves) - 1) if len(moves) > 1 else moves
    cost = moves**2 / np.diff(knots)
    return bool((cost / _heights(others, knots)).sum() < _HELPS * cost.sum())
