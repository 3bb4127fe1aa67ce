"""Inputs from files: the pictures of a folder, the rows of a table; read one by one, never all at once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError, bad
from gralis.features import columns
from gralis.files.images import SUFFIXES, Preprocessing
from gralis.many.items import Given, Item, Source, label_of, name_of, named_twice
from gralis.many.rows import count_rows, numbers, ragged, read_rows
from gralis.many.tables import written

_TABLES = {".csv", ".tsv", ".parquet", ".pq"}


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
    pixels are refused, and so is a file that a link has outside the folder. Bytes of a name that are not UTF-8 are
    written as \\\\udcff in its id.
    """
    root = _path(path, "folder").resolve()
    if not root.is_dir():
        raise GralisError(f"There is no folder {path}.")
    height, width = _size(size)
    preprocessing = Preprocessing(height, width, _colours(mean, "mean"), _colours(std, "std"))
    found = sorted(_below(root))
    if not found:
        raise GralisError(f"There is no picture in {path} ({', '.join(sorted(SUFFIXES))} are read).")
    names = {written(name): name for name in found}  # by id
    if len(names) < len(found):
        raise GralisError(f"Two pictures in {path} have names that are written alike; rename one of them.")

    def begin() -> Iterator[Item]:
        return (Item(own, partial(_picture, preprocessing, root, name), True) for own, name in names.items())

    settings = {"size": [height, width], "mean": list(preprocessing.mean), "std": list(preprocessing.std)}
    return Source(begin, len(names), settings=settings)


def table(path: str | Path, *, id: str | None = None, label: str | None = None, drop: Sequence[str] = ()) -> Source:
    """The rows of a CSV or Parquet file, one feature per column; `id` and `label` name columns that are not inputs.

    A row that is not what it should be (a cell that is no number, too few cells, no id) is an input that fails; where
    its id is missing, it is called after its number, "row 7".
    """
    path = _path(path, "table")
    return _table(path, id, label, drop, count_rows)


def means(path: str | Path, *, drop: Sequence[str] = ()) -> Array:
    """The mean of every column of a table over the rows that can be read, one by one: a baseline for its rows."""
    total, n, wrong = 0.0, 0, None
    for item in _table(_path(path, "means"), None, None, drop, lambda _: None):
        try:
            total, n = total + item.make().x, n + 1
        except GralisError as error:
            wrong = wrong or error
    if not n:
        raise wrong or bad("path", "means", "a table with at least one row", "none")
    return np.asarray(total / n)


def _table(path: Path, id: str | None, label: str | None, drop: Sequence[str], count: Any) -> Source:
    if not path.is_file():
        raise GralisError(f"There is no file {path}.")
    if isinstance(drop, str) or not isinstance(drop, Sequence):
        raise bad("drop", "table", "a list of column names", repr(drop))
    names = next(read_rows(path))
    for name in [*drop, *(one for one in (id, label) if one is not None)]:
        if name not in names:
            raise GralisError(f"{path} has no column {name!r}; it has {', '.join(map(repr, names[:8]))}.")
    kept = [i for i, name in enumerate(names) if name not in drop and name not in (id, label)]
    if not kept:
        raise GralisError(f"{path} has no columns to explain.")
    used = [names[i] for i in kept]

    def begin() -> Iterator[Item]:
        rows, seen = read_rows(path), set[str]()
        next(rows)
        for number, row in enumerate(rows):
            where = f"{path.name}: row {number}"
            wrong = ragged(row, names, where)
            own = None if id is None or wrong else row[names.index(id)]
            if id is not None and not wrong and own in (None, ""):
                wrong = GralisError(f"{where} has no id in column {id!r}.")
            name = str(number) if id is None else f"row {number}" if wrong else name_of(own)
            if id is not None and name in seen:
                raise named_twice(name)
            if id is not None:
                seen.add(name)
            if wrong:
                yield Item(name, partial(_refuse, wrong), True)
                continue
            about = None if label is None else label_of(row[names.index(label)])
            yield Item(name, partial(_row, [row[i] for i in kept], used, where), True, about)

    settings = {"id": id, "label": label, "columns": used}
    return Source(begin, count(path), columns(used), settings)


def _below(root: Path) -> Iterator[str]:
    """The pictures below a folder; links are not followed to other folders."""
    for parent, _, files in os.walk(root):
        for name in files:
            whole = Path(parent, name)
            if whole.suffix.lower() in SUFFIXES:
                yield whole.relative_to(root).as_posix()


def _picture(preprocessing: Any, root: Path, name: str) -> Given:
    path = (root / name).resolve()
    if not path.is_relative_to(root):
        raise GralisError(f"{name} is a link that leaves its folder, so it is not read.")
    return Given(preprocessing.tensor(preprocessing.picture(path)))


def _row(cells: Sequence[Any], names: Sequence[str], where: str) -> Given:
    return Given(numbers(cells, names, where))


def _refuse(wrong: GralisError) -> Given:
    raise wrong


def _path(path: object, owner: str) -> Path:
    if not isinstance(path, str | os.PathLike) or "\0" in str(path):
        raise bad("path", owner, "the path of a file or folder", repr(path))
    return Path(path)


def _size(size: object) -> tuple[int, int]:
    sides = (size, size) if isinstance(size, int) else size
    if isinstance(sides, tuple | list) and len(sides) == 2:
        height, width = sides
        if all(isinstance(side, int) and not isinstance(side, bool) and side > 0 for side in sides):
            return height, width
    raise bad("size", "folder", "a number of pixels, or (height, width)", repr(size))


def _colours(given: object, name: str) -> tuple[float, ...]:
    try:
        return tuple(map(float, given))  # type: ignore[call-overload]
    except (TypeError, ValueError):
        raise bad(name, "folder", "one number, or three", repr(given)) from None
