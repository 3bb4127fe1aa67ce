"""The nodes of several trees, collected one tree after the other while a reader walks through a model."""

from __future__ import annotations

from typing import Any

import numpy as np

from gralis.trees.decisions import NUMBER

__all__ = ["NodeLists"]


class NodeLists:
    """Arrays of nodes under construction; `add_tree` appends one tree whose node numbers begin at 0."""

    _NAMES = (
        *("left", "right", "column", "threshold", "default_left", "missing"),
        *("category_start", "category_stop", "other_left", "values"),
    )

    def __init__(self, n_outputs: int) -> None:
        self._parts: dict[str, list[Any]] = {name: [] for name in self._NAMES}
        self._categories: list[int] = []
        self._roots: list[int] = []
        self._n_nodes, self._n_outputs = 0, n_outputs

    def categories(self, sides: Any) -> tuple[int, int]:
        """Store where each category goes, and return the part of the table that holds it."""
        start = len(self._categories)
        self._categories.extend(int(side) for side in sides)
        return start, len(self._categories)

    def add_tree(self, left: Any, right: Any, column: Any, threshold: Any, values: Any, **more: Any) -> None:
        """Append a tree. `values` has one row per node, (n_nodes, n_outputs)."""
        left, right = np.asarray(left, dtype=np.int64), np.asarray(right, dtype=np.int64)
        n = len(left)
        values = np.where((left < 0)[:, None], np.asarray(values, dtype=np.float64).reshape(n, self._n_outputs), 0.0)
        tree = {
            "left": np.where(left >= 0, left + self._n_nodes, -1),
            "right": np.where(left >= 0, right + self._n_nodes, -1),
            "column": np.where(left >= 0, column, 0),
            "threshold": np.where(left >= 0, threshold, 0.0),
            "values": values,
            "default_left": np.zeros(n, dtype=bool),
            "missing": np.ones(n, dtype=np.int8),
            "category_start": np.full(n, NUMBER),
            "category_stop": np.full(n, NUMBER),
            "other_left": np.zeros(n, dtype=bool),
            **more,
        }
        for name, part in tree.items():
            self._parts[name].append(np.asarray(part))
        self._roots.append(self._n_nodes)
        self._n_nodes += n

    def arrays(self) -> dict[str, Any]:
        """All nodes, for `TreeEnsemble.of_nodes`."""
        joined = {name: np.concatenate(parts) if parts else np.zeros(0) for name, parts in self._parts.items()}
        if not self._roots:
            joined["values"] = np.zeros((0, self._n_outputs))
        return {**joined, "roots": self._roots, "category_left": self._categories}
