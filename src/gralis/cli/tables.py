"""Rows of a table, CSV or Parquet. Column names become feature names; every cell that is used must be a number."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.many.rows import numbers, ragged, read_rows

__all__ = ["Table", "read_table"]


@dataclass(frozen=True)
class Table:
    """The columns that are used, and every row as text or numbers. A row is checked when it is needed."""

    path: Path
    names: tuple[str, ...]
    cells: tuple[Sequence[Any], ...]  # row by row, in the order of names

    @property
    def n_rows(self) -> int:
        return len(self.cells)

    def row(self, number: int) -> Array:
        """One row as numbers; row 0 is the first row below the header."""
        if not 0 <= number < self.n_rows:
            raise GralisError(f"--row must be from 0 to {self.n_rows - 1}, the rows of {self.path}. Got {number}.")
        return numbers(self.cells[number], self.names, f"{self.path}: row {number}")

    @cached_property
    def rows(self) -> Array:
        """All rows, (n_rows, n_columns)."""
        return np.stack([self.row(number) for number in range(self.n_rows)])


def read_table(path: Path, drop: Sequence[str] = ()) -> Table:
    """The table without these columns."""
    if not path.is_file():
        raise GralisError(f"--data: there is no file {path}.")
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
    return Table(path, tuple(names[i] for i in kept), tuple([row[i] for i in kept] for row in rows))
