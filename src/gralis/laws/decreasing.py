"""Exact draws from a decreasing density, by rejection below a step function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gralis.arrays import Array

__all__ = ["Steps", "draw_decreasing"]


@dataclass(frozen=True, eq=False)
class Steps:
    """A step function above a decreasing density: in every cell its value at the left edge, in logarithms."""

    left: Array
    width: Array
    log_height: Array
    edges: Array  # the mass to the left of every cell, and that of all cells
    mass: Array

    @classmethod
    def of(cls, cells: Array, at_left: Array) -> Steps:
        width = np.diff(cells)
        edges = np.concatenate([[0.0], np.cumsum(np.exp(at_left - at_left.max()) * width)])
        return cls(cells[:-1], width, at_left, edges, np.diff(edges))


def draw_decreasing(
    rng: np.random.Generator, log_f: Callable[[Array], Array], steps: Steps, level: Array, tilt: float
) -> Array:
    """Exact draws of u near these quantile levels, where s = u^(1 - tilt) has a density proportional to a decreasing f.

    The steps bound f. A proposal that is rejected is drawn again at a random level: over a stratified set of levels the
    counts then have exactly the right expectations.
    """
    power = 1 / (1 - tilt)
    result, todo, level = np.empty(len(level)), np.arange(len(level)), level.copy()
    while len(todo):
        target = level[todo] * steps.edges[-1]
        cell = (steps.edges.searchsorted(target, side="right") - 1).clip(0, len(steps.width) - 1)
        s = steps.left[cell] + (target - steps.edges[cell]) / steps.mass[cell] * steps.width[cell]
        accept = np.log(rng.random(len(todo))) <= log_f(s**power) - steps.log_height[cell]
        result[todo[accept]] = s[accept] ** power
        todo = todo[~accept]
        level[todo] = rng.random(len(todo))
    return result
