"""Discrete features jump: half-way along the ray of T its discrete members go from x' to x, averaged over all orders.

J_i(T) = Sh_i of the game w(S) = F(half-way, S switched) - F(half-way, none switched), for sets S of discrete members of
T. Continuous members move from x' to x as usual. The discrete members stay at x' before the jump and at x after it.
Therefore sum_i ray_i(T) = v(T) still holds, an interaction between the two kinds is shared by both, and the model sees
every discrete feature only at x or at x'.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks

__all__ = ["HALFWAY", "DiscreteJumps"]

HALFWAY = 0.5
_ALL_ORDERS = 4  # up to this many jumping members every subset is evaluated; with more, one random order per ray


@dataclass(frozen=True, eq=False)
class DiscreteJumps:
    """The points half-way along rays at which F is needed, and the weight of each in the jumps of its ray.

    Attributes
    ----------
    ray : array of int, shape (n_points,)
        The number of the ray to which a point belongs.
    step : array of shape (n_points, n_features)
        How far each feature has moved from x' to x at the point: 0, 1/2 or 1.
    share : array of shape (n_points, n_features)
        The weights of F in the jumps: J_i = sum of share_i * F over the points of a ray.
    """

    ray: NDArray[np.int64]
    step: Array
    share: Array

    @classmethod
    def of(cls, masks: Masks, discrete: NDArray[np.bool_]) -> DiscreteJumps:
        """The points that the rays of these coalitions need; `discrete` says which features jump, (n_features,)."""
        n = masks.shape[1]
        rays, steps, shares = [], [], []
        for number, row in enumerate(masks):
            jumping = np.flatnonzero(row & discrete)
            if not len(jumping):
                continue
            switched, share = _every_subset(len(jumping)) if len(jumping) <= _ALL_ORDERS else _one_order(row, jumping)
            step = np.tile(np.where(row & ~discrete, HALFWAY, 0.0), (len(switched), 1))
            step[:, jumping] = switched
            wide = np.zeros((len(switched), n))
            wide[:, jumping] = share
            rays.append(np.full(len(switched), number))
            steps.append(step)
            shares.append(wide)
        if not rays:
            return cls(np.zeros(0, dtype=np.int64), np.zeros((0, n)), np.zeros((0, n)))
        return cls(np.concatenate(rays), np.concatenate(steps), np.concatenate(shares))

    def sizes(self, values: Array, n_rays: int) -> Array:
        """J of every ray and feature, (n_rays, n_features), from F at the points, (n_points,)."""
        jumps = np.zeros((n_rays, self.share.shape[1]))
        np.add.at(jumps, self.ray, self.share * values[:, None])
        return jumps


def _every_subset(d: int) -> tuple[Array, Array]:
    """All 2^d subsets of d members, and the Shapley weight of each for every member."""
    switched = (np.arange(2**d)[:, None] >> np.arange(d) & 1).astype(np.float64)
    size = switched.sum(1)
    joins = np.array([factorial(max(int(s) - 1, 0)) * factorial(d - int(s)) for s in size]) / factorial(d)
    leaves = np.array([factorial(int(s)) * factorial(max(d - int(s) - 1, 0)) for s in size]) / factorial(d)
    return switched, np.where(switched > 0, joins[:, None], -leaves[:, None])


def _one_order(row: NDArray[np.bool_], jumping: NDArray[np.int64]) -> tuple[Array, Array]:
    """The members switched one after the other, in an order that the coalition determines, so that it is repeatable."""
    d = len(jumping)
    order = np.random.default_rng(zlib.crc32(np.packbits(row).tobytes())).permutation(d)
    place = np.argsort(order)
    switched = (np.arange(d + 1)[:, None] > place).astype(np.float64)
    share = np.zeros((d + 1, d))
    share[place + 1, np.arange(d)] += 1
    share[place, np.arange(d)] -= 1
    return switched, share
