"""What is explained if the model is a tree ensemble: the row, the background and the output, as the trees see them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from gralis.arrays import Array, describe, to_numpy
from gralis.baselines import Baselines
from gralis.baselines import resolve as resolve_baseline
from gralis.baselines.distribution import Sample
from gralis.checks import is_whole
from gralis.errors import GralisError, bad
from gralis.features import Features, columns
from gralis.features import resolve as resolve_features
from gralis.models import blackbox
from gralis.problem import Problem
from gralis.tables import TableCoding, TableColumn
from gralis.tables.rows import is_frame, pandas
from gralis.targets import Target
from gralis.trees import TreeEnsemble
from gralis.trees.pipelines import PipelineColumns

__all__ = ["TreeProblem", "is_margin", "outputs_of"]


def is_margin(target: object) -> bool:
    """Whether a target is a raw output: None, a number or name of a class, "predicted", "all", or a list of these."""
    if isinstance(target, list):
        return all(is_margin(each) for each in target)
    return target is None or isinstance(target, str) or is_whole(target)


def outputs_of(trees: TreeEnsemble, x: Array, target: Any) -> list[tuple[Target, int, float]]:
    """Each target with the output that it selects and its sign. Class 0 of two classes is minus the only margin."""
    n_classes = max(len(trees.classes), trees.n_outputs)
    if isinstance(target, list) or target == "all":
        each = target if isinstance(target, list) else list(range(n_classes)) if n_classes > 1 else [None]
        if not each or len(set(each)) < len(each):
            raise bad("target", "explain", "a list of different targets", repr(target))
        return [outputs_of(trees, x, one)[0] for one in each]
    if target == "predicted":
        outputs = trees.outputs(x[None])[0]
        target = None if n_classes == 1 else int(outputs[0] > 0) if len(outputs) == 1 else int(outputs.argmax())
    elif isinstance(target, str):
        names = [str(name) for name in trees.classes]
        if target not in names:
            raise bad(
                "target",
                "explain",
                f"one of the classes {', '.join(map(repr, names)) or 'of a classifier'}",
                repr(target),
            )
        target = names.index(target)
    if target is None:
        if trees.n_outputs > 2 or (trees.n_outputs == 2 and len(trees.classes) != 2):
            raise GralisError(
                f"The trees have {trees.n_outputs} outputs; choose one with target=k (0..{trees.n_outputs - 1}), the "
                f"name of a class, 'predicted' or 'all'."
            )
        return [(None, trees.n_outputs - 1, 1.0)]
    if n_classes == 1:
        raise GralisError(f"The trees have one output, so target={target} has no choice; use target=None.")
    if not is_whole(target, -n_classes, n_classes - 1):
        raise bad("target", "explain", f"a class from 0 to {n_classes - 1}, or its name", repr(target))
    k = int(target) % n_classes
    return [(int(target), 0, 1.0 if k else -1.0) if trees.n_outputs == 1 else (int(target), k, 1.0)]


@dataclass(frozen=True, eq=False)
class TreeProblem:
    """One row, its background and its features, encoded as the trees compare them.

    Attributes
    ----------
    trees : TreeEnsemble
        The ensemble; its groups are the features.
    x : array of shape (n_columns,)
        The encoded row.
    features : Features
        The features of the explanation.
    baselines : array of shape (n_baselines, n_columns)
        The encoded background.
    weights : array of shape (n_baselines,)
        The weights of the background rows.
    baseline_name : str
        How the provenance names the background.
    shown : TableCoding
        The columns as the user knows them, with the categories behind their codes.
    shown_x : array of shape (n_table_columns,)
        The row in these codes.
    shown_baselines : array of shape (n_baselines, n_table_columns)
        The background in these codes.
    background : array or data frame
        The background as it was given.
    """

    trees: TreeEnsemble
    x: Array
    features: Features
    baselines: Array
    weights: Array
    baseline_name: str
    shown: TableCoding
    shown_x: Array
    shown_baselines: Array
    background: Any

    @classmethod
    def build(cls, trees: TreeEnsemble, x: Any, baseline: Any, features: Any) -> TreeProblem:
        """Check the row, the background and the features, and encode them."""
        given = _table_of_one(x, trees, "x")
        row, names = trees.encode(given)[0], trees.columns.names
        background, numbers, weights, name = _background(trees, row, x, baseline)
        owners = trees.groups  # of each compared column: the column of the table
        if features is None:
            jumping = [i for i in range(len(names)) if trees.jumping[owners == i].all()]
            partition = columns(names).jumping(jumping) if jumping else columns(names)
        else:
            partition = resolve_features(features, ((len(names),),))
            labels = partition.labels[0][owners]
            trees = trees.grouped(labels, partition.discrete[labels])
        pairs = zip(names, trees.columns.categories, strict=True)
        codes = TableCoding.of_codes([TableColumn(column, tuple(entries or ())) for column, entries in pairs])
        every = cls(trees, row, partition, numbers, weights, name, codes, row, numbers, background)
        (problem,) = every.at_rows(given)
        if not problem.squared_distance.any():
            raise GralisError("x equals the baseline everywhere, so there is no difference to explain; choose another.")
        return problem

    def at_rows(self, rows: Any) -> list[TreeProblem]:
        """The same question about every row of a table."""
        encoded, names = self.trees.encode(rows), self.trees.columns.names
        if not isinstance(self.trees.columns, PipelineColumns):
            return [replace(self, x=row, shown_x=row) for row in encoded]
        given, background = (_framed(part, rows, names) for part in (rows, self.background))
        coding = TableCoding.of(given, background, names, "frame" if is_frame(given) else "array")
        shown, baselines = coding.encode(given), coding.encode(background)
        return [
            replace(self, x=row, shown=coding, shown_x=seen, shown_baselines=baselines)
            for row, seen in zip(encoded, shown, strict=True)
        ]

    @property
    def squared_distance(self) -> Array:
        """The squared distance of x from each baseline, feature by feature, (n_baselines, n_features)."""
        return self.trees.squared_distance(self.x, self.baselines)

    def as_problem(self, targets: tuple[Target, ...]) -> Problem:
        """The same question about the black box that computes the trees on encoded rows."""
        points = (torch.from_numpy(self.shown_baselines),)
        return Problem(
            blackbox(self.trees.outputs, targets[0]),
            (torch.from_numpy(self.shown_x),),
            Baselines(points, self.weights, self.baseline_name),
            self.features,
            torch.Tensor,
            targets,
            (torch.float64,),
            table=self.shown,
        )

    def class_of(self, target: Target) -> str | None:
        """The name of the class that a target belongs to; None if the trees have no classes."""
        names = self.trees.classes
        number = len(names) - 1 if target is None and len(names) == 2 else target
        return str(names[number]) if isinstance(number, int) and len(names) else None


def _table_of_one(x: Any, trees: TreeEnsemble, parameter: str) -> Any:
    """A row in any form as a table of one row."""
    names = trees.columns.names
    if isinstance(x, Mapping):
        if set(map(str, x)) != set(names):
            raise bad(parameter, "explain", f"a dict with the columns {list(names)}", f"keys {list(map(str, x))}")
        by_name = {str(name): value for name, value in x.items()}
        entries: list[Any] = [by_name[name] for name in names]
        return np.array([entries], dtype=object)
    if hasattr(x, "iloc"):  # a series or a data frame
        if getattr(x, "ndim", 2) == 1:
            return x.to_frame().T
        if len(x) != 1:
            raise bad(parameter, "explain", "one row of a table, such as frame.iloc[[0]]", f"{len(x)} rows")
        return x
    row = to_numpy(x)
    if row.shape != (len(names),):
        raise bad(parameter, "explain", f"one row of {len(names)} columns", describe(row))
    return row[None]


def _background(trees: TreeEnsemble, row: Array, x: Any, baseline: Any) -> tuple[Any, Array, Array, str]:
    """The background as it was given, encoded, its weights, and its name."""
    if isinstance(baseline, Baselines):
        numbers = to_numpy(baseline.points[0]).astype(np.float64)
        return numbers, numbers, np.array(baseline.weights), baseline.name
    n_columns = len(trees.columns.names)
    if isinstance(baseline, Sample):
        table, chosen, name = baseline.X, baseline.rows(), repr(baseline)
        rows = table.iloc[chosen] if hasattr(table, "iloc") else to_numpy(table)[chosen]
    elif getattr(baseline, "ndim", 0) == 2 or _is_table(baseline):
        rows, name = baseline if hasattr(baseline, "iloc") else to_numpy(baseline), f"{len(baseline)} rows of the table"
    elif isinstance(baseline, Mapping) or hasattr(baseline, "iloc") or np.shape(baseline) == (n_columns,):
        rows, name = _table_of_one(baseline, trees, "baseline"), "one row of the table"
    elif isinstance(trees.columns, PipelineColumns):
        raise bad("baseline", "explain", "rows of the table that the pipeline takes", describe(baseline))
    else:
        found = resolve_baseline(baseline, (np.nan_to_num(row),), x_user=x)
        rows, name = to_numpy(found.points[0]).astype(np.float64), found.name
    if not len(rows):
        raise bad("baseline", "explain", "at least one row", "an empty table")
    return rows, trees.encode(rows), np.full(len(rows), 1 / len(rows)), name


def _is_table(baseline: Any) -> bool:
    """Whether this is a list of rows."""
    return isinstance(baseline, list) and bool(baseline) and np.ndim(baseline[0]) == 1


def _framed(part: Any, row: Any, names: Sequence[str]) -> Any:
    """The rows as a data frame, if the row is one or has entries that are not numbers."""
    if is_frame(part):
        return part.infer_objects()
    if is_frame(row) or to_numpy(row).dtype.kind == "O":
        return pandas().DataFrame(to_numpy(part), columns=list(names)).infer_objects()
    return to_numpy(part)
