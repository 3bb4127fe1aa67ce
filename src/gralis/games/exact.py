"""Exact in, exact out: integers and fractions stay rational numbers, every other number is a float."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import chain, combinations
from numbers import Rational, Real
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from gralis.checks import is_whole
from gralis.errors import bad

__all__ = ["Coalition", "Number", "array", "coalition", "coalitions", "non_negatives", "number", "points", "vector"]

Number: TypeAlias = Fraction | float
#: Sorted feature indices.
Coalition: TypeAlias = tuple[int, ...]
_MOST_FEATURES = 20  # of which all coalitions are listed


def number(value: object, parameter: str, owner: str) -> Number:
    """A Fraction for an integer or a fraction, a float for any other finite real number.

    >>> number(3, "x", "Multilinear"), number(0.5, "x", "Multilinear")
    (Fraction(3, 1), 0.5)
    """
    if not isinstance(value, bool):
        if isinstance(value, Rational):
            return Fraction(int(value.numerator), int(value.denominator))
        if isinstance(value, Real) and math.isfinite(value):
            return float(value)
    raise bad(parameter, owner, "made of finite real numbers (int, float or Fraction)", repr(value))


def vector(values: object, n: int, parameter: str, owner: str) -> tuple[Number, ...]:
    """n numbers; a single number stands for all of them."""
    if isinstance(values, np.ndarray | torch.Tensor):
        values = values.tolist()
    if isinstance(values, Sequence) and not isinstance(values, str):
        if len(values) != n:
            raise bad(parameter, owner, f"a number, or one per feature, {n} in all", f"{len(values)} of them")
        return tuple(number(value, parameter, owner) for value in values)
    return (number(values, parameter, owner),) * n


def non_negatives(values: object, parameter: str, owner: str) -> tuple[Number, ...]:
    """At least one number, none of them negative."""
    listed = values.tolist() if isinstance(values, np.ndarray) and values.ndim == 1 else values
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        raise bad(parameter, owner, "a sequence of at least one number >= 0", repr(values))
    numbers = vector(listed, len(listed), parameter, owner)
    if min(numbers) < 0:
        raise bad(parameter, owner, "numbers >= 0", str(min(numbers)))
    return numbers


def points(z: Any, n: int, owner: str) -> Any:
    """Points (rows, n) on which a function is called: a tensor as it is, anything else as an array."""
    z = z if isinstance(z, torch.Tensor) else np.asarray(z)
    if z.ndim != 2 or z.shape[1] != n:
        raise bad("z", owner, f"points of shape (rows, {n})", f"shape {tuple(z.shape)}")
    return z


def array(values: Iterable[Number]) -> NDArray[Any]:
    """An array of Fractions if all values are Fractions, of float64 otherwise.

    >>> array([Fraction(1, 2), Fraction(3)]).sum()
    Fraction(7, 2)
    >>> array([Fraction(1, 2), 3.0])
    array([0.5, 3. ])
    """
    numbers = list(values)
    rational = all(isinstance(value, Fraction) for value in numbers)
    return np.array(numbers, dtype=object if rational else np.float64)


def by_feature(entries: Iterable[tuple[int, Number]], n: int) -> list[Number]:
    """The sum of the numbers of every feature."""
    total: list[Number] = [Fraction(0)] * n
    for i, value in entries:
        total[i] += value
    return total


def coalition(members: object, n: int, parameter: str, owner: str) -> Coalition:
    """The members as sorted indices below n, none twice.

    >>> coalition({2, 0}, 3, "coalition", "Glove")
    (0, 2)
    """
    listed: list[Any] = list(members) if isinstance(members, Iterable) and not isinstance(members, str) else [None]
    if not all(is_whole(i, 0, n - 1) for i in listed) or len(set(listed)) < len(listed):
        raise bad(parameter, owner, f"feature indices 0..{n - 1}, none twice", repr(members))
    return tuple(sorted(int(i) for i in listed))


def coalitions(n: int, owner: str) -> Iterator[Coalition]:
    """Every coalition of n features except the empty one, by size; too many features are refused.

    >>> list(coalitions(2, "Glove.moebius"))
    [(0,), (1,), (0, 1)]
    """
    if n > _MOST_FEATURES:
        raise bad("n_features", owner, f"at most {_MOST_FEATURES}", str(n), "There are 2^n coalitions.")
    return chain.from_iterable(combinations(range(n), size) for size in range(1, n + 1))
