"""XGBoost: the model in JSON as `Booster.save_raw("json")` documents it."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import numpy as np

from gralis.errors import GralisError
from gralis.trees.columns import Columns
from gralis.trees.ensemble import TreeEnsemble
from gralis.trees.node_lists import NodeLists

__all__ = ["read_xgboost"]

_LEAST, _MOST = (1, 6), (3, 99)  # versions of the format in which the model is written
_LOGISTIC = ("binary:logistic", "binary:logitraw", "reg:logistic")
_LOG = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:cox", "survival:aft")
_SOFTMAX = ("multi:softmax", "multi:softprob")


def read_xgboost(estimator: Any) -> TreeEnsemble:
    """The output of `predict(output_margin=True)`. XGBoost compares and adds in float32."""
    booster = estimator.get_booster() if hasattr(estimator, "get_booster") else estimator
    model = json.loads(booster.save_raw("json"))
    version, learner = tuple(model["version"][:2]), model["learner"]
    if not _LEAST <= version <= _MOST:
        raise GralisError(
            f"This XGBoost model has the format of version {'.'.join(map(str, version))}, which is not known; save and "
            f"load it again with XGBoost 1.6 to 3."
        )
    part = learner["gradient_booster"]
    name = part["name"]
    if name == "gblinear":
        raise GralisError(
            "This XGBoost model is a linear booster (gblinear), which has no trees; explain its predict function with "
            "gralis.models.function or gralis.models.blackbox."
        )
    drop = part["weight_drop"] if name == "dart" else None
    part = part["gbtree"]["model"] if name == "dart" else part["model"]
    param, objective = learner["learner_model_param"], learner["objective"]["name"]
    if int(param.get("num_target", 1)) > 1:
        raise GralisError("This XGBoost model predicts several targets at once; fit one model for each of them.")
    n_outputs = max(int(param["num_class"]), 1)
    columns = _columns(learner, int(param["num_feature"]), part.get("cats"), estimator)
    nodes = NodeLists(n_outputs)
    best = _used(estimator, part)
    for tree, output in list(zip(part["trees"], part["tree_info"], strict=True))[:best]:
        _add(nodes, tree, int(output), n_outputs)
    weights = np.ones(len(part["trees"])) if drop is None else np.asarray(drop, dtype=np.float32)
    classes = getattr(estimator, "classes_", np.arange(n_outputs) if n_outputs > 1 else np.arange(2))
    is_classifier = objective.startswith(("binary:", "multi:"))
    return TreeEnsemble.of_nodes(
        nodes.arrays(),
        columns=columns,
        tree_weights=weights[:best],
        base=_margin(json.loads(param["base_score"]), objective, n_outputs),
        divisor=1.0,
        inclusive=False,
        single=True,
        classes=tuple(np.asarray(classes).tolist()) if is_classifier else (),
        link=_link(objective),
        source=f"XGBoost's {type(estimator).__name__}",
    )


def _used(estimator: Any, part: Any) -> int:
    """The number of trees that predict: after early stopping those up to the best iteration."""
    best = getattr(estimator, "best_iteration", None) if _stopped_early(estimator) else None
    indices = part.get("iteration_indptr")
    if best is None or not indices or best + 1 >= len(indices):
        return len(part["trees"])
    return int(indices[best + 1])


def _stopped_early(estimator: Any) -> bool:
    """Whether scikit-learn's interface of XGBoost uses a best iteration; a Booster itself uses all its trees."""
    try:
        return hasattr(estimator, "get_booster") and estimator.best_iteration is not None
    except AttributeError:
        return False


def _link(objective: str) -> str:
    if objective in _LOGISTIC:
        return "logistic"
    return "softmax" if objective in _SOFTMAX else "exp" if objective in _LOG else "identity"


def _margin(base_score: Any, objective: str, n_outputs: int) -> Any:
    """The base score is written as a prediction; the margin is what the inverse of the link makes of it."""
    score = np.broadcast_to(np.asarray(base_score, dtype=np.float32), n_outputs).astype(np.float32)
    if objective in _LOGISTIC and objective != "binary:logitraw":  # which writes the margin itself
        return -np.log(1 / score - 1, dtype=np.float32)
    return np.log(score) if objective in _LOG else score


def _columns(learner: Any, n_columns: int, cats: Any, estimator: Any) -> Columns:
    absent = getattr(estimator, "missing", np.nan)
    absent = float("nan") if absent is None else float(absent)
    plain = Columns.plain(n_columns, learner.get("feature_names") or None, absent)
    categories: list[Any] = [None] * n_columns
    for column, kind in enumerate(learner.get("feature_types") or ()):
        if kind == "c":
            categories[column] = _categories(cats, column)
    return Columns(plain.names, plain.named, tuple(categories), absent, closed=True)


def _categories(cats: Any, column: int) -> tuple[Any, ...]:
    """The categories with which the model was trained, if it has stored them; otherwise a column holds their codes."""
    stored = cats["enc"][column] if cats and column < len(cats.get("enc", ())) else {}
    values = stored.get("values", ())
    if not len(values):
        return ()
    if "offsets" not in stored:
        return tuple(values)
    ends, letters = stored["offsets"], bytes(value % 256 for value in values)
    return tuple(letters[a:b].decode() for a, b in pairwise(ends))


def _add(nodes: NodeLists, tree: Any, output: int, n_outputs: int) -> None:
    """Append one tree."""
    left, right = (np.asarray(tree[f"{side}_children"], dtype=np.int64) for side in ("left", "right"))
    if int(tree["tree_param"].get("size_leaf_vector", 1)) > 1:
        raise GralisError(
            "This XGBoost model has leaves with several values; fit it with multi_strategy='one_output_per_tree'."
        )
    n = len(left)
    condition = np.asarray(tree["split_conditions"], dtype=np.float32).astype(np.float64)
    values = np.zeros((n, n_outputs))
    values[:, output] = condition
    start, stop = np.full(n, -1), np.full(n, -1)
    listed = zip(tree["categories_nodes"], tree["categories_segments"], tree["categories_sizes"], strict=True)
    for node, first, count in listed:
        to_right = np.asarray(tree["categories"][first : first + count], dtype=np.int64)
        sides = np.ones(int(to_right.max(initial=-1)) + 1, dtype=np.int64)
        sides[to_right] = 0
        start[node], stop[node] = nodes.categories(sides)
    order = _parents_first(left, right)
    place = np.argsort(order)
    nodes.add_tree(
        np.where(left[order] >= 0, place[left[order]], -1),
        np.where(left[order] >= 0, place[right[order]], -1),
        np.asarray(tree["split_indices"])[order],
        condition[order],
        values[order],
        default_left=np.asarray(tree["default_left"], dtype=bool)[order],
        other_left=np.ones(len(order), dtype=bool),
        category_start=start[order],
        category_stop=stop[order],
    )


def _parents_first(left: Any, right: Any) -> Any:
    """The nodes below the root, each parent before its children; pruned nodes are left out."""
    found = [0]
    for node in found:  # grows while it is read
        if left[node] >= 0:
            found += [int(left[node]), int(right[node])]
    order = np.array(found, dtype=np.int64)
    return np.concatenate([order, np.setdiff1d(np.arange(len(left)), order)])
