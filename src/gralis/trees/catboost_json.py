"""CatBoost: the model in JSON as `save_model(format="json")` documents it."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from gralis.errors import GralisError
from gralis.trees.columns import Columns
from gralis.trees.ensemble import TreeEnsemble
from gralis.trees.node_lists import NodeLists

__all__ = ["read_catboost"]

_LABELS = ("MultiLogloss", "MultiCrossEntropy")  # every output is a question of its own, and not a class
_NAN_LEFT = {"AsFalse": True, "AsTrue": False, "AsIs": True}  # a comparison x > border with NaN is false


def read_catboost(estimator: Any) -> TreeEnsemble:
    """The output of `predict(prediction_type="RawFormulaVal")`. CatBoost compares in float32."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        estimator.save_model(str(path), format="json")
        model = json.loads(path.read_text(encoding="utf-8"))
    info = model["features_info"]
    if info.get("categorical_features") or info.get("text_features") or info.get("embedding_features"):
        raise GralisError(
            "This CatBoost model has categorical, text or embedding columns, which it turns into statistics of the "
            "training data before its trees compare them; explain its predict function with gralis.models.blackbox."
        )
    floats = info["float_features"]
    scale, base = model["scale_and_bias"]
    base = np.ravel(np.asarray(base, dtype=np.float64))
    n_outputs = len(base)
    place = np.array([part["flat_feature_index"] for part in floats], dtype=np.int64)
    nan_left = np.array([_NAN_LEFT[part["nan_value_treatment"]] for part in floats], dtype=bool)
    nodes = NodeLists(n_outputs)
    for tree in model.get("oblivious_trees", ()):
        _add_oblivious(nodes, tree, place, nan_left, n_outputs)
    for tree in model.get("trees", ()):
        _add_nested(nodes, tree, place, nan_left, n_outputs)
    loss = model["model_info"].get("params", {}).get("loss_function", {}).get("type", "")
    classes = tuple(np.asarray(getattr(estimator, "classes_", ())).tolist())
    if n_outputs > 1 and (not classes or loss in _LABELS):
        raise GralisError("This CatBoost model predicts several targets at once; fit one model for each of them.")
    names = estimator.feature_names_ if any(part.get("feature_id") for part in floats) else None
    return TreeEnsemble.of_nodes(
        nodes.arrays(),
        columns=Columns.plain(int(place.max(initial=-1)) + 1, names),
        tree_weights=np.full(len(nodes.arrays()["roots"]), float(scale)),
        base=base,
        divisor=1.0,
        inclusive=True,
        single=True,
        classes=classes,
        link="identity" if not classes else "softmax" if n_outputs > 1 and loss != "MultiClassOneVsAll" else "logistic",
        source=f"CatBoost's {type(estimator).__name__}" + (f" ({loss})" if loss else ""),
    )


def _split(split: Any) -> tuple[int, float]:
    """The float feature and the border of a comparison."""
    if split["split_type"] != "FloatFeature":
        raise GralisError(
            f"This CatBoost model has splits of type {split['split_type']}, which do not compare a column with a "
            f"number; explain its predict function with gralis.models.blackbox."
        )
    return int(split["float_feature_index"]), float(np.float32(split["border"]))


def _add_oblivious(nodes: NodeLists, tree: Any, place: Any, nan_left: Any, n_outputs: int) -> None:
    """All nodes of one level compare alike. The first split is the lowest bit of the number of a leaf."""
    splits = [_split(split) for split in tree["splits"]]
    depth = len(splits)
    inner = 2**depth - 1
    n = inner + 2**depth
    number = np.arange(n)
    left = np.where(number < inner, 2 * number + 1, -1)
    level = np.floor(np.log2(number + 1)).astype(np.int64)
    values = np.zeros((n, n_outputs))
    leaf_values = np.asarray(tree["leaf_values"], dtype=np.float64).reshape(2**depth, n_outputs)
    for leaf in range(2**depth):  # the root decides the highest bit of the place, and the lowest of the number
        reversed_bits = sum(((leaf >> bit) & 1) << (depth - 1 - bit) for bit in range(depth))
        values[inner + reversed_bits] = leaf_values[leaf]
    feature = np.array([splits[k][0] if k < depth else 0 for k in level], dtype=np.int64)
    border = np.array([splits[k][1] if k < depth else 0.0 for k in level])
    nodes.add_tree(
        left, np.where(left >= 0, left + 1, -1), place[feature], border, values, default_left=nan_left[feature]
    )


def _add_nested(nodes: NodeLists, root: Any, place: Any, nan_left: Any, n_outputs: int) -> None:
    """A tree that is not oblivious, which the model nests."""
    found: list[Any] = [root]
    left, right, feature, border = [], [], [], []
    values: list[Any] = []
    for node in found:  # grows while it is read
        if "split" in node:
            left.append(len(found))
            right.append(len(found) + 1)
            found += [node["left"], node["right"]]
            column, threshold = _split(node["split"])
            values.append(np.zeros(n_outputs))
        else:
            left.append(-1)
            right.append(-1)
            column, threshold = 0, 0.0
            values.append(np.ravel(node["value"]))
        feature.append(column)
        border.append(threshold)
    chosen = np.array(feature, dtype=np.int64)
    nodes.add_tree(left, right, place[chosen], border, np.stack(values), default_left=nan_left[chosen])
