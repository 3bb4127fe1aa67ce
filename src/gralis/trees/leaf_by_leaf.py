"""phi of trees by NumPy, leaf by leaf and event by event: the formula as it stands, for installations without numba.

phi_i = sum over leaves and over the moments a at which i enters (+) or leaves (-) the leaf of
    value * E_u[ prod over the other features j on the path of q_j [j at a fits] + (1 - q_j) [x'_j fits] ].

A feature that crosses at the same moment has crossed with probability t, and the whole is integrated over t.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.trees.ensemble import TreeEnsemble
from gralis.trees.weights import PairLaws, legendre

__all__ = ["Path", "block_phi", "paths"]


class Path(NamedTuple):
    """The way to a leaf: its comparisons, and on which side each continues."""

    leaf: int
    nodes: NDArray[np.int64]
    to_left: NDArray[np.bool_]


def paths(trees: TreeEnsemble) -> Iterator[Path]:
    """The paths to all leaves."""
    for root in trees.roots:
        waiting: list[tuple[int, tuple[int, ...], tuple[bool, ...]]] = [(int(root), (), ())]
        while waiting:
            node, nodes, sides = waiting.pop()
            if trees.left[node] < 0:
                yield Path(node, np.array(nodes, dtype=np.int64), np.array(sides, dtype=bool))
            else:
                waiting.append((int(trees.left[node]), (*nodes, node), (*sides, True)))
                waiting.append((int(trees.right[node]), (*nodes, node), (*sides, False)))


def block_phi(
    trees: TreeEnsemble,
    left_x: NDArray[np.bool_],
    left_z: NDArray[np.bool_],
    x: Array,
    baselines: Array,
    jumps: NDArray[np.bool_],
    laws: PairLaws,
    weights: Array,
) -> Array:
    """phi of one row, averaged over the baselines, (n_outputs, n_features)."""
    total = np.zeros((trees.n_outputs, trees.n_features))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        at = (trees.threshold - baselines[:, trees.column]) / (x - baselines)[:, trees.column]
    moment = np.where(jumps[:, trees.column], 0.5, np.clip(np.nan_to_num(at), 0.0, 1.0))  # (n_baselines, n_nodes)
    for path in paths(trees):
        features = np.unique(trees.groups[trees.column[path.nodes]])
        fits_x, fits_z = left_x[path.nodes] == path.to_left, left_z[:, path.nodes] == path.to_left
        shape = (len(baselines), len(features))
        come, leave, stays, dead = np.zeros(shape), np.full(shape, 2.0), np.ones(shape, bool), np.zeros(shape[0], bool)
        for k, node in enumerate(path.nodes):  # each condition narrows the time at which its feature fits
            j = int(np.searchsorted(features, trees.groups[trees.column[node]]))
            dead |= ~fits_x[k] & ~fits_z[:, k]
            enters, leaves = fits_x[k] & ~fits_z[:, k], ~fits_x[k] & fits_z[:, k]
            come[:, j] = np.where(enters, np.maximum(come[:, j], moment[:, node]), come[:, j])
            leave[:, j] = np.where(leaves, np.minimum(leave[:, j], moment[:, node]), leave[:, j])
            stays[:, j] &= fits_z[:, k]
        dead |= (~stays & (come >= leave)).any(1)
        alive = np.flatnonzero(~dead)
        if len(alive) and len(features):
            ways = _Ways(come[alive], leave[alive], stays[alive])
            amount = _leaf_weights(ways, alive, features, laws) * weights[alive, None]
            total[:, features] += np.outer(trees.effective[path.leaf], amount.sum(0))
    return total


class _Ways(NamedTuple):
    """From when and until when each feature fits a leaf, and whether its baseline fits, (n_pairs, n_features)."""

    come: Array
    leave: Array
    stays: NDArray[np.bool_]


def _leaf_weights(ways: _Ways, pairs: NDArray[np.int64], features: NDArray[np.int64], laws: PairLaws) -> Array:
    """The signed weight of a leaf in every feature, (n_pairs, n_features)."""
    k = len(features)
    result = np.zeros((len(pairs), k))
    for i in range(k):
        for sign, moment, happens in (
            (1.0, ways.come[:, i], ~ways.stays[:, i]),
            (-1.0, ways.leave[:, i], ways.leave[:, i] <= 1.0),
        ):
            before, after = _fits(ways, moment)
            others = np.arange(k) != i
            odd = (before != after)[:, others].any(1)
            for tied in (False, True):
                chosen = np.flatnonzero(happens & (odd == tied))
                if len(chosen):
                    part = (before[chosen][:, others], after[chosen][:, others], ways.stays[chosen][:, others])
                    nodes = legendre((k + 1) // 2) if tied else (np.zeros(1), np.ones(1))
                    weight = _expected(*part, nodes, pairs[chosen], features[others], int(features[i]), laws)
                    result[chosen, i] += sign * weight
    return result


def _fits(ways: _Ways, moment: Array) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether each feature, moving, fits just before and just after this moment."""
    at = moment[:, None]
    starts = np.where(ways.stays, -1.0, ways.come)
    return (starts < at) & (at <= ways.leave), (starts <= at) & (at < ways.leave)


def _expected(
    before: NDArray[np.bool_],
    after: NDArray[np.bool_],
    stays: NDArray[np.bool_],
    ties: tuple[Array, Array],
    pairs: NDArray[np.int64],
    others: NDArray[np.int64],
    owner: int,
    laws: PairLaws,
) -> Array:
    """E over u and t of the product over the other features on the path, (n_pairs,)."""
    total = np.zeros(len(pairs))
    for t, share in zip(*ties, strict=True):
        moved = (1 - t) * before + t * after  # (n_pairs, n_others)
        if laws.by_product:
            u, p = laws.nodes[:, None, None], laws.p[pairs]
            both = 1 - u + u * p[:, others]
            fits = (u * p[:, others] * moved + (1 - u) * stays) / both
            density = np.exp(np.log1p(-laws.nodes[:, None, None] * (1 - p)).sum(2)) / (
                1 - laws.nodes[:, None] * (1 - p[:, owner])
            )
            density = density * laws.weights[:, None]
            total += share * (density * fits.prod(2)).sum(0) / density.sum(0)
        else:
            total += share * _by_size(moved, stays, laws.table)
    return total


def _by_size(moved: Array, stays: NDArray[np.bool_], table: Array) -> Array:
    """sum over the sets of members of table[members, others] * prod of what fits, feature by feature, (n_pairs,)."""
    k = moved.shape[1]
    ways = np.zeros((len(moved), k + 1))  # by the number of members
    ways[:, 0] = 1.0
    for j in range(k):
        ways[:, 1:] = ways[:, 1:] * stays[:, [j]] + ways[:, :-1] * moved[:, [j]]
        ways[:, 0] *= stays[:, j]
    return np.asarray((ways * table[np.arange(k + 1), k - np.arange(k + 1)]).sum(1))
