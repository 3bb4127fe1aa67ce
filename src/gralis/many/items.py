"""Inputs of any kind as one stream of items: an id that stays, and a function that makes the input when it is needed.

An id is the user's own, the name of a file within its folder, or the number of the row. Wherever items can be reached
in any order, items with ids of the user's are taken in the order of the ids, so that a shuffled list is the same list.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from itertools import chain, count, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset, RandomSampler

from gralis.errors import GralisError, bad


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


@dataclass(frozen=True)
class Source:
    """A stream of items that begins anew whenever it is iterated, unless it came from an iterator."""

    begin: Callable[[], Iterator[Item]]
    total: int | None = None
    features: Any = None  # what divides every input, where the source knows it

    def __iter__(self) -> Iterator[Item]:
        return self.begin()


def as_source(inputs: object, ids: Iterable[object] | None = None) -> Source:
    """Whatever holds inputs, as a stream.

    >>> [(item.id, item.make().x) for item in as_source([1.5, 2.5], ids=["b", "a"])]
    [('a', 2.5), ('b', 1.5)]
    >>> [item.id for item in as_source(x for x in [1.5, 2.5])]
    ['0', '1']
    """
    if isinstance(inputs, Source):
        return inputs
    if ids is not None and (not isinstance(ids, Iterable) or getattr(ids, "ndim", 1) == 0):
        raise bad("ids", "explain_many", "one for each input", f"a {type(ids).__name__}")
    if isinstance(inputs, str | Path):
        from gralis.many.files import source_of_path

        return source_of_path(Path(inputs))
    if type(inputs).__module__.startswith("ray.data"):
        return _ray_data(inputs)
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
        label = element[1]
        if isinstance(label, Tensor | np.ndarray) and label.ndim == 0:
            label = label.item()
        if isinstance(label, str | numbers.Integral) and isinstance(element[0], Tensor | np.ndarray | list | tuple):
            return Given(element[0], str(label))
    return Given(element)


def _indexed(inputs: Any, keys: Sequence[Any], ids: Sequence[object] | None) -> Source:
    """Items that can be reached in any order."""
    if not len(keys):
        raise bad("inputs", "explain_many", "at least one input", "none")
    if ids is None:
        return Source(lambda: (Item(str(key), partial(_element, inputs, key)) for key in keys), len(keys))
    if len(ids) != len(keys):
        raise bad("ids", "explain_many", f"one for each of the {len(keys)} inputs", f"{len(ids)} of them")
    named = sorted(zip(map(name_of, ids), range(len(keys)), strict=True))
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
    if isinstance(loader.sampler, RandomSampler):
        raise bad(
            "inputs",
            "explain_many",
            "in an order that can be repeated",
            "a DataLoader that shuffles",
            "Set shuffle=False, or give its data set.",
        )

    class Elements:
        def __iter__(self) -> Iterator[Any]:
            return chain.from_iterable(map(_elements, loader))

    source = _stream(Elements(), ids)
    try:
        total = len(loader.dataset)  # type: ignore[arg-type]
    except TypeError:
        return source
    return Source(source.begin, None if loader.drop_last else total)


def _elements(batch: Any) -> Iterator[Any]:
    """The rows of a collated batch: a tensor, a pair of inputs and labels, or a tuple or dict of tensors."""
    if isinstance(batch, Mapping):
        return ({key: part[row] for key, part in batch.items()} for row in range(len(next(iter(batch.values())))))
    if isinstance(batch, tuple | list):
        return zip(*batch, strict=True)
    return iter(batch)


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
            label = row.pop("label", None)
            columns = list(row.values())
            x = columns[0] if len(columns) == 1 else np.array(columns, dtype=np.float64)
            yield Item(name, partial(Given, x, None if label is None else str(label)))

    return Source(begin, dataset.count())


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


def named_twice(name: str) -> GralisError:
    return bad("ids", "explain_many", "different for every input", f"{name!r} twice")


def _length(inputs: Any) -> int:
    try:
        return len(inputs)
    except TypeError as error:
        raise bad("inputs", "explain_many", "at least one input", "none, or no length") from error
