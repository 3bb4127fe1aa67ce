"""The outline of a region as an SVG path, through the middles of the pixel edges that bound it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["outline"]

_RIGHT, _DOWN, _LEFT, _UP = (0, 1), (1, 0), (0, -1), (-1, 0)


def outline(inside: NDArray[np.bool_]) -> str:
    """Closed loops around a set of pixels. Holes run the other way round, so that both fill rules leave them open.

    >>> outline(np.array([[True, True]]))
    'M0 .5L.5 0L1.5 0L2 .5L1.5 1L.5 1Z'
    """
    after = _edges(np.pad(inside, 1))
    loops = []
    while after:
        (start, step), _ = first = after.popitem()
        loop, (here, step) = [(start, step)], first[1]
        while (here, step) != (start, loop[0][1]):
            loop.append((here, step))
            here, step = after.pop((here, step))
        loops.append(_path(loop))
    return "".join(loops)


Corner = tuple[int, int]
Edge = tuple[Corner, Corner]  # its start and its direction; the inside lies to its right


def _edges(inside: NDArray[np.bool_]) -> dict[Edge, Edge]:
    """Every edge between inside and outside, and the edge that follows it."""
    start: dict[Corner, list[Corner]] = {}
    sides = (
        (inside[1:-1, 1:-1] & ~inside[:-2, 1:-1], (0, 0), _RIGHT),
        (inside[1:-1, 1:-1] & ~inside[1:-1, 2:], (0, 1), _DOWN),
        (inside[1:-1, 1:-1] & ~inside[2:, 1:-1], (1, 1), _LEFT),
        (inside[1:-1, 1:-1] & ~inside[1:-1, :-2], (1, 0), _UP),
    )
    for where, (down, right), step in sides:
        for row, column in zip(*(index.tolist() for index in np.nonzero(where)), strict=True):
            start.setdefault((row + down, column + right), []).append(step)
    after = {}
    for corner, steps in start.items():
        for step in steps:
            end = (corner[0] + step[0], corner[1] + step[1])
            turn_right = (step[1], -step[0])  # where two pixels touch at a corner, stay at the same pixel
            ahead = start[end]
            after[corner, step] = (end, turn_right if turn_right in ahead else ahead[0])
    return after


def _path(loop: list[Edge]) -> str:
    """The path through the middle of each edge, without the points on a straight line."""
    middles = [(2 * row + down, 2 * column + right) for (row, column), (down, right) in loop]  # in half pixels
    kept = []
    for k, here in enumerate(middles):
        before, after = middles[k - 1], middles[(k + 1) % len(middles)]
        turns = (here[0] - before[0], here[1] - before[1]) != (after[0] - here[0], after[1] - here[1])
        if turns:
            kept.append(here)
    return "M" + "L".join(f"{_half(column)} {_half(row)}" for row, column in kept) + "Z"


def _half(twice: int) -> str:
    """Half of a whole number, in as few characters as possible."""
    whole = str(twice // 2)
    return whole if twice % 2 == 0 else f"{'' if whole == '0' else whole}.5"
