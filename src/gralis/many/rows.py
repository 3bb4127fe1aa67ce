"""The rows of a table (CSV or Parquet), read one after the other: as text or numbers, and as inputs."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gralis.arrays import Array
from gralis.checks import as_path
from gralis.errors import GralisError, bad
from gralis.features import columns
from gralis.many.items import Item, ItemStream, PendingItem, distinct, id_of, label_of, refuse
from gralis.many.parquet_rows import ParquetRows

__all__ = ["means", "read_rows", "table"]

TABLE_SUFFIXES = {".csv", ".tsv", ".parquet", ".pq"}


def table(path: str | Path, *, id: str | None = None, label: str | None = None, drop: Sequence[str] = ()) -> ItemStream:
    """The rows of a CSV or Parquet file as inputs, with one feature per column.

    Rows are read one by one. A row that cannot be used (a cell that is not a number, too few cells, no id) becomes an
    input that fails; if its id is missing, its id is its number, such as "row 7".

    Parameters
    ----------
    path : str or Path
        A file that ends in .csv, .tsv, .parquet or .pq. The first line of a CSV file names the columns.
    id : str, default=None
        The column that names the rows; None numbers them from 0.
    label : str, default=None
        The column with the labels, which are kept with the results and are not features.
    drop : sequence of str, default=()
        Columns that are left out.

    Returns
    -------
    ItemStream
        To be given to `explain_many` as `inputs`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.csv").write_text("who,a,b\\nann,1,2\\nbob,3,4\\n")
    ...     [(item.id, item.make().x.tolist()) for item in table(f"{folder}/t.csv", id="who")]
    [('ann', [1.0, 2.0]), ('bob', [3.0, 4.0])]
    """
    return _table(as_path(path, "table"), id, label, drop, count_rows)


def means(path: str | Path, *, drop: Sequence[str] = ()) -> Array:
    """The mean of every column of a table, over the rows that can be read: a baseline for its rows.

    Parameters
    ----------
    path : str or Path
        A file that `table` can read.
    drop : sequence of str, default=()
        Columns that are left out, such as ids and labels.

    Returns
    -------
    ndarray of shape (n_columns,)
        The means, in the order of the columns.
    """
    total, n, first_error = 0.0, 0, None
    for item in _table(as_path(path, "means"), None, None, drop, lambda *_: None):
        try:
            total, n = total + item.make().x, n + 1
        except GralisError as error:
            first_error = first_error or error
    if not n:
        raise first_error or bad("path", "means", "a table with at least one row", "none")
    return np.asarray(total / n)


def _table(
    path: Path,
    id: str | None,
    label: str | None,
    drop: Sequence[str],
    count: Callable[[Path, Sequence[str]], int | None],
) -> ItemStream:
    if not path.is_file():
        raise GralisError(f"There is no file {path}.")
    if isinstance(drop, str) or not isinstance(drop, Sequence):
        raise bad("drop", "table", "a list of column names", repr(drop))
    names = next(read_rows(path, drop))
    for name in [*drop, *(column for column in (id, label) if column is not None)]:
        if not isinstance(name, str) or name not in names:
            raise GralisError(f"{path} has no column {name!r}; it has {', '.join(map(repr, names[:8]))}.")
    kept = [i for i, name in enumerate(names) if name not in drop and name not in (id, label)]
    if not kept:
        raise GralisError(f"{path} has no columns to explain.")
    used = [names[i] for i in kept]

    def begin() -> Iterator[PendingItem]:
        rows = read_rows(path, drop)
        next(rows)
        for number, row in enumerate(rows):
            where = f"{path.name}: row {number}"
            error = ragged(row, names, where)
            cell = None if id is None or error else row[names.index(id)]
            if id is not None and not error and cell in (None, ""):
                error = GralisError(f"{where} has no id in column {id!r}.")
            name = str(number) if id is None else f"row {number}" if error else id_of(cell)
            if error:
                yield PendingItem(name, partial(refuse, error), True)
                continue
            row_label = None if label is None else label_of(row[names.index(label)])
            yield PendingItem(name, partial(_row, name, [row[i] for i in kept], used, where), True, row_label)

    settings = {"id": id, "label": label, "columns": used}
    return ItemStream(lambda: begin() if id is None else distinct(begin()), count(path, drop), columns(used), settings)


def _row(name: str, cells: Sequence[Any], columns_used: Sequence[str], where: str) -> Item:
    return Item(name, numbers(cells, columns_used, where))


def read_rows(path: Path, drop: Sequence[str] = ()) -> Iterator[list[Any]]:
    """The names of all columns, checked, then one row after the other.

    A row of a CSV file may have more or fewer cells than there are columns. In the rows of a Parquet file, columns that
    are dropped are None.
    """
    if is_parquet(path):
        parquet = ParquetRows(path, drop)
        names, rows = parquet.names, iter(parquet)
    else:
        rows = _csv(path)
        names = [str(name) for name in next(rows)]
    check_names(names, str(path))
    yield names
    yield from rows


def count_rows(path: Path, drop: Sequence[str] = ()) -> int:
    """The number of rows below the header. A CSV file must be read for this, a Parquet file states it."""
    if is_parquet(path):
        return len(ParquetRows(path, drop))
    return sum(1 for _ in _csv(path)) - 1


def check_names(names: Sequence[str], where: str) -> None:
    """Refuse two columns with the same name."""
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise GralisError(f"{where} has two columns named {twice[0]!r}; every column needs a different name.")


def numbers(cells: Sequence[Any], names: Sequence[str], where: str) -> Array:
    """A row as numbers; an error names the first cell that is not one."""
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


def is_parquet(path: Path) -> bool:
    """Whether the file is a Parquet table, by its name."""
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


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
