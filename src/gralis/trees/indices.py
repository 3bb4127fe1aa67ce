"""Shapley values, other indices and pairs of a tree ensemble, as finite sums for one or many rows."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.trees.coalition_sums import add_singles, add_tables, add_two, leaf_paths, pattern_tables
from gralis.trees.compiled import has_numba
from gralis.trees.ensemble import TreeEnsemble

__all__ = ["IndexWeight", "pairs_of_row", "shapley_weight", "singles_of_rows", "sum_of_values"]

#: p(n, a, s): the weight of D_A v(S), |A| = a, |S| = s, among n features.
IndexWeight = Callable[[int, int, int], Fraction]

_MOST_BITS = 8  # features on a path for which tables pay
_ROWS = 256  # whose directions are known at a time


def shapley_weight(n: int, a: int, s: int) -> Fraction:
    """1 / ((n - a + 1) C(n - a, s)): Shapley values, and Shapley interactions."""
    weight = Fraction(1, n - a + 1)
    for k in range(1, s + 1):
        weight *= Fraction(k, n - a - s + k)
    return weight


def singles_of_rows(
    trees: TreeEnsemble,
    rows: Array,
    baselines: Array,
    weight: IndexWeight = shapley_weight,
    baseline_weights: Array | None = None,
    progress: Callable[[int], None] | None = None,
) -> Array:
    """An index of every feature, Shapley values by default: I(i) = sum over S of p(1, s) (v(S u i) - v(S)).

    Parameters
    ----------
    trees : TreeEnsemble
        The ensemble.
    rows : array of shape (n_rows, n_columns)
        The encoded rows that are explained.
    baselines : array of shape (n_baselines, n_columns)
        The encoded baselines.
    weight : callable, default=shapley_weight
        p(n, a, s). Features that change nothing must not change the index of the others.
    baseline_weights : array of shape (n_baselines,), optional
        The weights of the baselines, equal by default.
    progress : callable, optional
        Called with the number of pairs of a row and a tree that were just done.

    Returns
    -------
    array of shape (n_rows, n_outputs, n_features)
    """
    weights = np.full(len(baselines), 1 / len(baselines)) if baseline_weights is None else baseline_weights
    out = np.zeros((len(rows), trees.n_outputs, trees.n_features))
    tables = _single_tables(weight, trees.depth)
    for part in trees.blocks:
        left_z = part.directions(baselines)
        leaves, features = _leaves(part) if has_numba() and len(rows) > 1 else (None, None)
        by_tables = leaves is not None and leaves[4].max(initial=0) <= _MOST_BITS
        result = pattern_tables(leaves, left_z, weights, tables) if by_tables else np.zeros(0)
        for start in range(0, len(rows), _ROWS):
            some = slice(start, start + _ROWS)
            left_x = part.directions(rows[some])
            if by_tables:
                add_tables(part.effective, leaves, features, left_x, result, out[some])
            else:
                for number, of_row in enumerate(left_x, start):
                    out[number] += _singles(part, of_row, left_z, weights, tables)[0]
            if progress is not None:
                progress(part.n_trees * len(left_x))
    return out


def sum_of_values(trees: TreeEnsemble, x: Array, baselines: Array, weights: Array) -> Array:
    """sum_T v(T) / (|T| C(n, |T|)), averaged over the baselines: what phi of the uniform kernel sums to, (n_outputs,).

    1 / (t C(n, t)) is the integral of u^(t - 1) (1 - u)^(n - t), so a leaf with a > 0 counts (a - 1)! b! / (a + b)!,
    and that of x' itself -(1 + 1/2 + ... + 1/b).
    """
    deep = trees.depth + 2
    of_all = np.zeros((deep, deep))
    for a in range(deep):
        for b in range(deep - a):
            of_all[a, b] = float(shapley_weight(a + b, 1, a - 1)) if a else -sum(1 / k for k in range(1, b + 1))
    nothing, total = np.zeros((deep, deep)), np.zeros(trees.n_outputs)
    for part in trees.blocks:
        tables = np.stack([nothing, nothing, of_all])
        total += _singles(part, part.directions(x[None])[0], part.directions(baselines), weights, tables)[1]
    return total


def pairs_of_row(trees: TreeEnsemble, x: Array, baselines: Array, weight: IndexWeight, weights: Array) -> Array:
    """The index of every pair of features, above the diagonal, (n_outputs, n_features, n_features)."""
    deep = trees.depth + 2
    tables = np.zeros((3, deep, deep))
    for of_z in range(3):
        for a in range(2 - of_z, deep):
            for b in range(of_z, deep - a):
                tables[of_z, a, b] = (-1) ** of_z * float(weight(a + b, 2, a - 2 + of_z))
    out = np.zeros((trees.n_outputs, trees.n_features, trees.n_features))
    for part in trees.blocks:
        left_x, left_z = part.directions(x[None])[0], part.directions(baselines)
        add_two(_arrays(part), left_x, left_z, weights, tables, deep, out)
    return out


def _singles(
    trees: TreeEnsemble, left_x: NDArray[np.bool_], left_z: NDArray[np.bool_], weights: Array, tables: Any
) -> tuple[Array, Array]:
    out, total = np.zeros((trees.n_outputs, trees.n_features)), np.zeros(trees.n_outputs)
    add_singles(_arrays(trees), left_x, left_z, weights, tables, trees.depth + 2, out, total)
    return out, total


def _single_tables(weight: IndexWeight, depth: int) -> Array:
    """The weight of a leaf for a feature that x brings and for one that x' brings, by a and b."""
    deep = depth + 2
    by_x, by_z = np.zeros((deep, deep)), np.zeros((deep, deep))
    for a in range(deep):
        for b in range(deep - a):
            by_x[a, b] = float(weight(a + b, 1, a - 1)) if a else 0.0
            by_z[a, b] = -float(weight(a + b, 1, a)) if b else 0.0
    return np.stack([by_x, by_z, np.zeros((deep, deep))])


def _arrays(trees: TreeEnsemble) -> tuple[Any, ...]:
    return (trees.roots, trees.left, trees.right, trees.groups[trees.column], trees.effective)


def _leaves(trees: TreeEnsemble) -> tuple[tuple[Any, ...], NDArray[np.int64]]:
    """The paths of all leaves in arrays, and for each leaf its node and its features."""
    starts, path, to_left, place, widths, features = leaf_paths(_arrays(trees), trees.depth + 1)
    sizes = np.where(widths <= _MOST_BITS, widths << np.minimum(widths, _MOST_BITS), 0)
    offsets = np.append(0, np.cumsum(sizes))
    return (starts, path, to_left, place, widths, offsets[:-1], int(offsets[-1])), features
