"""Where along a ray random nodes are drawn: h(a) follows gradients on pilot rays, and F where it is steep."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gralis.arrays import Array
from gralis.ledger import Ledger
from gralis.rays.quadrature import UNIFORM, Density

__all__ = ["PILOT_DENSITY", "node_density"]

_KNOTS = np.array([0.0, 0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 1.0])
#: The density of the nodes on pilot rays.
PILOT_DENSITY = Density(_KNOTS, 1 / (_KNOTS + 0.15))
_PRIOR = 0.3  # of the learnt density: so many points at the overall mean are added at every knot
_FLOOR = 0.15  # of the learnt density: this share of its mean height is added everywhere


def node_density(ledgers: Sequence[Ledger], walked: Density | None = None) -> Density:
    """The density of random nodes: that of the gradients of a pilot, that of F along a few rays, or half of each.

    Parameters
    ----------
    ledgers : sequence of Ledger
        The pilot rays of every question; there may be none.
    walked : Density, optional
        What `walked_density` found, if F is steep along rays.

    Returns
    -------
    Density
    """
    learnt = _of_gradients(ledgers) if ledgers else UNIFORM
    if walked is None:
        return learnt
    if learnt is UNIFORM:
        return walked
    knots = np.union1d(walked.knots, learnt.knots)
    return Density(knots, walked(knots) + learnt(knots))


def _of_gradients(ledgers: Sequence[Ledger]) -> Density:
    """h(a) proportional to the root mean square gradient at a, with a floor, learnt from the points of the pilot.

    The density is uniform unless the pilot predicts that the learnt one lowers the node variance by a fifth or more.
    Several questions on the same rays share one density, in which each has the same weight.
    """
    square = np.sum([_squares(ledger) for ledger in ledgers], axis=0)
    if not square.sum() > 0:
        return UNIFORM
    ledger = ledgers[0]
    hats = np.maximum(1 - np.abs(_hat_place(ledger.node)[:, None] - np.arange(len(_KNOTS))), 0.0)  # (points, knots)
    # Squares have heavy tails and the pilot is small, so neighbouring knots are averaged, and a fraction of a point at
    # the overall mean is added at every knot.
    seen, total = _blur(hats.sum(0)), _blur(hats.T @ square)
    heights = np.sqrt((total + _PRIOR * square.mean()) / (seen + _PRIOR))
    density = Density(_KNOTS, heights + _FLOOR * np.interp(np.linspace(0, 1, 101), _KNOTS, heights).mean())
    # The quadrature weights of the pilot undo its own density.
    uniform_cost, learnt_cost = (ledger.weight * square).sum(), (ledger.weight * square / density(ledger.node)).sum()
    return density if learnt_cost < 0.8 * uniform_cost else UNIFORM


def _squares(ledger: Ledger) -> Array:
    """The mean squared gradient over the members of the coalition at every point, scaled to sum one if it can be."""
    size = ledger.sizes[ledger.ray]
    square = ((ledger.gradient * ledger.masks[ledger.ray]) ** 2).sum(1) / size
    return np.asarray(square / (square.sum() or 1.0))


def _hat_place(node: Array) -> Array:
    """Where a node lies between the knots, in units of knots."""
    return np.asarray(np.interp(node, _KNOTS, np.arange(len(_KNOTS))))


def _blur(row: Array) -> Array:
    """Each knot plus half of each of its neighbours."""
    return np.asarray(np.convolve(row, [0.5, 1.0, 0.5], mode="same"))
