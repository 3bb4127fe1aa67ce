"""What the arrays and values of a saved explanation must look like: a file from a stranger may hold anything.

The checksums only show that a file was not damaged. Whoever writes a file also writes its checksums, so the shapes, the
types and the ranges of everything that is used as an index or a size are checked as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import LARGEST_OUTPUT
from gralis.ledger.folded import N_GROUPS

__all__ = ["require_whole"]

_MOST_AXES = 32
_LARGEST = float(np.finfo(float).max)
_TYPES: dict[str, tuple[type, ...]] = {
    "method": (str,),
    "exact": (bool,),
    "f_x": (Real,),
    "features": (dict,),
    "kernel": (dict,),
    "cost": (dict,),
    "plan": (dict,),
    "provenance": (dict,),
    "complete": (bool,),
    "reached": (bool, type(None)),
    "price": (Real,),
    "leaf_keys": (list, type(None)),
    "several_leaves": (bool,),
}
_OPTIONAL: dict[str, tuple[type, ...]] = {
    "model_doubts": (list,),
    "model_rounding": (Real,),
    "model_noise": (Real,),
    "folded_kernels": (list,),
}
_COST_TEXT = ("layout",)


def require_whole(arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
    """Raise a ValueError that names the first part which cannot belong to an explanation."""
    for name, kinds in {**_TYPES, **{name: kinds for name, kinds in _OPTIONAL.items() if name in meta}}.items():
        if not isinstance(meta[name], kinds) or (Real in kinds and isinstance(meta[name], bool)):
            raise ValueError(f"{name} is a {type(meta[name]).__name__}")
    _require_meta(meta)
    shapes = [tuple(shape) for shape in meta["features"]["shapes"]]
    n, n_baselines = _length(arrays, "values"), _length(arrays, "baseline_weights")
    _require(arrays, "f_baselines", (n_baselines,))
    _require(arrays, "carriers", (n,))
    _require(arrays, "squared_distance", (n_baselines, n))
    _require(arrays, "departures", (len(arrays["departures"]), n))
    for name in ("values", "f_baselines", "baseline_weights", "squared_distance"):
        if not np.isfinite(arrays[name]).all():
            raise ValueError(f"{name} holds a number that is not finite")
    for name in ("values", "f_baselines", "baseline_weights", "ledger.value", "ledger.gradient"):
        if name in arrays and (np.abs(arrays[name]) > LARGEST_OUTPUT).any():
            raise ValueError(f"{name} holds a number beyond {LARGEST_OUTPUT:g}")
    for name in ("margin", "rounding"):
        if name in arrays:
            _require(arrays, name, (n,))
    for number, shape in enumerate(shapes):
        if len(shape) > _MOST_AXES or not all(type(side) is int and side >= 0 for side in shape):
            raise ValueError(f"the shape {shape} of input {number}")
        _require(arrays, f"x.{number}", shape, "biuf")
        _require(arrays, f"baselines.{number}", (n_baselines, *shape), "biuf")
        labels = arrays[f"labels.{number}"]
        if labels.dtype.kind not in "iu" or labels.size != np.prod(shape, dtype=object):
            raise ValueError(f"labels.{number} has the shape {labels.shape} and the type {labels.dtype}")
        if labels.size and not 0 <= int(labels.min()) <= int(labels.max()) < n:
            raise ValueError(f"labels.{number} holds a number out of range")
    if "folded_kernels" in meta:
        sums = (len(meta["folded_kernels"]), N_GROUPS, n)
        for name, shape in {"rays": sums, "weights": sums, "blocks": (N_GROUPS,)}.items():
            _require(arrays, f"folded.{name}", shape)
    elif "trees" in meta:
        _require_trees(arrays, n, n_baselines)
    elif arrays["ledger.masks"].shape[1:] != (n,):
        raise ValueError(f"ledger.masks has the shape {arrays['ledger.masks'].shape}")


def _require_trees(arrays: Mapping[str, NDArray[Any]], n: int, n_baselines: int) -> None:
    """The arrays of trees fit each other; the ensemble itself checks that its nodes form trees."""
    n_nodes, n_trees = len(arrays["trees.left"]), len(arrays["trees.roots"])
    groups = arrays["trees.groups"]
    n_columns = len(groups)
    for name in ("left", "right", "column", "category_start", "category_stop"):
        _require(arrays, f"trees.{name}", (n_nodes,), "i")
    for name, kinds in {"threshold": "f", "default_left": "b", "missing": "i", "other_left": "b"}.items():
        _require(arrays, f"trees.{name}", (n_nodes,), kinds)
    _require(arrays, "trees.values", (n_nodes, 1))
    _require(arrays, "trees.roots", (n_trees,), "i")
    _require(arrays, "trees.tree_weights", (n_trees,))
    _require(arrays, "trees.base", (1,))
    _require(arrays, "trees.category_left", (len(arrays["trees.category_left"]),), "i")
    _require(arrays, "trees.groups", (n_columns,), "i")
    _require(arrays, "trees.jumping", (n_columns,), "b")
    _require(arrays, "trees.of_rays.x", (n_columns,))
    _require(arrays, "trees.of_rays.baselines", (n_baselines, n_columns))
    _require(arrays, "trees.of_rays.weights", (n_baselines,))
    if int(groups.max(initial=-1)) + 1 != n:
        raise ValueError("trees.groups has another number of features")


def _require_meta(meta: Mapping[str, Any]) -> None:
    if not abs(meta["f_x"]) <= LARGEST_OUTPUT:
        raise ValueError("f_x is out of range")
    lowest = {"price": 1.0, "model_rounding": 0.0, "model_noise": 0.0}
    for name, least in lowest.items():
        if name in meta and not least <= meta[name] <= _LARGEST:  # JSON has whole numbers that no float can hold
            raise ValueError(f"{name} is out of range")
    known = meta["provenance"]
    numbers = ("tolerance", "atol", "level") if meta["reached"] is not None else ()
    for name in (*numbers, *(("max_seconds", "tolerance") if known.get("paced") else ())):
        if not isinstance(known.get(name), Real) or isinstance(known.get(name), bool):
            raise ValueError(f"provenance.{name} is not a number")
        if abs(known[name]) > _LARGEST:
            raise ValueError(f"provenance.{name} is out of range")
    if not isinstance(known.get("choices", []), list):
        raise ValueError("provenance.choices is not a list")
    names, shapes = meta["features"]["names"], meta["features"]["shapes"]
    if isinstance(names, dict) and not (
        isinstance(prefixes := names.get("prefixes"), list)
        and len(prefixes) == len(shapes)
        and all(isinstance(prefix, str) for prefix in prefixes)
    ):
        raise ValueError("the names of the features do not fit their shapes")
    for name, value in meta["cost"].items():
        if not isinstance(value, str if name in _COST_TEXT else Real) or isinstance(value, bool):
            raise ValueError(f"cost.{name} is {value!r}")
        if isinstance(value, Real) and not -_LARGEST <= value <= _LARGEST:  # type: ignore[operator]
            raise ValueError(f"cost.{name} is out of range")
    if not all(isinstance(part, str) for part in [*meta.get("model_doubts", ()), *(meta["leaf_keys"] or ())]):
        raise ValueError("model_doubts or leaf_keys hold something that is not text")
    if not isinstance(meta["features"]["kind"], str) or not isinstance(meta["features"]["shapes"], list):
        raise ValueError("features has no kind or no shapes")


def _length(arrays: Mapping[str, NDArray[Any]], name: str) -> int:
    _require(arrays, name, (len(arrays[name]),))
    return len(arrays[name])


def _require(arrays: Mapping[str, NDArray[Any]], name: str, shape: tuple[int, ...], kinds: str = "f") -> None:
    array = arrays[name]
    if array.shape != shape or array.dtype.kind not in kinds:
        raise ValueError(f"{name} has the shape {array.shape} and the type {array.dtype}")
