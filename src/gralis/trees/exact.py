"""phi of tree ensembles as finite sums, for one or many rows: no sampling, no error above rounding."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.kernels import Kernel
from gralis.trees.along_rays import add_row
from gralis.trees.compiled import has_numba
from gralis.trees.ensemble import TreeEnsemble
from gralis.trees.leaf_by_leaf import block_phi
from gralis.trees.weights import PairLaws, moments, pair_laws, tie_nodes

__all__ = ["Progress", "phi_of_laws", "phi_of_rows"]

Progress = Callable[[int], None]


def phi_of_rows(
    trees: TreeEnsemble,
    rows: Array,
    baselines: Array,
    kernel: Kernel,
    baseline_weights: Array | None = None,
    progress: Progress | None = None,
) -> Array:
    """phi_i = E_q[ray_i(T) | i in T] of every row, averaged over the baselines.

    Parameters
    ----------
    trees : TreeEnsemble
        The ensemble.
    rows : array of shape (n_rows, n_columns)
        The encoded rows that are explained.
    baselines : array of shape (n_baselines, n_columns)
        The encoded baselines.
    kernel : Kernel
        A kernel with a product law or a law of the size.
    baseline_weights : array of shape (n_baselines,), optional
        The weights of the baselines, equal by default.
    progress : callable, optional
        Called with the number of pairs of a row and a tree that were just done.

    Returns
    -------
    array of shape (n_rows, n_outputs, n_features)
    """
    weights = np.full(len(baselines), 1 / len(baselines)) if baseline_weights is None else baseline_weights
    total = np.zeros((len(rows), trees.n_outputs, trees.n_features))
    parts = [(part, part.directions(baselines)) for part in trees.blocks] if _small(trees, baselines) else None
    for number, x in enumerate(rows):
        laws = pair_laws(kernel, trees.squared_distance(x, baselines), trees.depth)
        for part, left_z in parts or ((part, part.directions(baselines)) for part in trees.blocks):
            total[number] += _block(part, left_z, x, baselines, laws, weights)
            if progress is not None:
                progress(part.n_trees)
    return total


def phi_of_laws(trees: TreeEnsemble, x: Array, baselines: Array, laws: PairLaws, weights: Array) -> Array:
    """phi of one row under given laws, (n_outputs, n_features)."""
    total = np.zeros((trees.n_outputs, trees.n_features))
    for part in trees.blocks:
        total += _block(part, part.directions(baselines), x, baselines, laws, weights)
    return total


def _small(trees: TreeEnsemble, baselines: Array) -> bool:
    """Whether the directions of all baselines at all nodes fit into memory with ease."""
    return trees.n_nodes * len(baselines) <= 2**27


def _block(
    trees: TreeEnsemble, left_z: NDArray[np.bool_], x: Array, baselines: Array, laws: PairLaws, weights: Array
) -> Array:
    """The part of some trees in phi of one row, (n_outputs, n_features)."""
    left_x = trees.directions(x[None])[0]
    jumps = trees.jumping | trees.missing_entries(x[None])[0] | trees.missing_entries(baselines)
    if not has_numba():
        return block_phi(trees, left_x, left_z, x, baselines, jumps, laws, weights)
    total = np.zeros((trees.n_outputs, trees.n_features))
    arrays = (trees.roots, trees.left, trees.right, trees.column, trees.threshold, trees.groups, trees.effective)
    deep, law = trees.depth + 2, (laws.p, laws.nodes, laws.weights)
    tables = np.stack([laws.table, moments(len(laws.table) - 1)])
    add_row(arrays, x, baselines, left_x, left_z, jumps, weights, law, tables, tie_nodes(deep), deep, total)
    return total
