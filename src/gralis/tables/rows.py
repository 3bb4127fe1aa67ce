"""What users call a row or rows: data frames, series, dicts and arrays, in one form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from gralis.arrays import to_numpy
from gralis.errors import bad
from gralis.notebook import pandas

__all__ = ["in_order", "is_frame", "is_series", "is_table", "pandas", "row_count", "table_rows"]


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
        frame = value.to_frame().T
        return frame.infer_objects() if value.dtype.kind == "O" else frame
    if isinstance(value, Mapping) and is_table(value):
        return pandas().DataFrame([dict(value)])
    if isinstance(value, list) and value and all(isinstance(row, Mapping) for row in value):
        return pandas().DataFrame([dict(row) for row in value])
    try:
        array = to_numpy(value)
    except (TypeError, ValueError, RuntimeError):
        array = np.empty((0, 0, 0))
    array = array[None] if array.ndim == 1 else array
    if array.ndim != 2 or not array.shape[1] or array.dtype.kind not in "biufOUS":
        allowed = "a row of a table (a data frame with one row, a series, a dict or an array of shape (n_columns,))"
        raise bad(parameter, "explain", allowed, f"a {type(value).__name__}{_shape(value)}")
    if array.dtype.kind in "biuf":
        return array
    return pandas().DataFrame(array).infer_objects()


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
        return pandas().DataFrame(np.asarray(rows), columns=list(names)).infer_objects() if is_frame(rows) else rows
    own = [str(name) for name in rows.columns]
    if own == list(names):
        return rows
    lacking, unknown = [n for n in names if n not in own], [n for n in own if n not in set(names)]
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
