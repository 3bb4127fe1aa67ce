"""A tree ensemble as plain arrays: F(x) = (base + sum over trees of weight * value of the leaf of x) / divisor."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.errors import GralisError, bad
from gralis.trees.columns import Columns
from gralis.trees.decisions import NUMBER, directions, missing_entries

__all__ = ["Ints", "TreeEnsemble"]

Ints = NDArray[np.int64]
_NODE_ARRAYS = (
    *("left", "right", "column", "threshold", "default_left", "missing"),
    *("category_start", "category_stop", "other_left", "values"),
)
_BLOCK = 8192  # nodes that are looked at together, so that they stay in the cache
_CELLS = 2**22  # rows times nodes of which the directions are known at a time


@dataclass(frozen=True, eq=False, repr=False)
class TreeEnsemble:
    """F(x) = (base + sum over trees of weight * value of the leaf that x reaches) / divisor, as plain arrays.

    The nodes of all trees stand one after the other, each parent before its children. A leaf has the children -1.
    `gralis.models.trees` reads it from an estimator.

    Attributes
    ----------
    roots : array of int of shape (n_trees,)
        The node at which each tree begins.
    left, right : array of int of shape (n_nodes,)
        The children of every node.
    column : array of int of shape (n_nodes,)
        The column that a node compares; 0 for a leaf.
    threshold : array of shape (n_nodes,)
        The number with which it compares. Smaller numbers go left, and equal ones too if `inclusive`.
    default_left : array of bool of shape (n_nodes,)
        Whether a missing value goes left.
    missing : array of int of shape (n_nodes,)
        What counts as missing at a node: 0 nothing (NaN stands for the number 0), 1 NaN, 2 NaN and zero.
    category_start, category_stop : array of int of shape (n_nodes,)
        Which part of `category_left` belongs to a node that compares categories; both are -1 where it compares numbers.
    category_left : array of int of shape (n_entries,)
        1 if the category with this code goes left, 0 if it goes right, and -1 if it goes where `other_left` says.
    other_left : array of bool of shape (n_nodes,)
        Whether a category without an entry goes left.
    values : array of shape (n_nodes, n_outputs)
        The values of the leaves, 0 elsewhere.
    tree_weights : array of shape (n_trees,)
        The factor of every tree.
    base : array of shape (n_outputs,)
        What is added to the sum.
    divisor : float
        By what the sum is divided: the number of trees if they are averaged.
    inclusive : bool
        Whether x <= threshold goes left, or only x < threshold.
    single : bool
        Whether the library rounds numbers to float32 before it compares them.
    columns : Columns
        The names of the columns and how a table becomes numbers.
    groups : array of int of shape (n_columns,)
        The feature to which each column belongs. Columns of one feature are exchanged together.
    jumping : array of bool of shape (n_columns,)
        Which columns jump half-way between baseline and input instead of moving, such as categories.
    link : str
        What turns the output into a prediction: "identity", "logistic", "softmax", "exp" or the name of another link.
    classes : tuple
        The classes of a classifier, or nothing.
    source : str
        The library and the kind of estimator.
    """

    roots: Ints
    left: Ints
    right: Ints
    column: Ints
    threshold: Array
    default_left: NDArray[np.bool_]
    missing: NDArray[np.int8]
    category_start: Ints
    category_stop: Ints
    category_left: NDArray[np.int8]
    other_left: NDArray[np.bool_]
    values: Array
    tree_weights: Array
    base: Array
    divisor: float
    inclusive: bool
    single: bool
    columns: Columns
    groups: Ints
    jumping: NDArray[np.bool_]
    link: str = "identity"
    classes: tuple[Any, ...] = ()
    source: str = ""

    @property
    def n_trees(self) -> int:
        return len(self.roots)

    @property
    def n_nodes(self) -> int:
        return len(self.left)

    @property
    def n_outputs(self) -> int:
        return int(self.values.shape[1])

    @property
    def n_columns(self) -> int:
        return len(self.groups)

    @cached_property
    def n_features(self) -> int:
        return int(self.groups.max(initial=-1)) + 1

    @cached_property
    def depth(self) -> int:
        """The largest number of comparisons on a path."""
        depth, nodes = 0, self.roots
        while len(nodes := nodes[self.left[nodes] >= 0]):
            nodes, depth = np.concatenate([self.left[nodes], self.right[nodes]]), depth + 1
        return depth

    @cached_property
    def zero_is_missing(self) -> NDArray[np.bool_]:
        """The columns in which some node takes zero for missing, (n_columns,)."""
        found = np.zeros(self.n_columns, dtype=bool)
        found[self.column[(self.missing == 2) & (self.left >= 0)]] = True
        return found

    @cached_property
    def effective(self) -> Array:
        """weight * value / divisor of every node, (n_nodes, n_outputs)."""
        tree = np.searchsorted(self.roots, np.arange(self.n_nodes), side="right") - 1
        return np.asarray(self.values * (self.tree_weights[tree] / self.divisor)[:, None])

    def encode(self, X: object) -> Array:
        """A table as the numbers that the nodes compare, (n_rows, n_columns).

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_columns)
            The rows. Categories become their codes; a category that the model does not know becomes NaN.

        Returns
        -------
        array of shape (n_rows, n_columns)
            Rounded to float32 if the library does so.
        """
        numbers = self.columns.encode(X)
        with np.errstate(over="ignore"):
            return numbers.astype(np.float32).astype(np.float64) if self.single else numbers

    def predict(self, X: object) -> Array:
        """The raw output of the library for every row, before any link function.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_columns)
            The rows.

        Returns
        -------
        array of shape (n_rows,) or (n_rows, n_outputs)
            One axis if there is a single output.
        """
        total = self.outputs(self.encode(X))
        return total[:, 0] if self.n_outputs == 1 else total

    def outputs(self, numbers: Array) -> Array:
        """The raw outputs of encoded rows, (n_rows, n_outputs)."""
        total = np.tile(self.base, (len(numbers), 1))
        for part in self.blocks:
            step = max(1, _CELLS // max(part.n_nodes, 1))
            for start in range(0, len(numbers), step):
                rows = slice(start, start + step)
                part._add_to(total[rows], numbers[rows])
        return np.asarray(total / self.divisor)

    def _add_to(self, total: Array, numbers: Array) -> None:
        """Add the trees one after the other, as the libraries do."""
        goes_left, every = self.directions(numbers), np.arange(len(numbers))
        for root, weight in zip(self.roots, self.tree_weights, strict=True):
            node = np.full(len(numbers), root)
            while (inner := self.left[node] >= 0).any():
                step = np.where(goes_left[every, node], self.left[node], self.right[node])
                node = np.where(inner, step, node)
            total += weight * self.values[node]

    def directions(self, numbers: Array) -> NDArray[np.bool_]:
        """Whether each encoded row goes left at each node, (n_rows, n_nodes)."""
        return directions(self, numbers)

    def missing_entries(self, numbers: Array) -> NDArray[np.bool_]:
        """Which entries of encoded rows count as missing, (n_rows, n_columns)."""
        return missing_entries(self, numbers)

    def squared_distance(self, x: Array, baselines: Array) -> Array:
        """The squared distance of encoded x from each baseline, feature by feature, (n_baselines, n_features).

        A column that moves counts (x - x')^2. What jumps in a feature, because it is a category or a value is missing,
        counts 1 together if anything of it differs.
        """
        apart = ~((x == baselines) | (np.isnan(x) & np.isnan(baselines)))
        moves = ~(self.jumping | np.isnan(x) | np.isnan(baselines))
        with np.errstate(invalid="ignore", over="ignore"):
            squared = np.where(moves, (x - baselines) ** 2, 0.0)
        total, jumps = np.zeros((len(baselines), self.n_features)), np.zeros((len(baselines), self.n_features))
        np.add.at(total.T, self.groups, squared.T)
        np.maximum.at(jumps.T, self.groups, (apart & ~moves).T)
        return total + jumps

    def select(self, output: int, sign: float = 1.0) -> TreeEnsemble:
        """The ensemble of one output, without the trees that do not change it; `sign` multiplies the output."""
        values = sign * self.values[:, [output]]
        used = np.add.reduceat(np.abs(values[:, 0]), self.roots) > 0 if self.n_trees else np.zeros(0, dtype=bool)
        whole = replace(self, values=values, base=sign * self.base[[output]])
        return whole if used.all() else whole.trees(np.flatnonzero(used))

    def grouped(self, groups: Sequence[int] | Ints, jumping: Sequence[bool] | NDArray[np.bool_] = ()) -> TreeEnsemble:
        """The same trees, of which several columns make one feature.

        Parameters
        ----------
        groups : array of int of shape (n_columns,)
            The feature of every column: 0, 1, ... without gaps.
        jumping : array of bool of shape (n_columns,), optional
            Columns that jump half-way, besides those that already do.

        Returns
        -------
        TreeEnsemble
        """
        features = np.asarray(groups, dtype=np.int64)
        if features.shape != (self.n_columns,) or set(features.tolist()) != set(range(len(set(features.tolist())))):
            raise bad("groups", "grouped", f"{self.n_columns} numbers 0, 1, ... without gaps", repr(groups))
        more = np.asarray(jumping, dtype=bool) if len(jumping) else np.zeros(self.n_columns, dtype=bool)
        return replace(self, groups=features, jumping=self.jumping | more)

    def trees(self, numbers: Sequence[int] | Ints) -> TreeEnsemble:
        """The ensemble of these trees only; base and divisor stay."""
        numbers = np.asarray(numbers, dtype=np.int64)
        ends = np.append(self.roots, self.n_nodes)
        nodes = np.concatenate([np.arange(ends[t], ends[t + 1]) for t in numbers]) if len(numbers) else np.zeros(0, int)
        lengths = ends[numbers + 1] - ends[numbers]
        roots = np.cumsum(np.append(0, lengths))[:-1].astype(np.int64)
        shift = np.repeat(roots - self.roots[numbers], lengths)
        moved: dict[str, Any] = {
            name: np.where(getattr(self, name)[nodes] >= 0, getattr(self, name)[nodes] + shift, -1)
            for name in ("left", "right")
        }
        same: dict[str, Any] = {name: getattr(self, name)[nodes] for name in _NODE_ARRAYS if name not in moved}
        return replace(self, roots=roots, tree_weights=self.tree_weights[numbers], **moved, **same)

    @cached_property
    def blocks(self) -> tuple[TreeEnsemble, ...]:
        """The same trees in parts of some thousand nodes, or of one tree if it is larger."""
        ends, first, parts = np.append(self.roots, self.n_nodes), 0, []
        if self.n_nodes <= _BLOCK:
            return (self,)
        while first < self.n_trees:
            last = max(first + 1, int(np.searchsorted(ends, ends[first] + _BLOCK, side="right")) - 1)
            parts.append(self.trees(np.arange(first, last)))
            first = last
        return tuple(parts)

    def __post_init__(self) -> None:
        inner = self.left >= 0
        if not np.isfinite(self.values).all() or not np.isfinite(self.base).all():
            raise GralisError("The trees have leaves that are not finite numbers, so they cannot be explained.")
        own, ends = np.flatnonzero(inner), np.append(self.roots, self.n_nodes)
        if self.n_trees and (self.roots[0] != 0 or (np.diff(ends) < 1).any()):
            raise GralisError("The roots of a tree ensemble must say where each tree begins, in order and from 0 on.")
        last = ends[np.searchsorted(self.roots, own, side="right")]  # the loops over nodes do not check their bounds
        if any((child[inner] <= own).any() or (child[inner] >= last).any() for child in (self.left, self.right)):
            raise GralisError("The nodes of a tree must stand together and in order, each parent before its children.")
        features = np.unique(self.groups)
        if (
            (self.column < 0).any()
            or (self.column >= self.n_columns).any()
            or (features != np.arange(len(features))).any()
        ):
            raise GralisError("The columns and the groups of a tree ensemble must be numbers 0, 1, ... without gaps.")
        stop = self.category_stop
        if (
            (stop > len(self.category_left)).any()
            or (self.category_start > stop).any()
            or (self.category_start < -1).any()
        ):
            raise GralisError("The categories of a tree ensemble must lie inside its table.")

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The arrays by name; `about` has the rest."""
        return {
            field.name: value for field in fields(self) if isinstance(value := getattr(self, field.name), np.ndarray)
        }

    def about(self) -> dict[str, Any]:
        """What is not an array, in plain values."""
        rest = ("divisor", "inclusive", "single", "link", "classes", "source")
        known: Columns = getattr(self.columns, "inner", self.columns)  # the steps of a pipeline are not stored
        columns = {name: getattr(known, name) for name in ("names", "named", "categories", "closed")}
        absent = None if np.isnan(known.absent) else known.absent
        return {**{name: getattr(self, name) for name in rest}, "columns": {**columns, "absent": absent}}

    @staticmethod
    def stored(arrays: Mapping[str, Any], about: Mapping[str, Any]) -> TreeEnsemble:
        """The ensemble of which `arrays` and `about` were kept."""
        columns = about["columns"]
        categories = tuple(None if known is None else tuple(known) for known in columns["categories"])
        absent = float("nan") if columns["absent"] is None else columns["absent"]
        rest = {**about, "classes": tuple(about["classes"])}
        rest["columns"] = Columns(
            tuple(columns["names"]), columns["named"], categories, absent, columns.get("closed", False)
        )
        return TreeEnsemble(**arrays, **rest)

    def fingerprint(self) -> str:
        """sha256 of the trees: equal for ensembles that compute the same sums in the same order."""
        digest = hashlib.sha256(f"{self.divisor}|{self.inclusive}|{self.single}".encode())
        for name in (*_NODE_ARRAYS, "roots", "category_left", "tree_weights", "base", "groups", "jumping"):
            digest.update(np.ascontiguousarray(getattr(self, name)).tobytes())
        return f"trees {digest.hexdigest()}"

    def __repr__(self) -> str:
        outputs = "1 output" if self.n_outputs == 1 else f"{self.n_outputs} outputs"
        trees = "1 tree" if self.n_trees == 1 else f"{self.n_trees} trees"
        of = f" of {self.source}" if self.source else ""
        return f"TreeEnsemble({trees}{of}, depth {self.depth}, {self.n_columns} columns, {outputs})"

    @staticmethod
    def of_nodes(nodes: dict[str, Any], **about: Any) -> TreeEnsemble:
        """An ensemble from arrays that a reader collected; what is left out means numbers and missing NaN."""
        left = np.asarray(nodes["left"], dtype=np.int64)
        n = len(left)
        columns: Columns = about["columns"]
        start = np.asarray(nodes.get("category_start", np.full(n, NUMBER)), dtype=np.int64)
        column = np.where(left >= 0, np.asarray(nodes["column"], dtype=np.int64), 0)
        jumping = np.zeros(columns.n_columns, dtype=bool)
        jumping[column[(start >= 0) & (left >= 0)]] = True
        return TreeEnsemble(
            roots=np.asarray(nodes["roots"], dtype=np.int64),
            left=left,
            right=np.asarray(nodes["right"], dtype=np.int64),
            column=column,
            threshold=np.asarray(nodes["threshold"], dtype=np.float64),
            default_left=np.asarray(nodes["default_left"], dtype=bool),
            missing=np.asarray(nodes.get("missing", np.ones(n)), dtype=np.int8),
            category_start=start,
            category_stop=np.asarray(nodes.get("category_stop", np.full(n, NUMBER)), dtype=np.int64),
            category_left=np.asarray(nodes.get("category_left", ()), dtype=np.int8),
            other_left=np.asarray(nodes.get("other_left", np.zeros(n)), dtype=bool),
            values=np.asarray(nodes["values"], dtype=np.float64),
            tree_weights=np.asarray(about.pop("tree_weights", np.ones(len(nodes["roots"]))), dtype=np.float64),
            base=np.asarray(about.pop("base"), dtype=np.float64),
            groups=np.arange(columns.n_columns),
            jumping=jumping | columns.categorical,
            **about,
        )
