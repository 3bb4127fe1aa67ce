"""Rows of a table, CSV or Parquet. Column names become feature names.

A network needs a number in every cell that is used; an estimator takes the table as a data frame.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.many.parquet_rows import ParquetRows
from gralis.many.rows import check_names, is_parquet, numbers, ragged, read_rows
from gralis.tables.rows import pandas

__all__ = ["Table", "read_table"]

_MOST_CELLS = 2**26


@dataclass(frozen=True)
class Table:
    """The columns that are used, and every row as text or numbers. A row is decoded and checked when it is needed."""

    path: Path
    names: tuple[str, ...]
    cells: Sequence[Sequence[Any]]  # row by row, of all columns
    kept: tuple[int, ...]  # the columns that are used

    @property
    def n_rows(self) -> int:
        return len(self.cells)

    def row(self, number: int) -> Array:
        """One row as numbers; row 0 is the first row below the header."""
        if not 0 <= number < self.n_rows:
            raise GralisError(f"--row must be from 0 to {self.n_rows - 1}, the rows of {self.path}. Got {number}.")
        return self._numbers(number, self.cells[number])

    @cached_property
    def rows(self) -> Array:
        """All rows, (n_rows, n_columns)."""
        if self.n_rows * len(self.names) > _MOST_CELLS:
            raise GralisError(
                f"{self.path} has {self.n_rows} rows of {len(self.names)} columns, too many to be read at once; give a "
                f"table with fewer rows, or another --baseline."
            )
        return np.stack([self._numbers(number, row) for number, row in enumerate(self.cells)])

    @cached_property
    def means(self) -> Array:
        """The mean of every column."""
        rows = (self._numbers(number, row) for number, row in enumerate(self.cells))
        parts = iter(lambda: list(islice(rows, 1024)), [])
        return np.asarray(np.sum([np.sum(part, axis=0) for part in parts], axis=0) / self.n_rows)

    def _numbers(self, number: int, row: Sequence[Any]) -> Array:
        return numbers([row[i] for i in self.kept], self.names, f"{self.path}: row {number}")

    @cached_property
    def frame(self) -> Any:
        """The whole table as a data frame: a column is made of numbers if every cell that is not empty is a number."""
        data = pandas().DataFrame([[row[i] for i in self.kept] for row in self.cells], columns=list(self.names))
        return data.apply(_typed) if len(self.names) else data

    def frame_row(self, number: int) -> Any:
        """One row as a data frame."""
        if not 0 <= number < self.n_rows:
            raise GralisError(f"--row must be from 0 to {self.n_rows - 1}, the rows of {self.path}. Got {number}.")
        return self.frame.iloc[[number]]


def _typed(column: Any) -> Any:
    """A column of text as numbers, as booleans or as it is; empty cells are missing."""
    filled = column.where(column.astype(str).str.strip() != "", None)
    if filled.dropna().isin(["True", "False"]).all() and filled.notna().all() and len(filled):
        return filled == "True"
    try:
        return pandas().to_numeric(filled)
    except (TypeError, ValueError):
        return filled


def read_table(path: Path, drop: Sequence[str] = ()) -> Table:
    """The table without these columns."""
    if not path.is_file():
        raise GralisError(f"--data: there is no file {path}.")
    rows: Sequence[Sequence[Any]]
    if is_parquet(path):
        rows = ParquetRows(path, drop)
        names = rows.names
        check_names(names, str(path))
    else:
        names, *rows = read_rows(path)
        for number, row in enumerate(rows):
            if wrong := ragged(row, names, f"{path}: row {number}"):
                raise wrong
    for name in drop:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=3) or names[:5]
            raise GralisError(f"{path} has no column {name!r} to drop; it has {', '.join(map(repr, close))}.")
    kept = [i for i, name in enumerate(names) if name not in drop]
    if not kept or not rows:
        raise GralisError(f"{path} has no {'columns' if not kept else 'rows'} to explain.")
    return Table(path, tuple(names[i] for i in kept), rows, tuple(kept))
