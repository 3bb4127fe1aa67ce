"""The plain-text tables that `print` shows. `+-` always means a simultaneous 95% half-width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.notebook import MOST_ROWS, n_shown

__all__ = [
    "SMALLEST",
    "doubt_lines",
    "error_text",
    "largest_first",
    "name_width",
    "titled",
    "united",
    "value_text",
]

SMALLEST = float(np.nextafter(0.0, 1.0))  # the half-width of a number that is not exact, but that nothing changes


def largest_first(values: Array, most: int = MOST_ROWS) -> NDArray[np.int64]:
    """The places of the largest magnitudes. In a table with several rows the largest of each column counts."""
    magnitudes = np.abs(values) if values.ndim == 1 else np.abs(values).max(0)
    return np.argsort(-magnitudes, kind="stable")[: n_shown(len(magnitudes), most)]


def name_width(names: Sequence[str], order: NDArray[np.int64]) -> int:
    """How wide the column of names must be."""
    return max([7, *(len(names[int(i)]) for i in order)])


def error_text(half_width: float) -> str:
    """A half-width in a table: a number, `exact`, or `unknown`.

    >>> error_text(0.0), error_text(SMALLEST), error_text(0.123), error_text(float("nan"))
    ('exact', '0', '0.12', 'unknown')
    """
    if np.isnan(half_width):
        return "unknown"
    if half_width == SMALLEST:
        return "0"
    return "exact" if half_width == 0 else f"{half_width:.2g}"


def value_text(value: float, half_width: float, digits: int) -> str:
    """A value with its half-width, in one cell of a table.

    >>> value_text(1.2345, 0.02, 3), value_text(1.2345, 0.0, 3), value_text(1.2345, float("nan"), 3)
    ('1.23 +- 0.02', '1.23 exact', '1.23 +- unknown')
    """
    error = error_text(half_width)
    return f"{value:.{digits}g} {error if error == 'exact' else f'+- {error}'}"


def titled(what: str, exact: bool, note: str) -> str:
    """The first line of a table: what it shows, and whether it is exact."""
    return f"{what} ({'exact' if exact else 'estimated'}{'; ' + note if note else ''})"


def doubt_lines(doubts: Sequence[str], most: int | None = None) -> tuple[str, ...]:
    """The doubts as lines below a table, `most` of them.

    >>> doubt_lines(["The model is random.", "F jumps."], 1)
    ('doubt: The model is random.', '(1 more in .doubts)')
    """
    lines = [f"doubt: {sentence}" for sentence in doubts[:most]]
    return (*lines, f"({len(doubts) - len(lines)} more in .doubts)") if len(doubts) > len(lines) else tuple(lines)


def united(doubts: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """The doubts of several explanations, each sentence once.

    >>> united([("a", "b"), (), ("b", "c")])
    ('a', 'b', 'c')
    """
    return tuple(dict.fromkeys(sentence for each in doubts for sentence in each))
