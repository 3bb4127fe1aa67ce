"""Gradient boosting of scikit-learn: the initial constant, and the learning rate times the sum of the trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from gralis.errors import GralisError
from gralis.trees.ensemble import TreeEnsemble
from gralis.trees.node_lists import NodeLists
from gralis.trees.sklearn_forests import add_sklearn_tree, sklearn_columns

__all__ = ["read_gradient_boosting"]


def read_gradient_boosting(estimator: Any) -> TreeEnsemble:
    """The output of `decision_function`, or of `predict` for a regression."""
    start = estimator.init_
    if not isinstance(start, str) and not type(start).__name__.startswith("Dummy"):
        raise GralisError(
            f"This {type(estimator).__name__} starts from the predictions of a {type(start).__name__}, which is not a "
            f"tree; fit it without init=, or explain its predict function with gralis.models.blackbox."
        )
    stages = estimator.estimators_  # (n_stages, n_outputs)
    n_outputs = stages.shape[1]
    nodes = NodeLists(n_outputs)
    for trees in stages:
        for output, member in enumerate(trees):
            values = np.zeros((member.tree_.node_count, n_outputs))
            values[:, output] = member.tree_.value[:, 0, 0]
            add_sklearn_tree(nodes, member.tree_, values)
    classes = tuple(np.asarray(getattr(estimator, "classes_", ())).tolist())
    base = estimator._raw_predict_init(np.zeros((1, estimator.n_features_in_), dtype=np.float32))[0]
    return TreeEnsemble.of_nodes(
        nodes.arrays(),
        columns=sklearn_columns(estimator),
        tree_weights=np.full(stages.size, float(estimator.learning_rate)),
        base=base,
        divisor=1.0,
        inclusive=True,
        single=True,
        classes=classes,
        link=_link(estimator.loss, len(classes)),
        source=f"scikit-learn's {type(estimator).__name__}",
    )


def _link(loss: str, n_classes: int) -> str:
    if n_classes == 0:
        return "identity"
    if loss == "exponential":
        return "exponential loss"
    return "logistic" if n_classes == 2 else "softmax"
