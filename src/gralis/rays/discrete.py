"""Discrete features jump: half-way along the ray of T its discrete members go from x' to x, in every order alike.

J_i(T) = Sh_i of the game w(S) = F(half-way, S switched) - F(half-way, none switched), S among the discrete members of
T. Continuous members move from x' to x as ever, before the jump with the discrete ones at x', after it with them at x.
So sum_i ray_i(T) = v(T) stays true, an interaction of the two kinds is shared between them, and the model never sees a
discrete feature anywhere but at x or x'.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks

HALFWAY = 0.5
_ALL_ORDERS = 4  # up to so many jumping members every subset is evaluated; beyond, one order, drawn for each ray


@dataclass(frozen=True, eq=False)
class DiscreteJumps:
    """The points at which rays are looked at half-way, and what each one's F counts in every jump."""

    ray: NDArray[np.int64]  # (n_points,) whose ray it is
    step: Array  # (n_points, n_features) how far each feature has gone: 0, 1/2 or 1
    share: Array  # (n_points, n_features) J = sum over the points of a ray of share * F

    @classmethod
    def of(cls, masks: Masks, discrete: NDArray[np.bool_]) -> DiscreteJumps:
        """What has to be looked at for these rays."""
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
        found = np.zeros((n_rays, self.share.shape[1]))
        np.add.at(found, self.ray, self.share * values[:, None])
        return found


def _every_subset(d: int) -> tuple[Array, Array]:
    """All 2^d subsets of d members, and the Shapley weight of each for every member."""
    switched = (np.arange(2**d)[:, None] >> np.arange(d) & 1).astype(np.float64)
    size = switched.sum(1)
    joins = np.array([factorial(max(int(s) - 1, 0)) * factorial(d - int(s)) for s in size]) / factorial(d)
    leaves = np.array([factorial(int(s)) * factorial(max(d - int(s) - 1, 0)) for s in size]) / factorial(d)
    return switched, np.where(switched > 0, joins[:, None], -leaves[:, None])


def _one_order(row: NDArray[np.bool_], jumping: NDArray[np.int64]) -> tuple[Array, Array]:
    """The members switched one after the other; the order is that of the coalition, so that it can be made again."""
    d = len(jumping)
    order = np.random.default_rng(zlib.crc32(np.packbits(row).tobytes())).permutation(d)
    place = np.argsort(order)
    switched = (np.arange(d + 1)[:, None] > place).astype(np.float64)
    share = np.zeros((d + 1, d))
    share[place + 1, np.arange(d)] += 1
    share[place, np.arange(d)] -= 1
    return switched, share
