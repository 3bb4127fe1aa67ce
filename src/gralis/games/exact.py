"""Exact in, exact out: integers and fractions are computed with as rationals, every other number as a float."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from numbers import Rational, Real
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from gralis.errors import bad

Number: TypeAlias = Fraction | float
#: Sorted feature indices.
Coalition: TypeAlias = tuple[int, ...]


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
    """n numbers; a single one stands for all of them."""
    if isinstance(values, np.ndarray | torch.Tensor):
        values = values.tolist()
    if isinstance(values, Sequence) and not isinstance(values, str):
        if len(values) != n:
            raise bad(parameter, owner, f"a number, or one per feature, {n} in all", f"{len(values)} of them")
        return tuple(number(value, parameter, owner) for value in values)
    return (number(values, parameter, owner),) * n


def array(values: Iterable[Number]) -> NDArray[Any]:
    """An array of Fractions if all of them are, of float64 otherwise.

    >>> array([Fraction(1, 2), Fraction(3)]).sum()
    Fraction(7, 2)
    >>> array([Fraction(1, 2), 3.0])
    array([0.5, 3. ])
    """
    numbers = list(values)
    rational = all(isinstance(value, Fraction) for value in numbers)
    return np.array(numbers, dtype=object if rational else np.float64)


def coalition(members: object, n: int, parameter: str, owner: str) -> Coalition:
    """The members as sorted indices below n, none twice.

    >>> coalition({2, 0}, 3, "coalition", "Glove")
    (0, 2)
    """
    allowed = f"feature indices 0..{n - 1}, none twice"
    if not isinstance(members, Iterable) or isinstance(members, str):
        raise bad(parameter, owner, allowed, repr(members))
    listed = list(members)
    if not all(isinstance(i, int | np.integer) and not isinstance(i, bool) and 0 <= i < n for i in listed):
        raise bad(parameter, owner, allowed, repr(members))
    if len(set(listed)) < len(listed):
        raise bad(parameter, owner, allowed, repr(members))
    return tuple(sorted(int(i) for i in listed))
