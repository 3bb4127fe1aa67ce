"""Items: the inputs of a data set, each with an id that stays the same from run to run.

`Item` is an input that is ready, `PendingItem` one that is made when it is needed, `ItemStream` all items of a data set
in order, and `Source` what a user implements to bring items of a new kind. `explain_many` and `gralis.bench`
share them.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from torch import Tensor

from gralis.errors import GralisError, bad
from gralis.features import Features

__all__ = ["Item", "ItemStream", "PendingItem", "Source"]


@dataclass(frozen=True, eq=False)
class Item:
    """One input that is ready to be explained or scored.

    Parameters
    ----------
    name : str
        The id of the input within its data set.
    x : array, tensor, or a tuple or dict of them
        The input itself, without a batch axis.
    features : Features, default=None
        What divides this input; None leaves it to the caller's options.
    target : int, default=None
        The class to be explained; None leaves it to the caller, or takes the predicted class.
    about : mapping of str to str, default={}
        What is kept with the results, such as "label" or "patient".
    annotation : array of shape (height, width), default=None
        True where an expert marked the input.
    """

    name: str
    x: Any
    features: Features | None = None
    target: int | None = None
    about: Mapping[str, str] = field(default_factory=dict)
    annotation: Any = None

    @property
    def label(self) -> str | None:
        """The label among `about`, if there is one."""
        return self.about.get("label") or None


@dataclass(frozen=True)
class PendingItem:
    """An input that is not made yet."""

    id: str
    make: Callable[[], Item]
    portable: bool = False  # whether `make` may run in another process or on another machine
    label: str | None = None  # where it is known before the input is made
    digest: Callable[[], str] | None = None  # changes with the content, without making the input


@dataclass(frozen=True)
class ItemStream:
    """The items of a data set in order. Every iteration starts at the first, unless they came from an iterator."""

    begin: Callable[[], Iterator[PendingItem]]
    total: int | None = None
    features: Features | None = None  # what divides every input, where the data set knows it
    settings: Mapping[str, Any] = field(default_factory=dict)  # how inputs are made from what is read; plain JSON

    def __iter__(self) -> Iterator[PendingItem]:
        return self.begin()


@runtime_checkable
class Source(Protocol):
    """Names items and loads them one by one. It is sent to other processes, so it must be picklable."""

    def names(self) -> Sequence[str]:
        """The names of all items, in order and without repetition."""

    def settings(self) -> Mapping[str, Any]:
        """What decides how an item is made, as plain JSON."""

    def digest(self, index: int) -> str:
        """A text that changes when the content of the item does."""

    def load(self, index: int) -> Item:
        """The item with this number."""


def item_of(name: str, element: Any) -> Item:
    """An element of a data set as an item: an `Item`, an input, or a pair of input and label.

    >>> item = item_of("a", ([1.0, 2.0], 3))
    >>> item.x, item.label
    ([1.0, 2.0], '3')
    """
    if isinstance(element, Item):
        return element
    if isinstance(element, tuple | list) and len(element) == 2:
        label = _bare(element[1])
        if isinstance(label, str | numbers.Real) and isinstance(element[0], Tensor | np.ndarray | list | tuple):
            return Item(name, element[0], about={"label": label_of(label) or ""})
    return Item(name, element)


def refuse(error: GralisError) -> Item:
    """In place of an item that cannot be made: raise the error."""
    raise error


def label_of(value: Any) -> str | None:
    """A label as text; None, NaN and an empty text are no label.

    >>> label_of(3), label_of(1.0), label_of("cat"), label_of(float("nan")), label_of("")
    ('3', '1.0', 'cat', None, None)
    """
    value = _bare(value)
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return None if missing else str(value) or None


def _bare(value: Any) -> Any:
    """A single number without its array."""
    single = isinstance(value, Tensor | np.ndarray | np.generic) and value.ndim == 0
    return value.item() if single else value


def id_of(name: object) -> str:
    """An id of the user's as text."""
    if not isinstance(name, str | numbers.Integral):
        raise bad("ids", "explain_many", "names or whole numbers", f"a {type(name).__name__}")
    text = str(name)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise bad("ids", "explain_many", "text that can be written as UTF-8", ascii(text)) from None
    return text


def distinct(items: Iterable[PendingItem]) -> Iterator[PendingItem]:
    """The items, with an error at the first id that came before."""
    seen: set[str] = set()
    for item in items:
        if item.id in seen:
            raise bad("ids", "explain_many", "different for every input", f"{item.id!r} twice")
        seen.add(item.id)
        yield item
