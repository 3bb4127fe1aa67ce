"""Pipelines of scikit-learn that prepare each column by itself before a tree ensemble: a column stays one feature.

A scaled or imputed column moves along the ray as the column does. The columns of a one-hot code and ordinal codes jump
half-way, and all columns that come from one column of the table are exchanged together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.tables.rows import is_frame, typed
from gralis.trees.columns import Columns
from gralis.trees.ensemble import TreeEnsemble

__all__ = ["PipelineColumns", "is_pipeline", "through_pipeline"]

_SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")
_CODES = ("OrdinalEncoder", "TargetEncoder")


class _Column(NamedTuple):
    """A column inside a pipeline: the column of the table from which it comes, and whether it jumps."""

    owner: int
    jumps: bool


@dataclass(frozen=True, eq=False)
class PipelineColumns(Columns):
    """The columns of the table that a pipeline takes; `encode` prepares them as the pipeline does.

    Attributes
    ----------
    before : object
        The fitted steps before the trees.
    inner : Columns
        The columns that the trees compare.
    n_dropped : int
        How many columns of the table the steps drop. Each has a column of zeros after the others, so that it remains a
        feature, which contributes nothing.
    """

    before: Any = None
    inner: Columns = field(default_factory=lambda: Columns((), False, ()))
    n_dropped: int = 0

    def encode(self, X: Any) -> Array:
        """The rows as the trees see them, (n_rows, n_inner_columns)."""
        self.entries(X)
        if self.named and not hasattr(X, "iloc"):
            import pandas

            X = pandas.DataFrame(np.asarray(X), columns=list(self.names))
        try:
            prepared = self.before.transform(typed(X) if is_frame(X) else X)
        except Exception as error:  # a step raises whatever it wants to
            said = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".: ")
            raise GralisError(f"The pipeline cannot prepare these rows: {said}.") from error
        numbers = self.inner.encode(prepared.toarray() if hasattr(prepared, "toarray") else np.asarray(prepared))
        return np.concatenate([numbers, np.zeros((len(numbers), self.n_dropped))], axis=1)


def is_pipeline(estimator: object) -> bool:
    """Whether the estimator is a pipeline of scikit-learn."""
    kinds = ((base.__module__.partition(".")[0], base.__name__) for base in type(estimator).__mro__)
    return ("sklearn", "Pipeline") in kinds


def through_pipeline(pipeline: Any, trees: TreeEnsemble) -> TreeEnsemble:
    """The trees of the last step as functions of the columns that the whole pipeline takes."""
    before = pipeline[:-1]
    names = getattr(pipeline, "feature_names_in_", None)
    outer = Columns.plain(int(pipeline.n_features_in_), names)
    columns = _through(before, [_Column(i, False) for i in range(outer.n_columns)])
    if len(columns) != trees.n_columns:
        raise _refusal(before, f"makes {trees.n_columns} columns where {len(columns)} are expected")
    owners = np.array([column.owner for column in columns], dtype=np.int64)
    dropped = np.setdiff1d(np.arange(outer.n_columns), owners)
    jumping = trees.jumping | np.array([column.jumps for column in columns], dtype=bool)
    known = PipelineColumns(
        outer.names, outer.named, outer.categories, outer.absent, outer.closed, before, trees.columns, len(dropped)
    )
    return replace(
        trees,
        columns=known,
        groups=np.concatenate([owners, dropped]),
        jumping=np.concatenate([jumping, np.zeros(len(dropped), dtype=bool)]),
        source=f"a pipeline with {trees.source}",
    )


def _through(step: Any, columns: Sequence[_Column]) -> list[_Column]:
    """The columns after a fitted step, each with the column of the table from which it comes."""
    kind = _kind(step)
    if step in ("passthrough", None) or (kind == "FunctionTransformer" and step.func is None):
        return list(columns)
    if kind == "Pipeline":
        for _, part in step.steps:
            columns = _through(part, columns)
        return list(columns)
    if kind == "ColumnTransformer":
        return [column for part in _parts(step, columns) for column in part]
    if kind in _SCALERS and not getattr(step, "clip", False):
        return list(columns)
    if kind in _CODES:
        if getattr(step, "target_type_", "") == "multiclass":
            raise _refusal(step, "makes a column for each class")
        return [_Column(column.owner, True) for column in columns]
    if kind == "SimpleImputer":
        return _imputed(step, columns)
    if kind == "OneHotEncoder":
        counts = step._n_features_outs
        return [_Column(column.owner, True) for column, n in zip(columns, counts, strict=True) for _ in range(n)]
    raise _refusal(step, "may mix columns or bend the way between two values")


def _kind(step: Any) -> str:
    """The name of a step of scikit-learn; a class of somebody else may do anything under the same name."""
    return type(step).__name__ if type(step).__module__.partition(".")[0] == "sklearn" else ""


def _parts(step: Any, columns: Sequence[_Column]) -> list[list[_Column]]:
    """The columns that each transformer of a ColumnTransformer makes."""
    indices = step._transformer_to_input_indices
    kept = [(name, part) for name, part, _ in step.transformers_ if not (isinstance(part, str) and part == "drop")]
    return [_through(part, [columns[i] for i in indices[name]]) for name, part in kept if len(indices[name])]


def _imputed(step: Any, columns: Sequence[_Column]) -> list[_Column]:
    statistics = step.statistics_
    if not step.keep_empty_features and any(value != value for value in statistics):
        raise _refusal(step, "drops a column that has no entries")
    indicated = step.indicator_.features_ if step.add_indicator else ()
    return [*columns, *(_Column(columns[i].owner, True) for i in indicated)]


def _refusal(step: Any, why: str) -> GralisError:
    return GralisError(
        f"The {type(step).__name__} of this pipeline {why}, so its trees have no closed form in the columns of the "
        f"table; gralis.explain samples the pipeline instead."
    )
