"""LightGBM: the model as `Booster.dump_model()` documents it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gralis.errors import GralisError
from gralis.trees.columns import Columns
from gralis.trees.ensemble import TreeEnsemble
from gralis.trees.node_lists import NodeLists

__all__ = ["read_lightgbm"]

_VERSIONS = ("v3", "v4")
_MISSING = {"None": 0, "NaN": 1, "Zero": 2}


def read_lightgbm(estimator: Any) -> TreeEnsemble:
    """The output of `predict(raw_score=True)`."""
    booster = getattr(estimator, "booster_", estimator)
    model = booster.dump_model()
    if model["version"] not in _VERSIONS:
        raise GralisError(
            f"This LightGBM model has the format {model['version']!r}, and known are {', '.join(_VERSIONS)}; save and "
            f"load it again with LightGBM 4."
        )
    n_outputs, n_columns = int(model["num_tree_per_iteration"]), int(model["max_feature_idx"]) + 1
    nodes, categorical = NodeLists(n_outputs), np.zeros(n_columns, dtype=bool)
    for number, tree in enumerate(model["tree_info"]):
        _add(nodes, tree["tree_structure"], number % n_outputs, n_outputs, categorical)
    objective = str(model.get("objective", "")).split(" ")[0]
    is_classifier = objective in ("binary", "multiclass", "multiclassova", "cross_entropy")
    classes = getattr(estimator, "classes_", np.arange(max(n_outputs, 2))) if is_classifier else ()
    return TreeEnsemble.of_nodes(
        nodes.arrays(),
        columns=_columns(model, n_columns, categorical),
        base=np.zeros(n_outputs),
        divisor=float(len(model["tree_info"]) // n_outputs) if model.get("average_output") else 1.0,
        inclusive=True,
        single=False,
        classes=tuple(np.asarray(classes).tolist()),
        link=_link(objective, str(model.get("objective", ""))),
        source=f"LightGBM's {type(estimator).__name__}",
    )


def _link(objective: str, whole: str) -> str:
    if objective in ("binary", "multiclassova", "cross_entropy"):
        return "logistic" if "sigmoid:" not in whole or "sigmoid:1" in whole.split() else "scaled logistic"
    if objective == "multiclass":
        return "softmax"
    return "exp" if objective in ("poisson", "gamma", "tweedie") else "identity"


def _columns(model: Any, n_columns: int, categorical: Any) -> Columns:
    """The columns. Those of categories in a data frame come in order with their stored categories."""
    plain = Columns.plain(n_columns, model["feature_names"])
    given_names = any(name != f"Column_{i}" for i, name in enumerate(plain.names))
    stored, categories = list(model.get("pandas_categorical") or []), [() if is_one else None for is_one in categorical]
    listed: list[Any] = list(categories)
    if stored:
        infos = model["feature_infos"]
        of_table = [i for i, name in enumerate(plain.names) if _of_categories(infos.get(name))]
        if len(of_table) != len(stored):  # a column whose only category is useless is not among the infos
            raise GralisError(
                "This LightGBM model was trained on categorical columns of which some are constant, so that its dump "
                "does not say which columns are categorical; drop the constant columns and fit it again."
            )
        for column, known in zip(of_table, stored, strict=True):
            listed[column] = tuple(known)
    return Columns(plain.names, given_names, tuple(listed))


def _of_categories(info: Any) -> bool:
    """Whether the dump lists the values of a column, which it does for categories only."""
    return bool(info and info.get("values"))


def _add(nodes: NodeLists, root: Any, output: int, n_outputs: int, categorical: Any) -> None:
    """Append one tree, which the dump nests."""
    found: list[Any] = [root]
    left, right = [], []
    for node in found:  # grows while it is read
        if "left_child" in node:
            left.append(len(found))
            right.append(len(found) + 1)
            found += [node["left_child"], node["right_child"]]
        else:
            left.append(-1)
            right.append(-1)
        if "leaf_const" in node or "leaf_coeff" in node:
            raise GralisError(
                "This LightGBM model has linear trees (linear_tree=True), whose leaves are not constant; explain its "
                "predict function with gralis.models.blackbox."
            )
    n = len(found)
    values, column, threshold = np.zeros((n, n_outputs)), np.zeros(n, dtype=np.int64), np.zeros(n)
    default_left, missing = np.zeros(n, dtype=bool), np.ones(n, dtype=np.int8)
    start, stop = np.full(n, -1), np.full(n, -1)
    for number, node in enumerate(found):
        if left[number] < 0:
            values[number, output] = node["leaf_value"]
            continue
        column[number] = node["split_feature"]
        if node["decision_type"] == "==":
            codes = np.array([int(code) for code in str(node["threshold"]).split("||")])
            sides = np.zeros(codes.max(initial=-1) + 1, dtype=np.int64)
            sides[codes] = 1
            start[number], stop[number] = nodes.categories(sides)
            categorical[column[number]] = True
        else:
            threshold[number] = node["threshold"]
            default_left[number], missing[number] = node["default_left"], _MISSING[node["missing_type"]]
    more = {"default_left": default_left, "missing": missing, "category_start": start, "category_stop": stop}
    nodes.add_tree(left, right, column, threshold, values, **more)
