"""One claim, what is predicted, what comes out, and whether the two agree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

#: What is left of an exact identity after floating point.
ROUNDING = 1e-9
#: What counts as a real difference: far above rounding, far below the numbers themselves.
VISIBLE = 1e-3


@dataclass(frozen=True)
class Row:
    """A claim of the paper (`source` says where) with its predicted and its computed value."""

    claim: str
    predicted: object
    computed: object
    holds: bool
    source: str = ""

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "FAILS"
        return f"{verdict}: {self.claim}; predicted {shown(self.predicted)}, computed {shown(self.computed)}"


def equal(claim: str, predicted: object, computed: object, source: str = "") -> Row:
    """Holds if the two are the same, without any tolerance: for rational numbers.

    >>> from fractions import Fraction
    >>> print(equal("a third, three times", 1, 3 * Fraction(1, 3)))
    holds: a third, three times; predicted 1, computed 1
    """
    same = _listed(predicted) == _listed(computed)
    return Row(claim, predicted, computed, same, source)


def near(claim: str, predicted: object, computed: object, source: str = "", within: float = ROUNDING) -> Row:
    """Holds if there are as many numbers, and every one differs by at most `within`."""
    one, two = np.asarray(predicted, dtype=np.float64), np.asarray(computed, dtype=np.float64)
    holds = one.shape == two.shape and bool((np.abs(two - one) <= within).all())
    return Row(claim, predicted, computed, holds, source)


def vanishes(claim: str, computed: float, source: str = "", within: float = ROUNDING) -> Row:
    """Holds if a difference is zero up to rounding."""
    return Row(claim, f"0 (<= {within:.0e})", computed, bool(0 <= computed <= within), source)


def at_most(claim: str, limit: float, computed: float, source: str = "") -> Row:
    """Holds if computed <= limit."""
    return Row(claim, f"<= {shown(limit)}", computed, bool(computed <= limit), source)


def exceeds(claim: str, limit: float, computed: float, source: str = "") -> Row:
    """Holds if computed > limit: for claims that two things differ."""
    return Row(claim, f"> {shown(limit)}", computed, bool(computed > limit), source)


def shown(value: object) -> str:
    """A number, or several, as text.

    >>> from fractions import Fraction
    >>> shown((Fraction(11, 4), 0.5, True)), shown("as it is")
    ('11/4, 0.5, yes', 'as it is')
    """
    if isinstance(value, str):
        return value
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if isinstance(value, Iterable):
        return ", ".join(shown(part) for part in value)
    return str(value)


def _listed(value: object) -> object:
    """Tuples, lists and arrays of the same numbers are the same."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return value
    return [_listed(part) for part in value]
