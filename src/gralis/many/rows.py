"""Tables as files, CSV or Parquet: the names of the columns, then one row after the other, as text or numbers."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.many.tables import arrow

_ROWS = 1024  # of a Parquet file at a time


def read_rows(path: Path) -> Iterator[list[Any]]:
    """The names of the columns, checked; then row by row. A row of a CSV may have too few cells, or too many."""
    rows = _parquet(path) if _is_parquet(path) else _csv(path)
    names = [str(name) for name in next(rows)]
    check_names(names, str(path))
    yield names
    yield from rows


def count_rows(path: Path) -> int:
    """How many rows there are below the header: a Parquet file knows, a CSV is read through."""
    if _is_parquet(path):
        with arrow("pyarrow.parquet").ParquetFile(path) as file:
            return int(file.metadata.num_rows)
    return sum(1 for _ in _csv(path)) - 1


def check_names(names: Sequence[str], where: str) -> None:
    """Every column has a name of its own."""
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise GralisError(f"{where} has two columns named {twice[0]!r}; every column needs a name of its own.")


def numbers(cells: Sequence[Any], names: Sequence[str], where: str) -> Array:
    """A row as numbers, or the sentence that names its first bad cell."""
    return np.array([_number(cell, name, where) for name, cell in zip(names, cells, strict=True)])


def ragged(row: Sequence[Any], names: Sequence[str], where: str) -> GralisError | None:
    """What is wrong with the length of a row, if anything."""
    if len(row) == len(names):
        return None
    return GralisError(f"{where} has {len(row)} cells, but the header names {len(names)} columns.")


def _number(cell: Any, name: str, where: str) -> float:
    try:
        number = float(cell) if cell is not None else np.nan
    except (TypeError, ValueError, OverflowError):
        number = np.nan
    if np.isfinite(number):
        return number
    empty = cell is None or not str(cell).strip()
    what = "is empty" if empty else f"is {str(cell)[:40]!r}, which is not a finite number"
    raise GralisError(f"{where}, column {name!r} {what}; fill it, or leave the column out (drop).")


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() in (".parquet", ".pq")


def _csv(path: Path) -> Iterator[list[Any]]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            delimiter = max(",;\t", key=stream.readline().count)
            stream.seek(0)
            lines = ([cell.strip() for cell in line] for line in csv.reader(stream, delimiter=delimiter, strict=True))
            names = next((line for line in lines if line), None)
            if names is None:
                raise GralisError(f"{path} is empty.")
            if all(_is_number(name) for name in names):
                raise GralisError(f"{path} has numbers in its first line, where the column names must be.")
            yield names
            yield from (line for line in lines if line)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise GralisError(f"{path} cannot be read as CSV in UTF-8 ({error}).") from error


def _parquet(path: Path) -> Iterator[list[Any]]:
    parquet = arrow("pyarrow.parquet")
    try:
        with parquet.ParquetFile(path) as file:
            yield list(file.schema_arrow.names)
            for batch in file.iter_batches(_ROWS):
                yield from map(list, zip(*(column.to_pylist() for column in batch.columns), strict=True))
    except Exception as error:
        raise GralisError(f"{path} cannot be read as Parquet ({str(error).partition(chr(10))[0]}).") from error


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
