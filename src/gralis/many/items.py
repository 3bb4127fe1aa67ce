"""Inputs of any kind as one stream of items: an id that stays, and a function that makes the input when it is needed.

An id is the user's own, the name of a file within its folder, or the number of the row. Wherever items can be reached
in any order, items with ids of the user's are taken in the order of the ids (whole numbers by size, then names), so
that a shuffled list is the same list.
"""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, count, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, SequentialSampler

from gralis.errors import GralisError, bad
from gralis.features import columns
from gralis.many.rows import check_names
from gralis.many.rows import numbers as as_numbers

_WHOLE = re.compile(r"-?[0-9]{1,18}")


@dataclass(frozen=True)
class Given:
    """One input, and its label if there is one."""

    x: Any
    label: str | None = None


@dataclass(frozen=True)
class Item:
    """One input to come; `portable` says that `make` may run in another process or on another machine."""

    id: str
    make: Callable[[], Given]
    portable: bool = False
    label: str | None = None  # where it is known before the input is made


@dataclass(frozen=True)
class Source:
    """A stream of items that begins anew whenever it is iterated, unless it came from an iterator."""

    begin: Callable[[], Iterator[Item]]
    total: int | None = None
    features: Any = None  # what divides every input, where the source knows it
    settings: Mapping[str, Any] = field(default_factory=dict)  # how it makes inputs of what it reads; plain JSON

    def __iter__(self) -> Iterator[Item]:
        return self.begin()


def as_source(inputs: object, ids: Iterable[object] | None = None) -> Source:
    """Whatever holds inputs, as a stream.

    >>> [(item.id, item.make().x) for item in as_source([1.5, 2.5], ids=["b", "a"])]
    [('a', 2.5), ('b', 1.5)]
    >>> [item.id for item in as_source(x for x in [1.5, 2.5])]
    ['0', '1']
    """
    own = _names_its_own(inputs)
    if own and ids is not None:
        raise bad("ids", "explain_many", f"left out, because {own}", f"a {type(ids).__name__}")
    if isinstance(inputs, Source):
        return inputs
    if ids is not None and (not isinstance(ids, Iterable) or getattr(ids, "ndim", 1) == 0):
        raise bad("ids", "explain_many", "one for each input", f"a {type(ids).__name__}")
    if isinstance(inputs, str | Path):
        from gralis.many.files import source_of_path

        return source_of_path(Path(inputs))
    if _is_ray_data(inputs):
        return _ray_data(inputs)
    if hasattr(inputs, "to_numpy") and hasattr(inputs, "columns"):
        return _frame(inputs, ids)
    if isinstance(inputs, DataLoader):
        return _loader(inputs, ids)
    if isinstance(inputs, Mapping):
        return _indexed(inputs, list(inputs), list(inputs))
    if hasattr(inputs, "__getitem__") and hasattr(inputs, "__len__") and not isinstance(inputs, IterableDataset):
        return _indexed(inputs, range(_length(inputs)), None if ids is None else list(ids))
    if isinstance(inputs, Iterable):
        return _stream(inputs, ids)
    allowed = "a list, a batch, a Dataset or DataLoader, a folder, a table, a Ray data set or any iterable of inputs"
    raise bad("inputs", "explain_many", allowed, f"a {type(inputs).__name__}")


def given(element: Any) -> Given:
    """An element as a data set gives it: an input, or a pair of input and label.

    >>> given(([1.0, 2.0], 3))
    Given(x=[1.0, 2.0], label='3')
    """
    if isinstance(element, Given):
        return element
    if isinstance(element, tuple | list) and len(element) == 2:
        label = _bare(element[1])
        if isinstance(label, str | numbers.Real) and isinstance(element[0], Tensor | np.ndarray | list | tuple):
            return Given(element[0], label_of(label))
    return Given(element)


def label_of(value: Any) -> str | None:
    """A label as text; None, NaN and nothing at all are no label.

    >>> label_of(3), label_of(1.0), label_of("cat"), label_of(float("nan")), label_of("")
    ('3', '1.0', 'cat', None, None)
    """
    value = _bare(value)
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return None if missing else str(value) or None


def _bare(value: Any) -> Any:
    """A single number out of its array."""
    single = isinstance(value, Tensor | np.ndarray | np.generic) and value.ndim == 0
    return value.item() if single else value


def _names_its_own(inputs: object) -> str | None:
    """Why inputs of this kind cannot be given ids."""
    if isinstance(inputs, Mapping):
        return "a dict has its keys for ids"
    if isinstance(inputs, Source | str | Path):
        return "a folder names its pictures, and a table its rows (gralis.many.table(path, id='column'))"
    if _is_ray_data(inputs):
        return "a Ray data set names its rows in the column 'id'"
    return None


def _is_ray_data(inputs: object) -> bool:
    return type(inputs).__module__.startswith("ray.data")


def _indexed(inputs: Any, keys: Sequence[Any], ids: Sequence[object] | None) -> Source:
    """Items that can be reached in any order."""
    if not len(keys):
        raise bad("inputs", "explain_many", "at least one input", "none")
    if ids is None:
        return Source(lambda: (Item(str(key), partial(_element, inputs, key)) for key in keys), len(keys))
    if len(ids) != len(keys):
        raise bad("ids", "explain_many", f"one for each of the {len(keys)} inputs", f"{len(ids)} of them")
    named = sorted(zip(map(name_of, ids), range(len(keys)), strict=True), key=lambda pair: _order(pair[0]))
    for (one, _), (other, _) in pairwise(named):
        if one == other:
            raise named_twice(one)
    return Source(lambda: (Item(name, partial(_element, inputs, keys[place])) for name, place in named), len(keys))


def _stream(inputs: Iterable[Any], ids: Iterable[object] | None) -> Source:
    """Items that come one after the other: their order is the one they have."""

    def begin() -> Iterator[Item]:
        if ids is None:
            yield from (Item(str(number), partial(given, x)) for number, x in enumerate(inputs))
            return
        seen: set[str] = set()
        try:
            for name, x in zip(map(name_of, ids), inputs, strict=True):
                if name in seen:
                    raise named_twice(name)
                seen.add(name)
                yield Item(name, partial(given, x))
        except ValueError as error:
            if isinstance(error, GralisError):
                raise
            raise bad("ids", "explain_many", "as many as there are inputs", "another number") from error

    return Source(begin, len(inputs) if isinstance(inputs, Sized) else None)


def _loader(loader: DataLoader[Any], ids: Iterable[object] | None) -> Source:
    batches = loader.batch_sampler
    if not _in_order(loader):
        raise bad(
            "inputs",
            "explain_many",
            "in an order that can be repeated",
            "a DataLoader that shuffles, or has a sampler of its own",
            "Leave shuffle and the samplers out, or give its data set.",
        )

    class Elements:
        def __iter__(self) -> Iterator[Any]:
            return iter(loader) if batches is None else chain.from_iterable(map(_elements, loader))

    source = _stream(Elements(), ids)
    try:
        total = len(loader.dataset)  # type: ignore[arg-type]
    except TypeError:
        return source
    return replace(source, total=None if getattr(batches, "drop_last", False) else total)


def _in_order(loader: DataLoader[Any]) -> bool:
    """Whether the loader goes through its data from the first to the last; subclasses of samplers do as they like."""
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
        allowed = "in batches of as many of everything (or use batch_size=None)"
        raise bad("inputs", "explain_many", allowed, f"a batch that cannot be taken apart ({error})") from error


def _frame(frame: Any, ids: Iterable[object] | None) -> Source:
    """A data frame: every row is an input, every column a feature."""
    names = [str(name) for name in frame.columns]
    check_names(names, "The data frame")
    table = np.asarray(frame.to_numpy())
    if not names or table.ndim != 2:
        raise bad("inputs", "explain_many", "at least one input", "a data frame without columns")

    class Rows:
        def __getitem__(self, row: int) -> Given:
            return Given(as_numbers(table[row], names, f"row {row}"))

    source = _indexed(Rows(), range(len(table)), None if ids is None else list(ids))
    return replace(source, features=columns(names), settings={"columns": names})


def _ray_data(dataset: Any) -> Source:
    """A Ray data set, row by row: column "id" names a row, "label" is its label, what is left is the input."""

    def begin() -> Iterator[Item]:
        import ray

        ray.data.DataContext.get_current().execution_options.preserve_order = True
        seen: set[str] = set()
        for number, row in zip(count(), dataset.iter_rows()):
            name = name_of(row.pop("id", number))
            if name in seen:
                raise named_twice(name)
            seen.add(name)
            label = label_of(row.pop("label", None))
            yield Item(name, partial(_of_columns, row), label=label)

    return Source(begin, dataset.count())


def _of_columns(row: Mapping[str, Any]) -> Given:
    cells = list(row.values())
    return Given(cells[0] if len(cells) == 1 else as_numbers(cells, list(row), "This row"))


def _element(inputs: Any, key: Any) -> Given:
    return given(inputs[key])


def name_of(name: object) -> str:
    if not isinstance(name, str | numbers.Integral):
        raise bad("ids", "explain_many", "names or whole numbers", f"a {type(name).__name__}")
    text = str(name)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise bad("ids", "explain_many", "text that can be written as UTF-8", ascii(text)) from None
    return text


def _order(name: str) -> tuple[bool, int, str]:
    """Whole numbers by their size, so that ids 0..11 keep their places when 12 and 13 join them; then names."""
    whole = _WHOLE.fullmatch(name) is not None
    return not whole, int(name) if whole else 0, name


def named_twice(name: str) -> GralisError:
    return bad("ids", "explain_many", "different for every input", f"{name!r} twice")


def _length(inputs: Any) -> int:
    try:
        return len(inputs)
    except TypeError as error:
        raise bad("inputs", "explain_many", "at least one input", "none, or no length") from error
