"""A table as numbers and back: a number stays a number, any other entry gets the place where its column lists it.

Missing numbers get a number of their own, which no entry of the column has. Points that mix columns of two rows can
then be built as arrays, and reach the estimator as the rows that the user would have written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.errors import GralisError, bad
from gralis.tables.rows import is_frame, pandas

__all__ = ["TableCoding", "TableColumn"]

_GAPS = ("None", "nan", "<NA>", "NaT")  # the missing entries of pandas as texts


@dataclass(frozen=True)
class TableColumn:
    """How one column of a table becomes numbers.

    Attributes
    ----------
    name : str
        The name of the column.
    entries : tuple
        The distinct entries of a column that does not hold numbers; a code is a place in this tuple. None stands for a
        missing entry. It is empty for a column of numbers.
    missing : float or None
        The number that stands for a missing value in a column of numbers; None if there is no such value.
    whole : bool
        Whether the column holds integers or booleans.
    boolean : bool
        Whether the column holds booleans.
    gap : {"None", "nan", "<NA>", "NaT"}
        How a column of objects writes a missing entry, which estimators tell apart.
    """

    name: str
    entries: tuple[Any, ...] = ()
    missing: float | None = None
    whole: bool = False
    boolean: bool = False
    gap: str = "None"

    @property
    def coded(self) -> bool:
        """Whether the numbers are codes."""
        return bool(self.entries)

    @property
    def all_entries(self) -> list[Any]:
        """The entries as the table writes them, with its own missing entry."""
        gap = {"nan": np.nan, "<NA>": pandas().NA, "NaT": pandas().NaT}.get(self.gap)
        return [gap if entry is None else entry for entry in self.entries]

    def entry(self, number: float) -> Any:
        """The entry behind a number: a float, an int, a text, or None if it is missing."""
        if np.isnan(number):
            return None
        if self.coded:
            return self.entries[int(number)]
        if self.missing is not None and number == self.missing:
            return None
        if self.boolean:
            return bool(number)
        return int(number) if self.whole else float(number)

    def text(self, number: float) -> str:
        """The entry as tables and plots show it.

        >>> TableColumn("proline").text(1065.0), TableColumn("city", ("Rome", None)).text(1.0)
        ('1065', 'missing')
        """
        entry = self.entry(number)
        if entry is None:
            return "missing"
        return f"{entry:.4g}" if isinstance(entry, float) and abs(entry) < 1e4 else _plain_text(entry)


@dataclass(frozen=True, eq=False)
class TableCoding:
    """The columns of a table, and how its rows become numbers and come back.

    Attributes
    ----------
    columns : tuple of TableColumn
        The columns in order.
    types : tuple
        The pandas or NumPy type of every column, with which rows come back.
    form : {"frame", "array"}
        Whether rows come back as a data frame or as an array.
    labels : tuple
        The labels of the columns of the frame; most often their names.
    """

    columns: tuple[TableColumn, ...]
    types: tuple[Any, ...] = ()
    form: str = "array"
    labels: tuple[Any, ...] = field(default=())

    @classmethod
    def of(
        cls, rows: Any, background: Any, names: Sequence[str], form: str, *, new_categories: bool = False
    ) -> TableCoding:
        """The coding of these rows, which depends on the background alone where it has all entries of the rows.

        With `new_categories`, a column of categories may hold others than those that it lists.
        """
        if not is_frame(rows):
            stacked = np.concatenate([background, rows]) if len(background) else rows
            return cls._of_numbers(stacked, names, form)
        columns, types = [], []
        for place, name in enumerate(names):
            one = background.iloc[:, place] if is_frame(background) and len(background) else None
            column, dtype = _column(str(name), rows.iloc[:, place], one, new_categories)
            columns.append(column)
            types.append(dtype)
        return cls(tuple(columns), tuple(types), form, tuple(rows.columns))

    @classmethod
    def _of_numbers(cls, stacked: NDArray[Any], names: Sequence[str], form: str) -> TableCoding:
        whole, boolean = stacked.dtype.kind in "biu", stacked.dtype.kind == "b"
        numbers = stacked.astype(np.float64)
        columns = [
            TableColumn(str(name), missing=_stand_in(numbers[:, k]), whole=whole, boolean=boolean)
            for k, name in enumerate(names)
        ]
        return cls(tuple(columns), (stacked.dtype,) * len(columns), form, tuple(names))

    @classmethod
    def of_codes(cls, columns: Sequence[TableColumn]) -> TableCoding:
        """Columns of numbers and codes that something else has made; they come back as arrays of numbers."""
        return cls(tuple(columns), (np.dtype(np.float64),) * len(columns), "array", tuple(c.name for c in columns))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.columns)

    @property
    def jumping(self) -> NDArray[np.bool_]:
        """Which columns have nothing between two of their entries: integers, booleans and codes."""
        return np.array([column.whole or column.coded for column in self.columns])

    @cached_property
    def key(self) -> str:
        """A text that is equal for codings that give the same numbers to the same entries."""
        return repr((self.columns, [str(dtype) for dtype in self.types], self.form, self.labels))

    def of_numbers_only(self) -> TableCoding:
        """The coding for a network, which takes neither texts nor a number in place of a missing value."""
        for column in self.columns:
            if column.coded:
                allowed = "a row of numbers and booleans; encode a category as a number, and name it in discrete=[...]"
                raise bad("x", "explain", allowed, f"{column.entries[-1]!r} in column {column.name!r}")
        return replace(self, columns=tuple(replace(column, missing=None) for column in self.columns))

    def encode(self, rows: Any) -> Array:
        """The rows as numbers, (n_rows, n_columns)."""
        if not is_frame(rows):
            numbers = np.array(rows, dtype=np.float64)
            for k, column in enumerate(self.columns):
                _fill_gaps(numbers[:, k], column)
            return numbers
        return np.stack([_encoded(rows.iloc[:, k], column) for k, column in enumerate(self.columns)], axis=1)

    def decode(self, numbers: NDArray[Any]) -> Any:
        """The rows behind numbers of shape (n_rows, n_columns), in the form in which the estimator takes them."""
        if self.form == "array" and not self._lookup:
            return self._numbers(numbers)
        parts = {place: self._part(place, numbers[:, place]) for place in range(len(self.columns))}
        frame = pandas().DataFrame(parts)
        frame.columns = list(self.labels)
        return frame if self.form == "frame" else frame.to_numpy(dtype=object)

    def _numbers(self, numbers: NDArray[Any]) -> NDArray[Any]:
        rows = np.array(numbers, dtype=np.float64)
        for k, column in enumerate(self.columns):
            if column.missing is not None:
                rows[rows[:, k] == column.missing, k] = np.nan
        dtypes = {np.dtype(dtype) for dtype in self.types if isinstance(dtype, np.dtype)}
        return rows.astype(dtypes.pop()) if len(dtypes) == 1 and not np.isnan(rows).any() else rows

    def _part(self, place: int, numbers: NDArray[Any]) -> Any:
        column, dtype = self.columns[place], self.types[place]
        if place in self._lookup:
            entries = self._lookup[place].take(numbers.astype(np.int64))
            return pandas().Series(entries, dtype=dtype)  # without the type, pandas makes NaN of None
        values = np.array(numbers, dtype=np.float64)
        if column.missing is not None:
            values[values == column.missing] = np.nan
        return pandas().Series(values).astype(dtype)

    @cached_property
    def _lookup(self) -> dict[int, Any]:
        """The entries of coded columns as pandas arrays of their own type; not of codes that stay codes."""
        return {
            place: pandas().Series(column.all_entries, dtype=dtype).array
            for place, (column, dtype) in enumerate(zip(self.columns, self.types, strict=True))
            if column.coded and getattr(dtype, "kind", "O") not in "biuf"
        }

    def entries(self, numbers: Array) -> tuple[Any, ...]:
        """The entries of one row: floats, ints and texts; None where one is missing."""
        return tuple(column.entry(number) for column, number in zip(self.columns, numbers, strict=True))

    def texts(self, numbers: Array) -> tuple[str, ...]:
        """The entries of one row as tables and plots show them."""
        return tuple(column.text(number) for column, number in zip(self.columns, numbers, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The columns in plain values, for a file."""
        return {
            "columns": [
                {
                    "name": c.name,
                    "entries": [_stored(e) for e in c.entries],
                    "missing": c.missing,
                    "whole": c.whole,
                    "boolean": c.boolean,
                    "gap": c.gap,
                }
                for c in self.columns
            ],
            "types": [f"ordered {dtype}" if getattr(dtype, "ordered", False) else str(dtype) for dtype in self.types],
            "labels": [_stored(label) for label in self.labels],
            "form": self.form,
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> TableCoding:
        """The columns as a file holds them."""
        columns = [TableColumn(**{**c, "entries": tuple(c["entries"])}) for c in stored["columns"]]
        types = [_type(text, column) for text, column in zip(stored["types"], columns, strict=True)]
        return cls(tuple(columns), tuple(types), stored["form"], tuple(stored["labels"]))


def _type(text: str, column: TableColumn) -> Any:
    """The type of a column from its name; that of a category lists its entries."""
    if text.endswith("category"):
        known = [entry for entry in column.entries if entry is not None]
        return pandas().CategoricalDtype(known, ordered=text.startswith("ordered"))
    try:
        dtype = np.dtype(text)
    except TypeError:
        dtype = np.dtype(object)
    return dtype if dtype.kind in "biuf" else pandas().api.types.pandas_dtype(text)


def _column(name: str, rows: Any, background: Any | None, new_categories: bool) -> tuple[TableColumn, Any]:
    """One column of a data frame, and the type of its entries, which is that of the background if there is one."""
    pd, dtype = pandas(), (rows if background is None else background).dtype
    numeric = pd.api.types.is_numeric_dtype(dtype) and getattr(dtype, "kind", "O") in "biuf"
    if numeric:
        parts = [_numbers(part, name) for part in (background, rows) if part is not None]
        numbers = np.concatenate(parts)
        whole = dtype.kind in "biu" and not np.isnan(numbers).any() and bool((numbers == np.round(numbers)).all())
        if dtype.kind in "biu" and not whole:
            dtype = np.dtype(np.float64)
        return TableColumn(name, missing=_stand_in(numbers), whole=whole, boolean=dtype.kind == "b"), dtype
    listed = list(dtype.categories) if isinstance(dtype, pd.CategoricalDtype) else []
    if isinstance(dtype, pd.CategoricalDtype):
        strange = [entry for entry in rows.dropna().unique() if entry not in set(listed)]
        if strange and new_categories:
            dtype = pd.CategoricalDtype([*listed, *strange], ordered=dtype.ordered)
        elif strange:
            raise bad("x", "explain", f"made of known entries, in column {name!r} one of {listed}", repr(strange[0]))
    entries: dict[Any, None] = {}
    gap = ""
    for entry in [*listed, *(() if background is None else background), *rows]:
        try:
            is_gap = pd.isna(entry) is True or pd.isna(entry) is np.True_
            entries.setdefault(None if is_gap else entry)
            gap = gap or (str(entry) if is_gap else "")
        except TypeError:
            allowed = f"made of numbers, texts and categories, also in column {name!r}"
            raise bad("x", "explain", allowed, f"a {type(entry).__name__}") from None
    return TableColumn(name, tuple(entries), gap=gap if gap in _GAPS else "None"), dtype


def _numbers(part: Any, name: str) -> Array:
    try:
        return np.asarray(part.to_numpy(dtype=np.float64, na_value=np.nan), dtype=np.float64)
    except (TypeError, ValueError):
        entry = next(iter(part))
        allowed = f"made of the same types as the background, in column {name!r} a number"
        raise bad("x", "explain", allowed, repr(entry)) from None


def _encoded(part: Any, column: TableColumn) -> Array:
    if not column.coded:
        numbers = np.array(_numbers(part, column.name))
        _fill_gaps(numbers, column)
        return numbers
    places, isna = {entry: place for place, entry in enumerate(column.entries)}, pandas().isna
    codes = []
    for entry in part:
        found = places.get(None if bool(isna(entry)) else entry)
        if found is None:
            raise GralisError(f"TableColumn {column.name!r} has the entry {entry!r}, which its coding does not know.")
        codes.append(float(found))
    return np.array(codes)


def _stand_in(numbers: Array) -> float | None:
    """A number for missing values that no entry of the column has: beyond the largest, by the range of the column."""
    gaps = np.isnan(numbers)
    if not gaps.any():
        return None
    known = numbers[~gaps & np.isfinite(numbers)]
    if not len(known):
        return 1.0
    return float(known.max() + max(known.max() - known.min(), abs(known.max()), 1.0))


def _fill_gaps(numbers: Array, column: TableColumn) -> None:
    """Replace missing values in place."""
    gaps = np.isnan(numbers)
    if gaps.any() and column.missing is not None:
        numbers[gaps] = column.missing


def _plain_text(entry: Any) -> str:
    return f"{entry:.6g}" if isinstance(entry, float) else str(entry)


def _stored(entry: Any) -> Any:
    """An entry as JSON holds it; what JSON lacks becomes text."""
    bare = entry.item() if isinstance(entry, np.generic) else entry
    return bare if bare is None or isinstance(bare, bool | int | float | str) else str(bare)
