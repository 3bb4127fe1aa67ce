"""Histogram gradient boosting of scikit-learn, with its categories and missing values."""

from __future__ import annotations

from typing import Any

import numpy as np

from gralis.trees.columns import Columns
from gralis.trees.ensemble import TreeEnsemble
from gralis.trees.node_lists import NodeLists
from gralis.trees.sklearn_forests import sklearn_columns

__all__ = ["read_histogram_boosting"]

_LINKS = {"squared_error": "identity", "absolute_error": "identity", "quantile": "identity"}


def read_histogram_boosting(estimator: Any) -> TreeEnsemble:
    """The raw prediction: the output of `decision_function`, or of `predict` for losses without a link."""
    columns, place = _columns(estimator)
    n_outputs = int(estimator.n_trees_per_iteration_)
    known, index_of = estimator._bin_mapper.make_known_categories_bitsets()
    nodes = NodeLists(n_outputs)
    for stage in estimator._predictors:
        for output, predictor in enumerate(stage):
            _add(nodes, predictor, place, output, n_outputs, known, index_of)
    classes = tuple(np.asarray(getattr(estimator, "classes_", ())).tolist())
    link = _LINKS.get(estimator.loss, "exp") if not classes else "logistic" if n_outputs == 1 else "softmax"
    return TreeEnsemble.of_nodes(
        nodes.arrays(),
        columns=columns,
        base=np.ravel(estimator._baseline_prediction),
        divisor=1.0,
        inclusive=True,
        single=False,
        classes=classes,
        link=link,
        source=f"scikit-learn's {type(estimator).__name__}",
    )


def _columns(estimator: Any) -> tuple[Columns, Any]:
    """The columns as the user gives them, and the one that stands at each place after the estimator's own encoding."""
    plain, is_category = sklearn_columns(estimator), estimator.is_categorical_
    if is_category is None:
        return plain, np.arange(plain.n_columns)
    encoder = estimator._preprocessor.named_transformers_["encoder"]
    categories: list[Any] = [None] * plain.n_columns
    for column, known in zip(np.flatnonzero(is_category), encoder.categories_, strict=True):
        categories[column] = tuple(None if value != value else value for value in np.asarray(known).tolist())
    order = np.concatenate([np.flatnonzero(is_category), np.flatnonzero(~is_category)])
    return Columns(plain.names, plain.named, tuple(categories)), order


def _add(nodes: NodeLists, predictor: Any, place: Any, output: int, n_outputs: int, known: Any, index_of: Any) -> None:
    """Append one tree."""
    tree = predictor.nodes
    leaf = tree["is_leaf"].astype(bool)
    values = np.zeros((len(tree), n_outputs))
    values[:, output] = tree["value"]
    start, stop = np.full(len(tree), -1), np.full(len(tree), -1)
    for node in np.flatnonzero(tree["is_categorical"].astype(bool) & ~leaf):
        to_left = _bits(predictor.raw_left_cat_bitsets[tree["bitset_idx"][node]])
        seen = _bits(known[index_of[tree["feature_idx"][node]]])
        start[node], stop[node] = nodes.categories(np.where(to_left, 1, np.where(seen, 0, -1)))
    default_left = tree["missing_go_to_left"].astype(bool)
    nodes.add_tree(
        np.where(leaf, -1, tree["left"].astype(np.int64)),
        np.where(leaf, -1, tree["right"].astype(np.int64)),
        place[np.where(leaf, 0, tree["feature_idx"])],
        tree["num_threshold"],
        values,
        default_left=default_left,
        other_left=default_left,
        category_start=start,
        category_stop=stop,
    )


def _bits(words: Any) -> Any:
    """A set of numbers below 256 in eight words of 32 bits, as 256 truth values."""
    return (np.asarray(words, dtype=np.uint32)[:, None] >> np.arange(32, dtype=np.uint32) & 1).astype(bool).ravel()
