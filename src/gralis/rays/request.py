"""A request names rays to be evaluated: a plan writes requests, and the evaluator turns them into ledger rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks
from gralis.rays.discrete import EVERY_ORDER
from gralis.rays.quadrature import UNIFORM, Density

__all__ = ["CENSUS", "PILOT", "RayRequest"]

#: The replicate number of pilot rays, from which the plan learns. They enter no average.
PILOT = -1
#: The replicate number of rays that are certain to be drawn and known without error. They count in every replicate.
CENSUS = -2


@dataclass(frozen=True, eq=False)
class RayRequest:
    """Rays to evaluate, with n_nodes points on each; without nodes only the coalition values are evaluated.

    Attributes
    ----------
    masks : array of bool, shape (n_rays, n_features)
        The coalition of every ray.
    log_rate : array of shape (n_rays,)
        The logarithm of the expected number of times that this coalition, with this baseline, is drawn in one
        replicate. Whatever the plan, an importance weight needs no other number.
    replicate : array of int, shape (n_rays,)
        The replicate of every ray, or `PILOT` or `CENSUS`.
    baseline : array of int, shape (n_rays,)
        The number of the baseline from which the ray starts.
    owner : array of int, shape (n_rays,)
        The only feature for which the ray was drawn, or -1 if it serves all its members.
    order : array of int, shape (n_rays,)
        The seed of the order in which the discrete members of the ray jump, or `discrete.EVERY_ORDER`.
    nodes : array of shape (n_rays, n_nodes)
        The positions a in [0, 1] on the ray at which the gradient is taken. A ray with fewer nodes ends in NaN, here
        and in the arrays below.
    places : array of shape (n_rays, n_nodes)
        The nodes on the plan's scale s of the ray, which is the cumulative of the node density.
    stretch : array of shape (n_rays, n_nodes)
        da/ds at the nodes; 1 if the nodes are uniform.
    weights : array of shape (n_rays, n_nodes)
        The weights of the nodes in the integral over the ray.
    """

    masks: Masks
    log_rate: Array
    replicate: NDArray[np.int64]
    baseline: NDArray[np.int64]
    owner: NDArray[np.int64]
    order: NDArray[np.int64]
    nodes: Array
    places: Array
    stretch: Array
    weights: Array

    @property
    def n_rays(self) -> int:
        """The number of rays."""
        return len(self.masks)

    @property
    def n_points(self) -> int:
        """The number of points at which a gradient is taken."""
        return len(self.ray)

    @cached_property
    def ray(self) -> NDArray[np.int64]:
        """The ray of every point, (n_points,)."""
        if not self.nodes.size:
            return np.empty(0, dtype=np.int64)
        return np.repeat(np.arange(self.n_rays), np.isfinite(self.nodes).sum(1))

    def by_point(self, name: str) -> Array:
        """`nodes`, `places`, `stretch` or `weights` of every point, (n_points,), ray after ray."""
        if not self.nodes.size:
            return np.empty(0)
        return np.asarray(getattr(self, name)[np.isfinite(self.nodes)], dtype=np.float64)

    @staticmethod
    def of(
        masks: Masks,
        log_rate: Array,
        replicate: int | NDArray[np.int64],
        nodes: Array | None = None,
        weights: Array | None = None,
        *,
        density: Density = UNIFORM,
        baseline: int | NDArray[np.int64] = 0,
        owner: int | NDArray[np.int64] = -1,
    ) -> RayRequest:
        """A request with scalars repeated over its rows.

        Parameters
        ----------
        masks, log_rate : array
            As the attributes.
        replicate : int or array of int
            One number for all rays, or one for each.
        nodes, weights : array of shape (n_rays, n_nodes), optional
            By default the request needs coalition values only.
        density : Density, default=UNIFORM
            The node density, whose cumulative is the plan's scale along the ray.
        baseline : int or array of int, default=0
            As `replicate`.
        owner : int or array of int, default=-1
            As `replicate`.

        Returns
        -------
        RayRequest
        """
        n = len(masks)
        nodes = np.empty((n, 0)) if nodes is None else np.asarray(nodes)
        weights = np.empty((n, 0)) if weights is None else np.asarray(weights)
        return RayRequest(
            masks,
            np.asarray(log_rate, dtype=np.float64),
            _column(replicate, n),
            _column(baseline, n),
            _column(owner, n),
            np.full(n, EVERY_ORDER),
            nodes,
            density.cumulative(nodes) if nodes.size else nodes,
            1 / density(nodes) if nodes.size else nodes,
            weights,
        )

    def in_orders(self, order: NDArray[np.int64]) -> RayRequest:
        """The same request, whose discrete features jump in the orders with these seeds, (n_rays,)."""
        return replace(self, order=order)

    @staticmethod
    def stack(requests: Sequence[RayRequest]) -> RayRequest:
        """One request with the rays of several, which must have the same number of nodes per ray."""
        if len(requests) == 1:
            return requests[0]
        return RayRequest(*(np.concatenate([getattr(r, f.name) for r in requests]) for f in fields(RayRequest)))


def _column(number: int | NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """One number for each of n rows, or the numbers themselves."""
    return np.asarray(number, dtype=np.int64) if np.ndim(number) else np.full(n, number, dtype=np.int64)
