"""Rows of a table, CSV or Parquet: the column names become the feature names; every cell used must be a number."""

from __future__ import annotations

import csv
import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from gralis.errors import GralisError
from gralis.laws import Array


@dataclass(frozen=True)
class Table:
    """The columns that are used, and every row as text or numbers; a row is checked when it is asked for."""

    path: Path
    names: tuple[str, ...]
    cells: tuple[Sequence[Any], ...]  # row by row, in the order of names

    @property
    def n_rows(self) -> int:
        return len(self.cells)

    def row(self, number: int) -> Array:
        """One row as numbers; row 0 is the first one below the header."""
        if not 0 <= number < self.n_rows:
            raise GralisError(f"--row must be from 0 to {self.n_rows - 1}, the rows of {self.path}. Got {number}.")
        cells = zip(self.names, self.cells[number], strict=True)
        return np.array([self._number(cell, number, name) for name, cell in cells])

    @cached_property
    def rows(self) -> Array:
        """All rows, (n_rows, n_columns)."""
        return np.stack([self.row(number) for number in range(self.n_rows)])

    def _number(self, cell: Any, row: int, name: str) -> float:
        try:
            number = float(cell) if cell is not None else np.nan
        except (TypeError, ValueError):
            number = np.nan
        if np.isfinite(number):
            return number
        empty = cell is None or not str(cell).strip()
        what = "is empty" if empty else f"is {str(cell)[:40]!r}, which is not a finite number"
        advice = f"fill it, or leave the column out with --drop {name!r}"
        raise GralisError(f"{self.path}: row {row}, column {name!r} {what}; {advice}.")


def read_table(path: Path, drop: Sequence[str] = ()) -> Table:
    """The table without these columns."""
    if not path.is_file():
        raise GralisError(f"--data: there is no file {path}.")
    names, rows = _parquet(path) if path.suffix.lower() in (".parquet", ".pq") else _csv(path)
    for name in drop:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=3) or names[:5]
            raise GralisError(f"{path} has no column {name!r} to drop; it has {', '.join(map(repr, close))}.")
    kept = [i for i, name in enumerate(names) if name not in drop]
    if not kept or not rows:
        raise GralisError(f"{path} has no {'columns' if not kept else 'rows'} to explain.")
    return Table(path, tuple(names[i] for i in kept), tuple([row[i] for i in kept] for row in rows))


def _csv(path: Path) -> tuple[list[str], list[list[Any]]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            first = stream.readline()
            stream.seek(0)
            delimiter = max(",;\t", key=first.count)
            lines = [line for line in csv.reader(stream, delimiter=delimiter, strict=True) if line]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise GralisError(f"{path} cannot be read as CSV in UTF-8 ({error}).") from error
    if not lines:
        raise GralisError(f"{path} is empty.")
    names = [name.strip() for name in lines[0]]
    if all(_is_number(name) for name in names):
        raise GralisError(f"{path} has numbers in its first line, where the column names must be.")
    for number, line in enumerate(lines[1:]):
        if len(line) != len(names):
            raise GralisError(f"{path}: row {number} has {len(line)} cells, but the header names {len(names)} columns.")
    return names, list(lines[1:])


def _parquet(path: Path) -> tuple[list[str], list[list[Any]]]:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise GralisError('Parquet needs pyarrow: pip install "gralis[ray]", or save the table as CSV.') from error
    try:
        columns = parquet.read_table(path).to_pydict()
    except Exception as error:
        raise GralisError(f"{path} cannot be read as Parquet ({str(error).partition(chr(10))[0]}).") from error
    rows: Iterator[tuple[Any, ...]] = zip(*columns.values(), strict=True)
    return [str(name) for name in columns], [list(row) for row in rows]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
