"""Decision trees, forests and isolation forests of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.trees.columns import Columns
from gralis.trees.ensemble import TreeEnsemble
from gralis.trees.node_lists import NodeLists

__all__ = ["add_sklearn_tree", "read_forest", "sklearn_columns"]

_EULER = 0.5772156649015329


def read_forest(estimator: Any) -> TreeEnsemble:
    """The mean of the trees: class shares, regression values, or path lengths of an isolation forest."""
    name = type(estimator).__name__
    members = getattr(estimator, "estimators_", [estimator])
    if np.ndim(getattr(estimator, "n_outputs_", 1)) or getattr(estimator, "n_outputs_", 1) > 1:
        raise GralisError(f"This {name} predicts several outputs at once; fit one estimator for each of them.")
    classes = tuple(getattr(estimator, "classes_", ()))
    is_isolation = hasattr(estimator, "estimators_features_") and hasattr(estimator, "offset_")
    nodes = NodeLists(max(len(classes), 1))
    for number, member in enumerate(members):
        tree = member.tree_
        chosen = np.asarray(estimator.estimators_features_[number]) if is_isolation else None
        values = _path_lengths(tree) if is_isolation else tree.value[:, 0, :]
        add_sklearn_tree(nodes, tree, values, chosen)
    return TreeEnsemble.of_nodes(
        nodes.arrays(),
        columns=sklearn_columns(estimator),
        base=np.zeros(max(len(classes), 1)),
        divisor=float(len(members)),
        inclusive=True,
        single=True,
        classes=tuple(np.asarray(classes).tolist()),
        link="path length" if is_isolation else "identity",
        source=f"scikit-learn's {name}",
    )


def add_sklearn_tree(nodes: NodeLists, tree: Any, values: Array, chosen: Any = None) -> None:
    """Append one tree of scikit-learn; `chosen` are the columns that it was given."""
    column = np.maximum(tree.feature, 0)
    nodes.add_tree(
        tree.children_left,
        tree.children_right,
        column if chosen is None else chosen[column],
        tree.threshold,
        values,
        default_left=np.asarray(tree.missing_go_to_left, dtype=bool),
    )


def sklearn_columns(estimator: Any) -> Columns:
    """The columns of numbers that the estimator was fitted with."""
    return Columns.plain(int(estimator.n_features_in_), getattr(estimator, "feature_names_in_", None))


def _path_lengths(tree: Any) -> Array:
    """The depth of every leaf plus the mean path length among the rows that it holds, (n_nodes, 1)."""
    depth = np.zeros(tree.node_count)
    for node in np.flatnonzero(tree.children_left >= 0):
        depth[tree.children_left[node]] = depth[tree.children_right[node]] = depth[node] + 1
    n = np.asarray(tree.n_node_samples, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = 2 * (np.log(n - 1) + _EULER) - 2 * (n - 1) / n
    inside = np.select([n <= 1, n == 2], [0.0, 1.0], mean)
    return np.asarray(depth + inside)[:, None]
