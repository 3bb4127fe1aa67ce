"""Names of features: a tuple of strings, or names of coordinates that are made when they are read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from gralis.arrays import Shape, length
from gralis.checks import printable
from gralis.errors import bad

__all__ = ["CoordinateNames", "checked_names"]


@dataclass(frozen=True)
class CoordinateNames(Sequence[str]):
    """One name per coordinate, such as "x[0,1,2]", made when it is read: 150 528 pixels take no memory.

    Parameters
    ----------
    prefixes : tuple of str
        The name of every leaf of x.
    shapes : tuple of tuple of int
        The shape of every leaf.

    Examples
    --------
    >>> CoordinateNames(("x",), ((3, 224, 224),))[150527]
    'x[2,223,223]'
    """

    prefixes: tuple[str, ...]
    shapes: tuple[Shape, ...]

    def __len__(self) -> int:
        return sum(math.prod(shape) for shape in self.shapes)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        position = range(len(self))[index]
        if isinstance(position, range):
            return tuple(self[each] for each in position)
        leaf = 0
        while position >= math.prod(self.shapes[leaf]):
            position -= math.prod(self.shapes[leaf])
            leaf += 1
        place = ",".join(str(i) for i in np.unravel_index(position, self.shapes[leaf]))
        return f"{self.prefixes[leaf]}[{place}]" if place else self.prefixes[leaf]


def checked_names(names: Sequence[str], n_features: int) -> Sequence[str]:
    """The names as a tuple, or as `CoordinateNames`, one per feature; the same name may occur twice."""
    n_names = length(names)
    if n_names != n_features:
        got = repr(names) if n_names is None else f"{n_names} names"
        raise bad("names", "Features", f"a sequence with one name per feature, {n_features} in all", got)
    if isinstance(names, CoordinateNames):
        return names
    for place, name in enumerate(names):
        value: object = name
        if value is None or (isinstance(value, float) and math.isnan(value)):  # a hole in a table's header
            raise bad("names", "Features", "a name for every feature", f"{value} at place {place}")
    return tuple(printable(str(name)) for name in names)
