"""Statistics of a data set and of its classes, with intervals: what the page shows above the list."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.errors import GralisError
from gralis.many import Importance, Results, global_importance
from gralis.reading_room.judgements import class_number, label_text

__all__ = ["LEVEL", "groups", "strongest"]

LEVEL = 0.95
_MOST_CLASSES = 12  # that are compared with each other
_MOST_FEATURES = 40


def strongest(results: Results) -> tuple[NDArray[np.int64] | None, dict[str, Any]]:
    """The features with the largest mean |phi| and their statistics, or None and the reason why there are none."""
    try:
        everyone = global_importance(results)
    except GralisError as error:
        return None, {"missing": str(error)}
    kept = np.argsort(-everyone.mean_abs, kind="stable")[:_MOST_FEATURES]
    half = everyone.half_widths(LEVEL)
    shown: dict[str, Any] = {
        "n": everyone.n_inputs,
        "names": [everyone.names[i] for i in kept],
        "mean_abs": everyone.mean_abs[kept],
        "mean_abs_half": half["mean_abs"][kept],
        "mean": everyone.mean[kept],
        "mean_half": half["mean"][kept],
    }
    return kept, shown


def groups(results: Results, kept: NDArray[np.int64], by: str, classes: Sequence[str]) -> dict[str, Any]:
    """Mean phi of every class and of pairs of classes, with half-widths that hold for all features of a group.

    `by` is "label" or "target". The classes with the most inputs are compared.
    """
    importance = global_importance(results, by)
    largest = sorted(importance.classes, key=lambda name: -importance.classes[name].n)[:_MOST_CLASSES]
    shown = [_group(importance, name, kept) for name in largest]
    pairs = [
        {"a": a, "b": b, **_named(*importance.difference(largest[a], largest[b], LEVEL), kept)}
        for a, b in combinations(range(len(largest)), 2)
    ]
    for group in shown:
        number = class_number(group["name"])
        group["name"] = label_text(group["name"] if by == "label" or number is None else str(number), classes)
    return {"by": by, "n_classes": len(importance.classes), "classes": shown, "pairs": pairs}


def _group(importance: Importance, name: str, kept: NDArray[np.int64]) -> dict[str, Any]:
    one = importance.of_class(name)
    return {"name": name, "n": one.n_inputs, **_named(one.mean, one.half_widths(LEVEL)["mean"], kept)}


def _named(mean: Any, half: Any, kept: NDArray[np.int64]) -> dict[str, Any]:
    return {"mean": mean[kept], "half": half[kept]}
