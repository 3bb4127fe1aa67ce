"""phi and Shapley values of many rows of a table at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from gralis.arrays import Array
from gralis.errors import bad
from gralis.kernels import Kernel
from gralis.trees.ensemble import TreeEnsemble
from gralis.trees.exact import phi_of_rows
from gralis.trees.indices import singles_of_rows

__all__ = ["ExactRows", "exact_many"]


@dataclass(frozen=True, eq=False)
class ExactRows:
    """phi and Shapley values of many rows against one background.

    Attributes
    ----------
    phi, shapley : array of shape (n_rows, n_outputs, n_features)
        Both answers for every output.
    f_x : array of shape (n_rows, n_outputs)
        The raw outputs at the rows.
    f_baselines : array of shape (n_baselines, n_outputs)
        The raw outputs at the background.
    """

    phi: Array
    shapley: Array
    f_x: Array
    f_baselines: Array


def exact_many(
    trees: TreeEnsemble,
    X: Any,
    background: Any,
    kernel: Kernel,
    weights: Array | None = None,
    progress: Callable[[int], None] | None = None,
) -> ExactRows:
    """phi_i = E_q[ray_i(T) | i in T] and the Shapley values of every row, as finite sums over the trees.

    Parameters
    ----------
    trees : TreeEnsemble
        The ensemble. `trees.select(k)` explains one output only, `trees.grouped(...)` groups of columns.
    X : array or data frame of shape (n_rows, n_columns)
        The rows that are explained.
    background : array or data frame of shape (n_baselines, n_columns)
        The baselines.
    kernel : Kernel
        A kernel with a product law or a law of the size.
    weights : array of shape (n_baselines,), optional
        The weights of the baselines, which sum to one; equal by default.
    progress : callable, optional
        Called with the number of steps that were just done, of 2 n_rows n_trees in all.

    Returns
    -------
    ExactRows

    Examples
    --------
    >>> from sklearn.tree import DecisionTreeRegressor
    >>> from gralis.kernels import Uniform
    >>> from gralis.trees import read
    >>> tree = read(DecisionTreeRegressor().fit([[0.0, 0.0], [1.0, 0.0]], [2.0, 3.0]))
    >>> exact_many(tree, [[0.8, 1.0]], [[0.2, 0.0]], Uniform()).phi.tolist()
    [[[1.0, 0.0]]]
    """
    rows, baselines = trees.encode(X), trees.encode(background)
    for name, numbers in (("X", rows), ("background", baselines)):
        if np.isinf(numbers).any():
            raise bad(name, "exact_many", "made of finite numbers, and NaN where a value is missing", "an infinite one")
    if weights is not None and len(weights) != len(baselines):
        raise bad("weights", "exact_many", f"one per baseline, {len(baselines)} in all", f"{len(weights)}")
    return ExactRows(
        phi_of_rows(trees, rows, baselines, kernel, weights, progress),
        singles_of_rows(trees, rows, baselines, baseline_weights=weights, progress=progress),
        trees.outputs(rows),
        trees.outputs(baselines),
    )
