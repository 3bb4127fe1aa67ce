"""Discrete features jump: half-way along the ray of T its discrete members go from x' to x, averaged over all orders.

J_i(T) = Sh_i of the game w(S) = F(half-way, S switched) - F(half-way, none switched), for sets S of discrete members of
T. Continuous members move from x' to x as usual. The discrete members stay at x' before the jump and at x after it.
Therefore sum_i ray_i(T) = v(T) still holds, an interaction between the two kinds is shared by both, and the model sees
every discrete feature only at x or at x'.

The Shapley value needs all 2^d sets of d jumping members. Where these are too many, a random order of the members and
its reverse estimate it without bias. Every ray has its own order, which follows from the seed of the plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import factorial

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks

__all__ = ["EVERY_ORDER", "HALFWAY", "STEPS", "DiscreteJumps", "jump_orders", "n_jump_points", "portions"]

HALFWAY = 0.5
#: Where a feature stands at a point: in state 0 at x', in state 1 at x, in state 2 half-way between them.
STEPS = np.array([0.0, 1.0, HALFWAY])
#: Marks a ray on which all orders of the jumping members count equally.
EVERY_ORDER = -1

_FEW = 4  # so many jumping members have all their sets evaluated on every ray; two orders of more would cost the same
_AT_ONCE = 2**22  # states that are built at once


@dataclass(frozen=True, eq=False)
class DiscreteJumps:
    """The points half-way along rays at which F is needed, and the weight of each in the jumps of its ray.

    Attributes
    ----------
    ray : array of int, shape (n_points,)
        The number of the ray to which a point belongs, in increasing order.
    state : array of uint8, shape (n_points, n_features)
        Where each feature stands at the point, an index into `STEPS`.
    share : array of shape (n_points, n_features)
        The weights of F in the jumps: J_i = sum of share_i * F over the points of a ray. They sum to 0 on every ray.
    """

    ray: NDArray[np.int64]
    state: NDArray[np.uint8]
    share: Array

    @classmethod
    def of(cls, masks: Masks, discrete: NDArray[np.bool_], order: NDArray[np.int64]) -> DiscreteJumps:
        """The points that the rays of these coalitions need.

        Parameters
        ----------
        masks : array of bool, shape (n_rays, n_features)
            The coalition of every ray.
        discrete : array of bool, shape (n_features,)
            Which features jump.
        order : array of int, shape (n_rays,)
            The seed of the order in which the members of every ray jump, or `EVERY_ORDER`.

        Returns
        -------
        DiscreteJumps
        """
        n = masks.shape[1]
        rays, states, shares = [], [], []
        for number, (row, seed) in enumerate(zip(masks, order.tolist(), strict=True)):
            jumping = np.flatnonzero(row & discrete)
            d = len(jumping)
            if not d:
                continue
            switched, share = _every_subset(d) if _takes_every_subset(d, seed) else _order_and_reverse(d, seed)
            state = np.tile(np.where(row & ~discrete, np.uint8(2), np.uint8(0)), (len(switched), 1))
            state[:, jumping] = switched
            wide = np.zeros((len(switched), n))
            wide[:, jumping] = share
            rays.append(np.full(len(switched), number))
            states.append(state)
            shares.append(wide)
        if not rays:
            return cls(np.zeros(0, dtype=np.int64), np.zeros((0, n), dtype=np.uint8), np.zeros((0, n)))
        return cls(np.concatenate(rays), np.concatenate(states), np.concatenate(shares))

    def sizes(self, values: Array, n_rays: int) -> Array:
        """J of every ray and feature, (n_rays, n_features), from F at the points, (n_points,), up to a constant."""
        jumps = np.zeros((n_rays, self.share.shape[1]))
        if len(self.ray):
            starts = np.flatnonzero(np.diff(self.ray, prepend=-1))
            jumps[self.ray[starts]] = np.add.reduceat(self.share * values[:, None], starts)
        return jumps


def jump_orders(replicate: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """The seed of the order of every ray: a function of `seed`, of its replicate, and of its place in the replicate.

    Parameters
    ----------
    replicate : array of int, shape (n_rays,)
        The replicate of every ray. A replicate must be whole, with its rays in the order of the plan.
    seed : int
        The seed of the plan.

    Returns
    -------
    array of int, shape (n_rays,)

    Examples
    --------
    >>> whole, later = jump_orders(np.array([0, 0, 1, 1]), seed=5), jump_orders(np.array([1, 1]), seed=5)
    >>> bool((whole[2:] == later).all()), len(set(whole.tolist()))
    (True, 4)
    """
    order = np.empty(len(replicate), dtype=np.int64)
    for number in np.unique(replicate).tolist():
        own = np.flatnonzero(replicate == number)
        source = np.random.SeedSequence(seed, spawn_key=(_STREAM, number + 2))
        order[own] = source.generate_state(len(own), np.uint64) >> np.uint64(1)
    return order


_STREAM = 2**20  # keeps these draws apart from those of the plan, whose first key is the number of a replicate


def n_jump_points(masks: Masks, discrete: NDArray[np.bool_], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """The number of points that every ray needs for its jumps, (n_rays,), if no two rays share a point.

    Examples
    --------
    >>> six = np.ones((1, 6), dtype=bool)
    >>> n_jump_points(six, six[0], np.array([EVERY_ORDER])).tolist(), n_jump_points(six, six[0], np.array([3])).tolist()
    ([64], [12])
    """
    d = (masks & discrete).sum(1)
    every = np.array([_takes_every_subset(*each) for each in zip(d.tolist(), order.tolist(), strict=True)], dtype=bool)
    return np.where(d == 0, 0, np.where(every, 2 ** np.minimum(d, 62), 2 * d))


def portions(n_points: NDArray[np.int64], n_features: int) -> Iterator[slice]:
    """Slices of the rays whose points fit into the memory together; a slice has at least one ray."""
    start, held = 0, 0
    for ray, points in enumerate(n_points.tolist()):
        held += points * n_features
        if held > _AT_ONCE and ray > start:
            yield slice(start, ray)
            start, held = ray, points * n_features
    if start < len(n_points):
        yield slice(start, len(n_points))


def _takes_every_subset(d: int, order: int) -> bool:
    """Whether all sets of d jumping members are evaluated, instead of those along one order and its reverse."""
    return d <= _FEW or order == EVERY_ORDER


@lru_cache(maxsize=32)
def _every_subset(d: int) -> tuple[NDArray[np.uint8], Array]:
    """All 2^d subsets of d members, and the Shapley weight of each for every member."""
    switched = (np.arange(2**d)[:, None] >> np.arange(d) & 1).astype(np.uint8)
    size = switched.sum(1, dtype=np.int64)
    joins = np.array([factorial(max(s - 1, 0)) * factorial(d - s) / factorial(d) for s in range(d + 1)])
    leaves = np.array([factorial(s) * factorial(max(d - s - 1, 0)) / factorial(d) for s in range(d + 1)])
    return switched, np.where(switched > 0, joins[size][:, None], -leaves[size][:, None])


def _order_and_reverse(d: int, seed: int) -> tuple[NDArray[np.uint8], Array]:
    """The members switched one after the other in a random order, and in the reverse of it; 2 d sets in all."""
    place = np.random.default_rng(seed).permutation(d)
    member, ahead = np.arange(d), np.arange(d + 1)[:, None] > place
    behind = ~ahead[d - 1 : 0 : -1]  # the reverse has the complements, and the same first and last set
    switched = np.concatenate([ahead, behind]).astype(np.uint8)
    share = np.zeros((2 * d, d))
    rows_of_reverse = np.concatenate([[0], np.arange(d + 1, 2 * d), [d]])  # of its sets by size
    for rows, position in ((np.arange(d + 1), place), (rows_of_reverse, d - 1 - place)):
        share[rows[position + 1], member] += 0.5
        share[rows[position], member] -= 0.5
    return switched, share
