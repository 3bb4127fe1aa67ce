"""Features for which two methods give opposite signs, beyond the errors of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gralis.report.words import listed, number, signed, with_margin

__all__ = ["disagreement_sentences", "disagreements"]


def disagreements(methods: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """{"feature", "method"} for each other method whose interval lies on the other side of zero.

    Parameters
    ----------
    methods : sequence of mapping
        The methods of the content of a report; the first is the explanation itself.

    Returns
    -------
    list of dict
        The features with the largest values come first. A value with an unknown error never counts.

    Examples
    --------
    >>> first = {"id": "gralis", "values": [3.0, 1.0], "sign": [1, 1]}
    >>> other = {"id": "shapley", "values": [-1.0, -0.2], "sign": [-1, 0]}
    >>> disagreements([first, other])
    [{'feature': 0, 'method': 'shapley'}]
    """
    first, *others = methods
    order = sorted(range(len(first["values"])), key=lambda i: -abs(first["values"][i] or 0.0))
    return [
        {"feature": i, "method": other["id"]}
        for i in order
        for other in others
        if "missing" not in other and first["sign"][i] * other["sign"][i] < 0
    ]


def disagreement_sentences(c: Mapping[str, Any]) -> list[str]:
    """One sentence per feature on which the methods disagree, from the content of a report."""
    names, first = c["features"]["names"], c["methods"][0]
    by_id = {method["id"]: method for method in c["methods"]}
    sentences = []
    for i in dict.fromkeys(each["feature"] for each in c["disagreements"]):
        others = [by_id[each["method"]] for each in c["disagreements"] if each["feature"] == i]
        against = listed([f"{other['name']} ({_amount(other, i)})" for other in others])
        verbs = ("raises", "lowers") if first["values"][i] > 0 else ("lowers", "raises")
        one = f"{names[i]} {verbs[0]} the output by {first['name']} ({_amount(first, i)})"
        sentences.append(f"{one} and {verbs[1]} it by {against}.{_without(c, i)}")
    return sentences


def _without(c: Mapping[str, Any], i: int) -> str:
    """What was measured when the feature was taken away, if it was."""
    removal, p = c["removal"], c["prediction"]
    if "missing" in removal or not removal["measured"][i]:
        return ""
    return (
        f" Without it, the output goes from {number(p['f_x'])} to {number(p['f_x'] - removal['drop'][i])} (measured)."
    )


def _amount(method: Mapping[str, Any], i: int) -> str:
    return with_margin(signed(method["values"][i]), method["half_width"][i])
