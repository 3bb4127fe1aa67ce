"""One claim of the paper: what it predicts, what the computation gives, and whether the two agree."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

__all__ = [
    "ClaimRow",
    "Group",
    "arithmetic",
    "at_most",
    "between",
    "collect",
    "equal",
    "exceeds",
    "near",
    "shown",
    "vanishes",
]

#: A function that computes some rows of a section.
Group: TypeAlias = Callable[[], "Iterable[ClaimRow]"]

#: What floating point leaves of an exact identity.
ROUNDING = 1e-9
#: A difference above this is real: it is far above rounding and far below the numbers themselves.
VISIBLE = 1e-3

_MOST_SHOWN = 10


@dataclass(frozen=True)
class ClaimRow:
    """A claim of the paper with its predicted and its computed value.

    Attributes
    ----------
    claim : str
        The claim in words.
    predicted : object
        The value that the paper states, or a condition on it as text.
    computed : object
        The value that the computation gives.
    holds : bool
        Whether the two agree.
    source : str, default=""
        The theorem, table or section of the paper that makes the claim, or the public function that was called.
    library : bool, default=True
        Whether the computed value comes from the library. Otherwise the row is arithmetic: it checks a statement of the
        paper and would hold whatever the library did.
    """

    claim: str
    predicted: object
    computed: object
    holds: bool
    source: str = ""
    library: bool = True

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "FAILS"
        return f"{verdict}: {self.claim}; predicted {shown(self.predicted)}, computed {shown(self.computed)}"


def collect(*groups: Group) -> list[ClaimRow]:
    """The rows of all groups. A group that raises becomes one row that fails, with the sentence of the error.

    >>> def broken():
    ...     raise ValueError("no such ray")
    >>> print(collect(broken)[0])
    FAILS: the rows of claim_row.broken; predicted no error, computed ValueError: no such ray
    """
    rows: list[ClaimRow] = []
    for group in groups:
        name = f"{group.__module__.rpartition('.')[2]}.{group.__name__.lstrip('_')}"
        try:
            found = [replace(row, library=row.library and not hasattr(group, _MARK)) for row in group()]
        except Exception as error:
            found = [ClaimRow(f"the rows of {name}", "no error", _sentence(error), False)]
        rows += found
    return rows


_MARK = "_arithmetic_alone"


def arithmetic(group: Group) -> Group:
    """Mark a group whose rows do not call the library: they check a statement of the paper alone."""
    setattr(group, _MARK, True)
    return group


def equal(claim: str, predicted: object, computed: object, source: str = "") -> ClaimRow:
    """The row holds if the two values are the same, without any tolerance; it is meant for rational numbers.

    `computed` may be a function without parameters, here and in the functions below. If it raises, the row fails.

    >>> from fractions import Fraction
    >>> print(equal("a third, three times", 1, 3 * Fraction(1, 3)))
    holds: a third, three times; predicted 1, computed 1
    """
    return _row(claim, predicted, computed, source, lambda value: _as_lists(predicted) == _as_lists(value))


def near(claim: str, predicted: object, computed: object, source: str = "", within: float = ROUNDING) -> ClaimRow:
    """The row holds if both sides have the same shape and every pair of numbers differs by at most `within`."""

    def holds(value: object) -> bool:
        expected, actual = np.asarray(predicted, dtype=np.float64), np.asarray(value, dtype=np.float64)
        return expected.shape == actual.shape and bool((np.abs(actual - expected) <= within).all())

    return _row(claim, predicted, computed, source, holds)


def vanishes(claim: str, computed: object, source: str = "", within: float = ROUNDING) -> ClaimRow:
    """The row holds if a difference is zero up to rounding."""
    return _row(claim, f"0 (<= {within:.0e})", computed, source, lambda value: 0 <= value <= within)


def at_most(claim: str, limit: float, computed: object, source: str = "") -> ClaimRow:
    """The row holds if computed <= limit."""
    return _row(claim, f"<= {shown(limit)}", computed, source, lambda value: value <= limit)


def exceeds(claim: str, limit: float, computed: object, source: str = "") -> ClaimRow:
    """The row holds if computed > limit; it is meant for claims that two things differ."""
    return _row(claim, f"> {shown(limit)}", computed, source, lambda value: value > limit)


def between(claim: str, low: float, high: float, computed: object, source: str = "") -> ClaimRow:
    """The row holds if low <= computed <= high."""
    return _row(claim, f"{shown(low)} .. {shown(high)}", computed, source, lambda value: low <= value <= high)


def _row(claim: str, predicted: object, computed: object, source: str, holds: Callable[[Any], object]) -> ClaimRow:
    """The row of a value, or of what a function returns; it fails if the function raises."""
    try:
        value = computed() if callable(computed) else computed
        return ClaimRow(claim, predicted, value, bool(holds(value)), source)
    except Exception as error:
        return ClaimRow(claim, predicted, _sentence(error), False, source)


def _sentence(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def shown(value: object) -> str:
    """A number, or several numbers, as text.

    >>> from fractions import Fraction
    >>> shown((Fraction(11, 4), 0.5, True)), shown("text stays as it is")
    ('11/4, 0.5, yes', 'text stays as it is')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating) or (isinstance(value, Fraction) and value.denominator > _MOST_SHOWN**6):
        return f"{float(value):.4g}"
    if isinstance(value, Iterable):
        parts = list(_flat(value))
        rest = [] if len(parts) <= _MOST_SHOWN else [f"... ({len(parts)} numbers)"]
        return ", ".join([shown(part) for part in parts[: _MOST_SHOWN if not rest else _MOST_SHOWN // 2]] + rest)
    return str(value)


def _flat(value: object) -> Iterable[object]:
    """The entries of nested sequences, one after the other."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        yield value
        return
    for part in value:
        yield from _flat(part)


def _as_lists(value: object) -> object:
    """Tuples and arrays as lists, so that they compare equal if their numbers are equal."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return value
    return [_as_lists(part) for part in value]
