"""What users call a row or rows: data frames, series, dicts and arrays, in one form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gralis.arrays import to_numpy
from gralis.errors import bad
from gralis.notebook import pandas

__all__ = ["in_order", "is_frame", "is_records", "is_series", "is_table", "pandas", "row_count", "table_rows", "typed"]


def is_frame(value: object) -> bool:
    """Whether the value is a pandas DataFrame; pandas is not imported to find out."""
    return (type(value).__module__.partition(".")[0], type(value).__name__) == ("pandas", "DataFrame")


def is_series(value: object) -> bool:
    """Whether the value is a pandas Series."""
    return (type(value).__module__.partition(".")[0], type(value).__name__) == ("pandas", "Series")


def is_table(value: object) -> bool:
    """Whether the value says by itself that it is made of columns: a frame, a series of mixed types, a dict of scalars.

    >>> is_table({"age": 41, "city": "Rome"}), is_table({"age": np.ones(3)}), is_table(np.ones(3))
    (True, False, False)
    """
    if isinstance(value, Mapping):
        return bool(value) and all(np.ndim(entry) == 0 and not hasattr(entry, "detach") for entry in value.values())
    return is_frame(value) or (is_series(value) and value.dtype.kind not in "biuf")  # type: ignore[attr-defined]


def row_count(rows: Any) -> int:
    """The number of rows of what `table_rows` returns."""
    return len(rows)


def table_rows(value: Any, parameter: str) -> Any:
    """The rows as a data frame or as an array of numbers of shape (n_rows, n_columns); one row is a table of one row.

    Parameters
    ----------
    value : data frame, series, dict, list of dicts, array or tensor
        One row or several.
    parameter : str
        The parameter that an error names.

    Returns
    -------
    DataFrame or array

    Examples
    --------
    >>> table_rows([1.0, 2.0], "x").shape, table_rows({"age": 41, "city": "Rome"}, "x").shape
    ((1, 2), (1, 2))
    """
    if is_frame(value):
        return value
    if is_series(value):
        return typed(value.to_frame().T)
    if isinstance(value, Mapping) and is_table(value):
        return typed(pandas().DataFrame([dict(value)], dtype=object))
    if is_records(value):
        return typed(pandas().DataFrame([dict(row) for row in value], dtype=object))
    try:
        array = to_numpy(value)
        if isinstance(value, list | tuple) and array.dtype.kind in "US":
            array = np.array(value, dtype=object)  # the numbers beside the texts stay numbers
    except (TypeError, ValueError, RuntimeError):
        array = np.empty((0, 0, 0))
    array = array[None] if array.ndim == 1 else array
    if array.ndim != 2 or not array.shape[1] or array.dtype.kind not in "biufOUS":
        allowed = "a row of a table (a data frame with one row, a series, a dict or an array of shape (n_columns,))"
        raise bad(parameter, "explain", allowed, f"a {type(value).__name__}{_shape(value)}")
    if array.dtype.kind in "biuf":
        return array
    return typed(pandas().DataFrame(array, dtype=object))


def is_records(value: object) -> bool:
    """Whether the value is a list of dicts, one for each row."""
    return isinstance(value, list) and bool(value) and all(isinstance(row, Mapping) for row in value)


def typed(frame: Any) -> Any:
    """The frame, in which columns of objects that are all numbers or booleans have the type of these.

    Columns with other entries stay as they are: an estimator tells a text from a number, and None from NaN.
    """
    typed_columns = {
        place: _typed_column(frame.iloc[:, place])
        for place in range(frame.shape[1])
        if frame.dtypes.iloc[place] == np.dtype(object)
    }
    if typed_columns:
        frame = frame.copy()
    for place, column in typed_columns.items():
        frame.isetitem(place, column)
    return frame


def _typed_column(column: Any) -> Any:
    known = column.dropna().infer_objects()
    if not len(known) or known.dtype.kind not in "biuf":
        return column
    if len(known) == len(column):
        return known
    return column if known.dtype.kind == "b" else column.where(column.notna(), np.nan).astype(np.float64)


def in_order(rows: Any, names: Sequence[str], parameter: str, whose: str) -> Any:
    """The rows with exactly these columns, in this order; columns of an array have no names but must be as many.

    >>> in_order(np.ones((1, 2)), ["a", "b", "c"], "x", "the estimator")
    Traceback (most recent call last):
        ...
    gralis.errors.GralisError: The 'x' parameter of explain must be made of the 3 columns of the estimator (a, b, c). \
Got 2 columns instead.
    """
    allowed = f"made of the {len(names)} columns of {whose} ({_listed(names)})"
    if not is_frame(rows) or not _has_names(rows):
        if rows.shape[1] != len(names):
            raise bad(parameter, "explain", allowed, f"{rows.shape[1]} columns")
        return rows.set_axis(list(names), axis=1) if is_frame(rows) else rows
    own = [str(name) for name in rows.columns]
    if own == list(names):
        return rows
    spelled = [name.replace(" ", "_") for name in own]
    if set(own) != set(names) and len(set(spelled)) == len(spelled) and set(spelled) == set(names):
        rows, own = rows.set_axis(spelled, axis=1), spelled  # LightGBM calls the column "mean radius" "mean_radius"
    lacking = [n for n in names if n not in own and n not in spelled]
    unknown = [n for n, other in zip(own, spelled, strict=True) if n not in set(names) and other not in set(names)]
    if lacking or unknown or len(own) != len(set(own)):
        parts = [f"without {_listed(lacking)}"] if lacking else []
        parts += [f"with {_listed(unknown)}, which it does not know"] if unknown else []
        raise bad(parameter, "explain", allowed, f"columns {' and '.join(parts) or 'that occur twice'}")
    return rows.iloc[:, [own.index(name) for name in names]]


def _has_names(frame: Any) -> bool:
    """Whether the columns have names, and not just numbers that pandas gave them."""
    return any(isinstance(name, str) for name in frame.columns)


def _listed(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, and {len(names) - most} more"


def _shape(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return "" if shape is None else f" of shape {tuple(shape)}"
