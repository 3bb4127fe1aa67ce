"""Rows of a table and the rows that they are compared with, as numbers of one coding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import torch

from gralis.arrays import Array
from gralis.baselines.baselines import Baselines
from gralis.baselines.distribution import Sample
from gralis.baselines.recipes import Recipe
from gralis.errors import GralisError, bad
from gralis.features.coordinate_names import CoordinateNames
from gralis.tables import TableCoding, row_count, table_rows
from gralis.tables.rows import in_order, is_frame, is_records, is_series, is_table, pandas

__all__ = ["CodedRows", "coded_rows"]


@dataclass(frozen=True, eq=False)
class CodedRows:
    """Rows and their background as numbers.

    Attributes
    ----------
    coding : TableCoding
        How rows became numbers.
    x : array of shape (n_rows, n_columns)
        The rows that are explained.
    baseline : Baselines or object
        The background, if it is made of rows; otherwise the baseline as the user gave it.
    named : bool
        Whether the columns have names.
    """

    coding: TableCoding
    x: Array
    baseline: object
    named: bool


def coded_rows(
    x: Any,
    baseline: object,
    names: Sequence[str] = (),
    n_columns: int | None = None,
    *,
    frames: bool | None = None,
    numbers_only: bool = False,
    unnamed: Sequence[str] = (),
    own_codes: bool = False,
) -> CodedRows:
    """The rows and the background as numbers of one coding.

    Parameters
    ----------
    x : data frame, series, dict, list of dicts or array
        The rows that are explained, or one row.
    baseline : object
        The rows that they are compared with, in any of these forms or as a `Sample`; or a baseline of another kind.
    names : sequence of str
        The names of the columns that the model knows; empty if it knows none.
    n_columns : int, optional
        The number of columns that the model expects.
    frames : bool, optional
        Whether the model gets data frames; by default it does if it knows names or if x is a frame.
    numbers_only : bool, default=False
        Whether the model takes numbers only; texts are then refused, and missing values stay what they are.
    unnamed : sequence of str
        What columns without names are called; by default x[0], x[1], ...
    own_codes : bool, default=False
        Whether the model makes codes of texts by itself, as trees do. A baseline that is not made of rows then stands
        for a code, and a category that the background does not list is as good as any.

    Returns
    -------
    CodedRows
    """
    rows = table_rows(x, "x")
    if callable(baseline) and not isinstance(baseline, Recipe):
        try:
            baseline = baseline(x)
        except Exception as error:
            raise GralisError(f"The 'baseline' parameter of explain, a function, failed on x: {error!r}.") from error
    background, label = _background(baseline)
    whose = "the background" if _names(background) or not names else "the estimator"
    own = names or _names(background) or _names(rows)
    named = bool(own)
    if not own:
        shape = (n_columns or (rows if background is None else background).shape[1],)
        own = unnamed or tuple(CoordinateNames(("x",), (shape,)))
    shown = _as_given(own, rows, background)
    rows = in_order(rows, own, "x", whose)
    if background is None:
        background = rows[:0]
    else:
        background = in_order(background, own, "baseline", "the estimator" if names else "x")
        if not row_count(background):
            raise bad("baseline", "explain", "made of at least one row", "a table without rows")
    rows, background = _alike(rows, background, own)
    given = is_frame(baseline) or is_table(x) or is_records(x)
    form = "frame" if (bool(names) or given if frames is None else frames) else "array"
    if form == "frame" and not is_frame(rows):
        rows, background = (pandas().DataFrame(part, columns=list(own)) for part in (rows, background))
    coding = TableCoding.of(rows, background, shown, form, new_categories=own_codes)
    if numbers_only:
        coding = coding.of_numbers_only()
    if label is None:
        constant = baseline if own_codes else _constant(baseline, coding)
        return CodedRows(coding, coding.encode(rows), constant, named)
    points = torch.from_numpy(coding.encode(background))
    weights = baseline.weights if isinstance(baseline, Baselines) else np.full(len(points), 1.0 / len(points))
    return CodedRows(coding, coding.encode(rows), Baselines((points,), weights, label), named)


def _background(baseline: object) -> tuple[Any, str | None]:
    """The rows of a baseline and their name, or (None, None) if it is of another kind."""
    if isinstance(baseline, Baselines):
        return baseline.points[0].numpy(), baseline.name
    if isinstance(baseline, Sample):
        rows = table_rows(baseline.X, "baseline")
        chosen = baseline.rows()
        return (rows.iloc[chosen] if is_frame(rows) else rows[chosen]), repr(baseline)
    if isinstance(baseline, Real | str | Recipe | np.generic) or baseline is None:
        return None, None
    if isinstance(baseline, Mapping) and not is_table(baseline):
        raise bad("baseline", "explain", "a row or rows of the table", f"a dict of {len(baseline)} entries")
    rows = table_rows(baseline, "baseline")
    one = is_series(baseline) or isinstance(baseline, Mapping) or np.ndim(baseline) == 1  # type: ignore[arg-type]
    return rows, "one row of the table" if one or len(rows) == 1 else f"{len(rows)} rows of the table"


def _constant(baseline: object, coding: TableCoding) -> object:
    """A baseline that is not made of rows, which suits columns of numbers only."""
    for column in coding.columns:
        if column.coded or column.missing is not None:
            what = "a gap" if not column.coded else f"{column.entries[-1]!r}"
            raise bad(
                "baseline",
                "explain",
                "rows to compare with, such as baseline=frame.sample(100), if a column does not hold numbers only",
                f"{baseline!r}, and column {column.name!r} holds {what}",
            )
    return baseline


def _names(rows: Any) -> tuple[str, ...]:
    if rows is None or not is_frame(rows) or not any(isinstance(name, str) for name in rows.columns):
        return ()
    return tuple(map(str, rows.columns))


def _as_given(own: Sequence[str], *tables: Any) -> tuple[str, ...]:
    """The names as the user writes them; LightGBM knows the column "mean radius" as "mean_radius"."""
    for table in tables:
        given = {name.replace(" ", "_"): name for name in _names(table)}
        if set(given) == {name.replace(" ", "_") for name in own}:
            return tuple(given[name.replace(" ", "_")] for name in own)
    return tuple(own)


def _alike(rows: Any, background: Any, names: Sequence[str]) -> tuple[Any, Any]:
    """Both as data frames, or both as arrays."""
    if is_frame(rows) == is_frame(background):
        return rows, background
    if not len(background) and is_frame(rows):
        return rows, rows.iloc[:0]
    framed = [part if is_frame(part) else pandas().DataFrame(part, columns=list(names)) for part in (rows, background)]
    return framed[0], framed[1]
