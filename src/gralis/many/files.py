"""Inputs from files: the pictures of a folder, the rows of a table; read one by one, never all at once."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gralis.errors import GralisError, bad
from gralis.features import columns
from gralis.laws import Array
from gralis.many.items import Given, Item, Source, name_of, named_twice

_PICTURES = {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm"}
_TABLES = {".csv", ".tsv", ".parquet", ".pq"}
_ROWS = 1024  # of a Parquet file at a time


def source_of_path(path: Path) -> Source:
    """A folder of pictures, or a table."""
    if path.is_dir():
        return folder(path)
    if not path.is_file():
        raise GralisError(f"There is no file or folder {path}.")
    if path.suffix.lower() not in _TABLES:
        raise GralisError(f"{path} must be a folder of pictures or a table ({', '.join(sorted(_TABLES))}).")
    return table(path)


def folder(
    path: str | Path,
    *,
    size: int | tuple[int, int] = 224,
    mean: Sequence[float] = (0.485, 0.456, 0.406),
    std: Sequence[float] = (0.229, 0.224, 0.225),
) -> Source:
    """The pictures below a folder, by name; an id is the path within the folder, its first part is no label.

    Upright by EXIF, the largest centred part of the size's shape, then (value - mean) / std. More than 64 million
    pixels are refused, and so is a file that a link has outside the folder.
    """
    from gralis.images import Preprocessing

    root = Path(path).resolve()
    if not root.is_dir():
        raise GralisError(f"There is no folder {path}.")
    height, width = (size, size) if isinstance(size, int) else size
    preprocessing = Preprocessing(height, width, tuple(mean), tuple(std))
    names = sorted(_below(root))
    if not names:
        raise GralisError(f"There is no picture in {path} ({', '.join(sorted(_PICTURES))} are read).")
    return Source(lambda: (Item(n, partial(_picture, preprocessing, root, n), True) for n in names), len(names))


def table(path: str | Path, *, id: str | None = None, label: str | None = None, drop: Sequence[str] = ()) -> Source:
    """The rows of a CSV or Parquet file, one feature per column; `id` and `label` name columns that are not inputs."""
    path = Path(path)
    if not path.is_file():
        raise GralisError(f"There is no file {path}.")
    names = next(iter(_rows(path)))
    for name in [*drop, *(one for one in (id, label) if one is not None)]:
        if name not in names:
            raise GralisError(f"{path} has no column {name!r}; it has {', '.join(map(repr, names[:8]))}.")
    kept = [i for i, name in enumerate(names) if name not in drop and name not in (id, label)]
    if not kept:
        raise GralisError(f"{path} has no columns to explain.")

    def begin() -> Iterator[Item]:
        rows, seen = _rows(path), set[str]()
        next(rows)
        for number, row in enumerate(rows):
            name = str(number) if id is None else name_of(row[names.index(id)])
            if id is not None and name in seen:
                raise named_twice(name)
            if id is not None:
                seen.add(name)
            own = None if label is None else str(row[names.index(label)])
            yield Item(name, partial(_row, path, number, [names[i] for i in kept], [row[i] for i in kept], own), True)

    return Source(begin, None, columns([names[i] for i in kept]))


def _below(root: Path) -> Iterator[str]:
    """The pictures below a folder; links are not followed to other folders."""
    for parent, _, files in os.walk(root):
        for name in files:
            whole = Path(parent, name)
            if whole.suffix.lower() in _PICTURES:
                yield whole.relative_to(root).as_posix()


def _picture(preprocessing: Any, root: Path, name: str) -> Given:
    path = (root / name).resolve()
    if not path.is_relative_to(root):
        raise GralisError(f"{name} is a link that leaves its folder, so it is not read.")
    return Given(preprocessing.tensor(preprocessing.picture(path)))


def _row(path: Path, number: int, names: Sequence[str], cells: Sequence[Any], label: str | None) -> Given:
    return Given(np.array([_number(path, number, *cell) for cell in zip(names, cells, strict=True)]), label)


def _number(path: Path, row: int, name: str, cell: Any) -> float:
    try:
        number = float(cell)
    except (TypeError, ValueError):
        number = np.nan
    if not np.isfinite(number):
        raise GralisError(f"{path.name}: row {row}, column {name!r} is {str(cell)[:40]!r}, which is no finite number.")
    return number


def _rows(path: Path) -> Iterator[list[Any]]:
    """The names of the columns, then row by row."""
    if path.suffix.lower() in (".parquet", ".pq"):
        from gralis.many.tables import arrow

        parquet = arrow("pyarrow.parquet")
        try:
            with parquet.ParquetFile(path) as file:
                yield [str(name) for name in file.schema_arrow.names]
                for batch in file.iter_batches(_ROWS):
                    yield from map(list, zip(*(column.to_pylist() for column in batch.columns), strict=True))
        except GralisError:
            raise
        except Exception as error:
            raise GralisError(f"{path} cannot be read as Parquet ({str(error).partition(chr(10))[0]}).") from error
        return
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            delimiter = max(",;\t", key=stream.readline().count)
            stream.seek(0)
            width = None
            for number, line in enumerate(csv.reader(stream, delimiter=delimiter, strict=True), start=-1):
                if not line:
                    continue
                if width not in (None, len(line)):
                    raise GralisError(f"{path}: row {number} has {len(line)} cells, the header names {width} columns.")
                width = len(line)
                yield [cell.strip() for cell in line]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise GralisError(f"{path} cannot be read as CSV in UTF-8 ({error}).") from error
    if width is None:
        raise GralisError(f"{path} is empty.")


def means(path: str | Path, *, drop: Sequence[str] = ()) -> Array:
    """The mean of every column of a table, read row by row: a baseline for its rows."""
    source = table(path, drop=drop)
    total, n = 0.0, 0
    for item in source:
        total, n = total + item.make().x, n + 1
    if not n:
        raise bad("path", "means", "a table with at least one row", "none")
    return np.asarray(total / n)
