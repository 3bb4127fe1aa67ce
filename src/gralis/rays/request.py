"""A request: rows to be evaluated. A plan writes requests, `evaluate` turns them into ledger rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks
from gralis.rays.quadrature import UNIFORM, Density

PILOT = -1  # the replicate number of rays that only teach: never averaged
CENSUS = -2  # ... of rays that are certain to be drawn and known without error: they count in every replicate


@dataclass(frozen=True, eq=False)
class RayRequest:
    """Rays to evaluate, n_nodes points on each (0: only the coalition value).

    `log_rate` is the log of the expected number of times this coalition (with this baseline) is drawn in one
    replicate: the one number an importance weight needs, whatever the plan. `places` are the nodes on the plan's own
    scale s of the ray, and `stretch` is da/ds there; both are the identity unless nodes have a density.
    """

    masks: Masks  # (n_rays, n_features)
    log_rate: Array  # (n_rays,)
    replicate: NDArray[np.int64]  # (n_rays,)
    baseline: NDArray[np.int64]  # (n_rays,)
    owner: NDArray[np.int64]  # (n_rays,) the one feature the ray was drawn for, -1: for all its members
    nodes: Array  # (n_rays, n_nodes)
    places: Array  # (n_rays, n_nodes)
    stretch: Array  # (n_rays, n_nodes)
    weights: Array  # (n_rays, n_nodes)

    @property
    def n_rays(self) -> int:
        return len(self.masks)

    @property
    def n_points(self) -> int:
        return int(self.nodes.size)

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
        """A request with scalars spread over its rows; without nodes it asks for coalition values only.

        `density` is the one whose cumulative makes the plan's scale along the ray.
        """
        n = len(masks)
        nodes = np.empty((n, 0)) if nodes is None else np.asarray(nodes)
        weights = np.empty((n, 0)) if weights is None else np.asarray(weights)
        return RayRequest(
            masks,
            np.asarray(log_rate, dtype=np.float64),
            np.broadcast_to(np.asarray(replicate, dtype=np.int64), (n,)),
            np.broadcast_to(np.asarray(baseline, dtype=np.int64), (n,)),
            np.broadcast_to(np.asarray(owner, dtype=np.int64), (n,)),
            nodes,
            density.cumulative(nodes),
            1 / density(nodes),
            weights,
        )

    @staticmethod
    def stack(requests: Sequence[RayRequest]) -> RayRequest:
        """Several requests with the same number of nodes per ray as one."""
        return RayRequest(
            *(np.concatenate([getattr(s, name) for s in requests]) for name in RayRequest.__dataclass_fields__)
        )
