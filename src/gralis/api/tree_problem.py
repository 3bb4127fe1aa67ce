"""What is explained if the model is a tree ensemble: the row, the background and the output, as the trees see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gralis.arrays import Array, describe, to_numpy
from gralis.baselines import Baselines
from gralis.baselines import resolve as resolve_baseline
from gralis.baselines.background import CodedRows, coded_rows
from gralis.checks import is_whole
from gralis.errors import GralisError, bad
from gralis.features import Features, columns
from gralis.features import resolve as resolve_features
from gralis.models import blackbox
from gralis.problem import Problem
from gralis.tables import TableCoding, TableColumn
from gralis.tables.rows import is_frame, is_records, is_table
from gralis.targets import Target
from gralis.trees import TreeEnsemble
from gralis.trees.columns import Columns
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

    @classmethod
    def build(cls, trees: TreeEnsemble, x: Any, baseline: Any, features: Any) -> TreeProblem:
        """Check the row, the background and the features, and encode them."""
        problems = cls.of_table(trees, x, baseline, features)
        if len(problems) != 1:
            raise bad("x", "explain", "one row of a table, such as frame.iloc[[0]]", f"{len(problems)} rows")
        if not problems[0].squared_distance.any():
            raise GralisError("x equals the baseline everywhere, so there is no difference to explain; choose another.")
        return problems[0]

    @classmethod
    def of_table(cls, trees: TreeEnsemble, x: Any, baseline: Any, features: Any) -> list[TreeProblem]:
        """The same question about every row of a table. A row that equals the baseline has the answer 0."""
        rows = _coded(trees, x, baseline)
        encoded, names = _encoded(trees, rows.coding.decode(rows.x), "x"), rows.coding.names
        shown, shown_rows = rows.coding, rows.x
        if isinstance(rows.baseline, Baselines):
            shown_baselines = to_numpy(rows.baseline.points[0]).astype(np.float64)
            baselines = _encoded(trees, shown.decode(shown_baselines), "baseline")
            weights, name = np.array(rows.baseline.weights), rows.baseline.name
        elif isinstance(trees.columns, PipelineColumns):
            raise bad("baseline", "explain", "rows of the table that the pipeline takes", describe(rows.baseline))
        else:
            found = resolve_baseline(rows.baseline, (np.nan_to_num(encoded[0]),), x_user=x)
            baselines = shown_baselines = _encoded(trees, to_numpy(found.points[0]).astype(np.float64), "baseline")
            weights, name = np.full(len(baselines), 1 / len(baselines)), found.name
            if any(column.coded for column in shown.columns):  # a constant stands for a code of the model
                shown, shown_rows = _codes_of(trees, names), encoded
        trees, partition = _with_features(trees, names, features)
        problems = [
            cls(trees, row, partition, baselines, weights, name, shown, seen, shown_baselines)
            for row, seen in zip(encoded, shown_rows, strict=True)
        ]
        if any(not np.isfinite(one.squared_distance.sum(1)).all() for one in problems):
            raise GralisError("x is so far from the baseline that their squared distance overflows; rescale the input.")
        return problems

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


def _coded(trees: TreeEnsemble, x: Any, baseline: Any) -> CodedRows:
    """The rows and the background as numbers of one coding, in which a missing value stays NaN."""
    known = trees.columns
    tables = is_frame(baseline) or is_records(x) or is_table(x)
    rows = coded_rows(
        x,
        baseline,
        known.names if known.named else (),
        known.n_columns,
        frames=tables or (isinstance(known, PipelineColumns) and known.named),
        unnamed=known.names,
        own_codes=True,
    )
    gaps = np.array([np.nan if column.missing is None else column.missing for column in rows.coding.columns])
    points = rows.baseline
    if isinstance(points, Baselines):
        numbers = to_numpy(points.points[0])
        points = replace(points, points=(torch.from_numpy(np.where(numbers == gaps, np.nan, numbers)),))
    shown = tuple(_as_codes(column, k, known) for k, column in enumerate(rows.coding.columns))
    coding = replace(rows.coding, columns=shown)
    return replace(rows, coding=coding, x=np.where(rows.x == gaps, np.nan, rows.x), baseline=points)


def _as_codes(column: TableColumn, place: int, known: Columns) -> TableColumn:
    """The column without a number for missing values; numbers in the place of texts are codes of these."""
    texts = known.categories[place]
    is_code = texts and not column.coded and any(isinstance(text, str) for text in texts)
    return TableColumn(column.name, tuple(texts)) if texts and is_code else replace(column, missing=None)


def _encoded(trees: TreeEnsemble, rows: Any, parameter: str) -> Array:
    """The rows as the nodes compare them, which are finite numbers or NaN."""
    numbers = trees.encode(rows)
    infinite = np.argwhere(np.isinf(numbers))
    if len(infinite):
        column = trees.columns.names[_owners(trees)[infinite[0, 1]]]
        size = " of the size of a float32" if trees.single else ""
        allowed = f"made of finite numbers{size}, and NaN where a value is missing, also in column {column!r}"
        raise bad(parameter, "explain", allowed, f"{numbers[tuple(infinite[0])]:g}")
    return numbers


def _owners(trees: TreeEnsemble) -> NDArray[np.int64]:
    """The column of the table from which each compared column comes."""
    return trees.groups if isinstance(trees.columns, PipelineColumns) else np.arange(trees.n_columns)


def _codes_of(trees: TreeEnsemble, names: Sequence[str]) -> TableCoding:
    """The columns of the trees, with the categories behind their codes."""
    pairs = zip(names, trees.columns.categories, strict=True)
    return TableCoding.of_codes([TableColumn(name, tuple(entries or ())) for name, entries in pairs])


def _with_features(trees: TreeEnsemble, names: Sequence[str], features: Any) -> tuple[TreeEnsemble, Features]:
    """The trees of which these columns of the table make the features, and the features."""
    owners = trees.groups
    if features is not None:
        partition = resolve_features(features, ((len(names),),))
        labels = partition.labels[0][owners]
        return trees.grouped(labels, partition.discrete[labels]), partition
    jumping = [i for i in range(len(names)) if trees.jumping[owners == i].all()]
    return trees, columns(names).jumping(jumping) if jumping else columns(names)
