"""Sentences from numbers, for a reader who knows the case but not the method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["area", "listed", "number", "percent", "plural", "signed", "summary", "where"]

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


def summary(c: Mapping[str, Any]) -> list[str]:
    """The whole report in a few sentences, from its content."""
    p, features, phi = c["prediction"], c["features"], c["methods"][0]
    what = f"for {p['label']} " if p["label"] else ""
    opening = (
        f"The model's output {what}is {number(p['f_x'])} for this input, against {number(p['f_baseline'])} for the "
        f"baseline with which it is compared ({p['baseline']}). This report says which {features['noun']}s make that "
        f"difference of {signed(p['delta'])}, and how sure one can be."
    )
    found = " ".join([*_strongest(features, phi), *_certainty(features, phi)])
    return [opening, *_warning(c["doubts"]), found, _rest(c)]


def _warning(doubts: Sequence[str]) -> list[str]:
    """A sentence that leads to the doubts, if there are any."""
    if not doubts:
        return []
    which = "1 doubt, which" if len(doubts) == 1 else f"{len(doubts)} doubts, which"
    return [f"Read these numbers with care: there {'is' if len(doubts) == 1 else 'are'} {which} the box below states."]


def _strongest(features: Mapping[str, Any], phi: Mapping[str, Any]) -> list[str]:
    values = np.array([np.nan if v is None else v for v in phi["values"]])
    if not np.nan_to_num(values).any():
        return [f"No {features['noun']} has any influence."]
    order = np.argsort(-np.abs(np.nan_to_num(values)), kind="stable")
    first = int(order[0])
    side = "raises" if values[first] > 0 else "lowers"
    name = f"{features['names'][first]} ({features['where'][first]})"
    amount = f"{signed(values[first])}{_margin(phi['half_width'][first])}"
    sentences = [f"The strongest {features['noun']} is {name}; it {side} the output: {amount}."]
    others = [int(i) for i in order[1:4] if abs(values[i]) > 0.25 * abs(values[first])]
    if others:
        described = [f"{features['names'][i]} ({signed(values[i])})" for i in others]
        sentences.append(f"Next {'come' if len(others) > 1 else 'comes'} {listed(described)}.")
    return sentences


def _margin(half: float | None) -> str:
    return "" if half == 0 else f" ±\u00a0{number(half, 2)}"


def _certainty(features: Mapping[str, Any], phi: Mapping[str, Any]) -> list[str]:
    """How many values can be distinguished from zero."""
    pairs = [(v, h) for v, h in zip(phi["values"], phi["half_width"], strict=True) if v is not None and h is not None]
    if not pairs:
        return ["How far off these numbers may be is not known."]
    above, below = sum(v - h > 0 for v, h in pairs), sum(v + h < 0 for v, h in pairs)
    open_ = len(pairs) - above - below
    noun, total = features["noun"], features["n"]
    among = f"Of {plural(total, noun)}" if total == len(pairs) else f"Of the {len(pairs)} {noun}s listed"
    if all(h == 0 for _, h in pairs):
        idle = f", {open_} do neither" if open_ else ""
        effect = f"{above or 'none'} raise the output and {below or 'none'} lower it{idle}"
        return [f"{among}, {effect}; no value has an error above rounding."]
    unclear = f"; for {open_} the sign is not certain" if open_ else ""
    return [f"{among}, {above or 'none'} clearly raise the output and {below or 'none'} clearly lower it{unclear}."]


def _rest(c: Mapping[str, Any]) -> str:
    """Whether the values add up to the difference, and if not, why."""
    p, total = c["prediction"], c["residual"]["sum"]
    noun = c["features"]["noun"]
    if abs(total - p["delta"]) <= 0.02 * abs(p["delta"]):
        return f"Together the {noun}s account for the whole difference."
    more = abs(total) > abs(p["delta"]) and total * p["delta"] > 0
    much, often = ("more than the difference itself", "more") if more else ("not all of it", "less")
    reason = f"{much}: on average {noun}s do {often} among few others than when all are there"
    return f"The values add up to {number(total)}, {reason}. What remains is accounted for below."
