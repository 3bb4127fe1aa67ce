"""One claim of the paper: what it predicts, what the computation gives, and whether the two agree."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

__all__ = ["ClaimRow", "at_most", "equal", "exceeds", "near", "shown", "vanishes"]

#: What floating point leaves of an exact identity.
ROUNDING = 1e-9
#: A difference above this is real: it is far above rounding and far below the numbers themselves.
VISIBLE = 1e-3


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
        The theorem, table or section of the paper that makes the claim.
    """

    claim: str
    predicted: object
    computed: object
    holds: bool
    source: str = ""

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "FAILS"
        return f"{verdict}: {self.claim}; predicted {shown(self.predicted)}, computed {shown(self.computed)}"


def equal(claim: str, predicted: object, computed: object, source: str = "") -> ClaimRow:
    """The row holds if the two values are the same, without any tolerance; it is meant for rational numbers.

    >>> from fractions import Fraction
    >>> print(equal("a third, three times", 1, 3 * Fraction(1, 3)))
    holds: a third, three times; predicted 1, computed 1
    """
    same = _as_lists(predicted) == _as_lists(computed)
    return ClaimRow(claim, predicted, computed, same, source)


def near(claim: str, predicted: object, computed: object, source: str = "", within: float = ROUNDING) -> ClaimRow:
    """The row holds if both sides have the same shape and every pair of numbers differs by at most `within`."""
    expected, actual = np.asarray(predicted, dtype=np.float64), np.asarray(computed, dtype=np.float64)
    holds = expected.shape == actual.shape and bool((np.abs(actual - expected) <= within).all())
    return ClaimRow(claim, predicted, computed, holds, source)


def vanishes(claim: str, computed: float, source: str = "", within: float = ROUNDING) -> ClaimRow:
    """The row holds if a difference is zero up to rounding."""
    return ClaimRow(claim, f"0 (<= {within:.0e})", computed, bool(0 <= computed <= within), source)


def at_most(claim: str, limit: float, computed: float, source: str = "") -> ClaimRow:
    """The row holds if computed <= limit."""
    return ClaimRow(claim, f"<= {shown(limit)}", computed, bool(computed <= limit), source)


def exceeds(claim: str, limit: float, computed: float, source: str = "") -> ClaimRow:
    """The row holds if computed > limit; it is meant for claims that two things differ."""
    return ClaimRow(claim, f"> {shown(limit)}", computed, bool(computed > limit), source)


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
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if isinstance(value, Iterable):
        return ", ".join(shown(part) for part in value)
    return str(value)


def _as_lists(value: object) -> object:
    """Tuples and arrays as lists, so that they compare equal if their numbers are equal."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        return value
    return [_as_lists(part) for part in value]
