"""Sentences from numbers, for a reader who knows the case but not the method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

__all__ = ["area", "listed", "number", "percent", "plural", "signed", "where", "with_margin"]

_ROWS, _COLUMNS = ("upper", "middle", "lower"), ("left", "centre", "right")


def number(value: float | None, digits: int = 3) -> str:
    """A number as people write it, with a true minus.

    >>> number(-0.012345), number(1234.5), number(2.0), number(None)
    ('−0.0123', '1234', '2.00', 'unknown')
    """
    if value is None or not np.isfinite(value):
        return "unknown"
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1e6 or size < 1e-4:
        text = f"{value:.{digits - 1}e}"
    else:
        text = f"{value:.{max(0, digits - 1 - int(np.floor(np.log10(size))))}f}"
    return text.replace("-", "−")


def signed(value: float) -> str:
    """A number with its sign.

    >>> signed(0.5), signed(-0.5)
    ('+0.500', '−0.500')
    """
    return f"+{number(value)}" if value > 0 else number(value)


def percent(share: float) -> str:
    """A share as a percentage, without meaningless digits.

    >>> percent(0.256), percent(0.004), percent(-0.1)
    ('26 %', 'less than 1 %', '−10 %')
    """
    if 0 < abs(share) < 0.01:
        return "less than 1 %" if share > 0 else "between −1 % and 0 %"
    return f"{100 * share:.0f} %".replace("-", "−")


def where(place: Mapping[str, float]) -> str:
    """The place of a region in the picture, in words.

    >>> where({"row": 0.2, "column": 0.8, "height": 0.2, "width": 0.2})
    'upper right'
    >>> where({"row": 0.9, "column": 0.5, "height": 0.2, "width": 1.0})
    'along the bottom'
    """
    row = _ROWS[min(int(3 * place["row"]), 2)]
    column = _COLUMNS[min(int(3 * place["column"]), 2)]
    wide, tall = place["width"] > 0.75, place["height"] > 0.75
    if wide and tall:
        return "across the whole picture"
    if wide:
        return {"upper": "along the top", "middle": "across the middle", "lower": "along the bottom"}[row]
    if tall:
        return f"along the {column}" if column != "centre" else "down the middle"
    if (row, column) == ("middle", "centre"):
        return "centre"
    return f"{row} {column}"


def area(share: float) -> str:
    """How much of the picture a region covers.

    >>> area(0.043)
    '4 % of the picture'
    """
    return f"{percent(share)} of the picture"


def listed(words: Sequence[str]) -> str:
    """A list of words as part of a sentence.

    >>> listed(["a", "b", "c"]), listed(["a"])
    ('a, b and c', 'a')
    """
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "region"), plural(3, "region")
    ('1 region', '3 regions')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def with_margin(text: str, half: float | None) -> str:
    """A number and how far off it may be; nothing is added where there is no error above rounding.

    >>> with_margin("+1.00", 0.25), with_margin("+1.00", 0.0), with_margin("+1.00", None)
    ('+1.00 ±\xa00.25', '+1.00', '+1.00 ±\xa0unknown')
    """
    return text if half == 0 else f"{text} ±\u00a0{number(half, 2)}"
