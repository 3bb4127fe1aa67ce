"""Inputs of any kind as one stream of items.

An id is the one that the user gives, the name of a file within its folder, or the number of the row. Where items can be
reached in any order, items with ids from the user are taken in the order of the ids (whole numbers by size, then
names), so a shuffled list gives the same run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler

from gralis.checks import as_path
from gralis.errors import GralisError, bad
from gralis.features import columns
from gralis.many.items import Item, ItemStream, PendingItem, Source, distinct, id_of, item_of, label_of
from gralis.many.pictures import folder
from gralis.many.rows import TABLE_SUFFIXES, check_names, numbers, table

__all__ = ["as_stream"]

_WHOLE = re.compile(r"-?[0-9]{1,18}")


def as_stream(inputs: object, ids: Iterable[object] | None = None, *, as_frames: bool = False) -> ItemStream:
    """Whatever holds inputs, as a stream of items; the rows of a data frame as frames of one row, or as numbers.

    >>> [(item.id, item.make().x) for item in as_stream([1.5, 2.5], ids=["b", "a"])]
    [('a', 2.5), ('b', 1.5)]
    >>> [item.id for item in as_stream(x for x in [1.5, 2.5])]
    ['0', '1']
    """
    why_no_ids = _has_ids(inputs)
    if why_no_ids and ids is not None:
        raise bad("ids", "explain_many", f"left out, because {why_no_ids}", f"a {type(ids).__name__}")
    if isinstance(inputs, ItemStream):
        return inputs
    if ids is not None and (not isinstance(ids, Iterable) or getattr(ids, "ndim", 1) == 0):
        raise bad("ids", "explain_many", "one for each input", f"a {type(ids).__name__}")
    if isinstance(inputs, str | Path):
        return _files(as_path(inputs, "explain_many", "inputs"))
    if isinstance(inputs, Source):
        return _source(inputs)
    if _is_ray_data(inputs):
        return _ray_data(inputs)
    if hasattr(inputs, "to_numpy") and hasattr(inputs, "columns"):
        return _frame(inputs, ids, as_frames)
    if isinstance(inputs, DataLoader):
        return _loader(inputs, ids)
    if isinstance(inputs, Mapping):
        return _indexed(partial(_element, inputs), list(inputs), list(inputs))
    if hasattr(inputs, "__getitem__") and hasattr(inputs, "__len__") and not isinstance(inputs, IterableDataset):
        return _indexed(partial(_element, inputs), range(_length(inputs)), ids)
    if isinstance(inputs, Iterable):
        return _iterable(inputs, ids)
    allowed = "a list, a batch, a Dataset or DataLoader, a folder, a table, a Ray data set or any iterable of inputs"
    raise bad("inputs", "explain_many", allowed, f"a {type(inputs).__name__}")


def _has_ids(inputs: object) -> str | None:
    """Why the user cannot give ids to inputs of this kind, if that is so."""
    if isinstance(inputs, Mapping):
        return "the keys of a dict are its ids"
    if isinstance(inputs, ItemStream | Source | str | Path):
        return "a folder names its pictures, and a table its rows (gralis.many.table(path, id='column'))"
    if _is_ray_data(inputs):
        return "a Ray data set names its rows in the column 'id'"
    return None


def _is_ray_data(inputs: object) -> bool:
    return type(inputs).__module__.startswith("ray.data")


def _files(path: Path) -> ItemStream:
    """A folder of pictures, or a table."""
    if path.is_dir():
        return folder(path)
    if not path.is_file():
        raise GralisError(f"There is no file or folder {path}.")
    if path.suffix.lower() not in TABLE_SUFFIXES:
        raise GralisError(f"{path} must be a folder of pictures or a table ({', '.join(sorted(TABLE_SUFFIXES))}).")
    return table(path)


def _source(source: Source) -> ItemStream:
    names = source.names()

    def begin() -> Iterator[PendingItem]:
        for index, name in enumerate(names):
            yield PendingItem(name, partial(source.load, index), True, digest=partial(source.digest, index))

    return ItemStream(lambda: distinct(begin()), len(names), settings=source.settings())


def _indexed(load: Callable[[Any, str], Item], keys: Sequence[Any], ids: Iterable[object] | None) -> ItemStream:
    """Items that can be reached in any order; `load` makes one from its key and its id."""
    if not len(keys):
        raise bad("inputs", "explain_many", "at least one input", "none")
    if ids is None:
        return ItemStream(lambda: (PendingItem(str(key), partial(load, key, str(key))) for key in keys), len(keys))
    names = list(map(id_of, ids))
    if len(names) != len(keys):
        raise bad("ids", "explain_many", f"one for each of the {len(keys)} inputs", f"{len(names)} of them")
    places = sorted(range(len(keys)), key=lambda place: _order(names[place]))

    def begin() -> Iterator[PendingItem]:
        return (PendingItem(names[place], partial(load, keys[place], names[place])) for place in places)

    for _ in distinct(begin()):  # ids that are given twice are refused before the run
        pass
    return ItemStream(begin, len(keys))


def _element(inputs: Any, key: Any, name: str) -> Item:
    return item_of(name, inputs[key])


def _order(name: str) -> tuple[bool, int, str]:
    """Whole numbers by their size, so that ids 0..11 keep their places when 12 and 13 join them; then names."""
    whole = _WHOLE.fullmatch(name) is not None
    return not whole, int(name) if whole else 0, name


def _length(inputs: Any) -> int:
    try:
        return len(inputs)
    except TypeError as error:
        raise bad("inputs", "explain_many", "at least one input", "none, or no length") from error


def _iterable(inputs: Iterable[Any], ids: Iterable[object] | None) -> ItemStream:
    """Items that come one after the other, in the order that they have."""

    def pairs() -> Iterator[tuple[str, Any]]:
        if ids is None:
            yield from ((str(number), x) for number, x in enumerate(inputs))
            return
        try:
            yield from zip(map(id_of, ids), inputs, strict=True)
        except ValueError as error:
            if isinstance(error, GralisError):
                raise
            raise bad("ids", "explain_many", "as many as there are inputs", "another number") from error

    def begin() -> Iterator[PendingItem]:
        items = (PendingItem(name, partial(item_of, name, x)) for name, x in pairs())
        return items if ids is None else distinct(items)

    return ItemStream(begin, len(inputs) if isinstance(inputs, Sized) else None)


def _loader(loader: DataLoader[Any], ids: Iterable[object] | None) -> ItemStream:
    batches = loader.batch_sampler
    if not _in_order(loader):
        raise bad(
            "inputs",
            "explain_many",
            "in an order that can be repeated",
            "a DataLoader that shuffles, or has its own sampler",
            "Leave shuffle and the samplers out, or give its data set.",
        )

    class Elements:
        def __iter__(self) -> Iterator[Any]:
            return iter(loader) if batches is None else chain.from_iterable(map(_elements, loader))

    stream = _iterable(Elements(), ids)
    try:
        total = len(loader.dataset)  # type: ignore[arg-type]
    except TypeError:
        return stream
    return replace(stream, total=None if getattr(batches, "drop_last", False) else total)


def _in_order(loader: DataLoader[Any]) -> bool:
    """Whether the loader goes through its data from first to last. A subclass of a sampler may use any order."""
    if not getattr(loader, "in_order", True) and loader.num_workers:
        return False
    if isinstance(loader.dataset, IterableDataset):
        return True
    batches: Any = loader.batch_sampler
    inner = loader.sampler if batches is None else batches.sampler if type(batches) is BatchSampler else None
    return type(inner) is SequentialSampler


def _elements(batch: Any) -> list[Any]:
    """The rows of a collated batch: a tensor, a pair of inputs and labels, or a tuple or dict of tensors."""
    try:
        if isinstance(batch, Mapping):
            parts = zip(*batch.values(), strict=True)
            return [dict(zip(batch, row, strict=True)) for row in parts]
        return list(zip(*batch, strict=True)) if isinstance(batch, tuple | list) else list(batch)
    except (TypeError, ValueError) as error:
        allowed = "in batches with the same number of rows in every part (or use batch_size=None)"
        raise bad("inputs", "explain_many", allowed, f"a batch that cannot be taken apart ({error})") from error


def _frame(frame: Any, ids: Iterable[object] | None, as_frames: bool) -> ItemStream:
    """A data frame: every row is an input, every column a feature."""
    names = [str(name) for name in frame.columns]
    check_names(names, "The data frame")
    if as_frames and len(names):
        stream = _indexed(partial(_mixed_row, frame), range(len(frame)), ids)
        return replace(stream, settings={"columns": names})
    cells = np.asarray(frame.to_numpy())
    if not names or cells.ndim != 2:
        raise bad("inputs", "explain_many", "at least one input", "a data frame without columns")
    stream = _indexed(partial(_frame_row, cells, names), range(len(cells)), ids)
    return replace(stream, features=columns(names), settings={"columns": names})


def _mixed_row(frame: Any, row: int, name: str) -> Item:
    """A row of texts, categories and numbers, which an estimator takes."""
    return Item(name, frame.iloc[[row]])


def _frame_row(cells: Any, names: Sequence[str], row: int, name: str) -> Item:
    return Item(name, numbers(cells[row], names, f"row {row}"))


def _ray_data(dataset: Any) -> ItemStream:
    """A Ray data set: the column "id" names a row, "label" is its label, and the other columns are the input."""

    def begin() -> Iterator[PendingItem]:
        import ray

        ray.data.DataContext.get_current().execution_options.preserve_order = True
        for number, row in enumerate(dataset.iter_rows()):
            name = id_of(row.pop("id", number))
            label = label_of(row.pop("label", None))
            yield PendingItem(name, partial(_ray_row, row, name), label=label)

    return ItemStream(lambda: distinct(begin()), dataset.count())


def _ray_row(row: Mapping[str, Any], name: str) -> Item:
    cells = list(row.values())
    return Item(name, cells[0] if len(cells) == 1 else numbers(cells, list(row), "This row"))
