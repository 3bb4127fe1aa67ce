"""Which way a row goes at every node, as the library that trained the trees decides it."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array

__all__ = ["NOTHING", "NUMBER", "ZERO", "ZERO_SIZE", "directions", "missing_entries"]

#: A `TreeEnsemble`, whose module imports this one.
Trees: TypeAlias = Any

NUMBER = -1  # category_start of a node that compares numbers
NOTHING, ZERO = 0, 2  # of `missing`: nothing counts as missing, or zero too
ZERO_SIZE = float(np.float32(1e-35))  # numbers up to this size are zero to LightGBM


def directions(trees: Trees, numbers: Array) -> NDArray[np.bool_]:
    """Whether each row of encoded numbers goes left at each node, (n_rows, n_nodes)."""
    entry = numbers[:, trees.column]
    absent = np.isnan(entry)
    if (trees.missing == NOTHING).any():
        as_zero = absent & (trees.missing == NOTHING)
        entry, absent = np.where(as_zero, 0.0, entry), absent & ~as_zero
    if (trees.missing == ZERO).any():
        absent = absent | ((trees.missing == ZERO) & (np.abs(np.nan_to_num(entry)) <= ZERO_SIZE))
    left = entry <= trees.threshold if trees.inclusive else entry < trees.threshold
    left = np.where(absent, trees.default_left, left)
    by_category = np.flatnonzero(trees.category_start >= 0)
    if len(by_category):
        left[:, by_category] = _by_category(trees, by_category, numbers[:, trees.column[by_category]])
    return np.asarray(left)


def _by_category(trees: Trees, nodes: NDArray[np.int64], entry: Array) -> NDArray[np.bool_]:
    """Whether each row goes left at these nodes, whose column holds codes of categories."""
    absent = np.isnan(entry)
    code = np.trunc(np.clip(np.nan_to_num(entry, nan=-1.0), -2.0, 2.0**40)).astype(np.int64)
    code = np.where(np.nan_to_num(entry) < 0, -1, code)
    start, stop = trees.category_start[nodes], trees.category_stop[nodes]
    listed = (code >= 0) & (code < stop - start)
    found = np.full(entry.shape, -1, dtype=np.int64)
    if len(trees.category_left):
        found = np.where(listed, trees.category_left[np.where(listed, start + code, 0)], -1)
    left = np.where(found >= 0, found == 1, trees.other_left[nodes])
    return np.asarray(np.where(absent, trees.default_left[nodes], left))


def missing_entries(trees: Trees, numbers: Array) -> NDArray[np.bool_]:
    """Which entries count as missing for some node, so that the column jumps, (n_rows, n_columns)."""
    zero = trees.zero_is_missing & (np.abs(np.nan_to_num(numbers, nan=1.0)) <= ZERO_SIZE)
    return np.asarray(np.isnan(numbers) | zero)
