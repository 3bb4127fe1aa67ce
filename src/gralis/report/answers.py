"""The five questions with which a reader opens a report, answered in sentences from its content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gralis.arrays import Array
from gralis.report.words import listed, number, percent, plural, signed, with_margin

__all__ = ["answers"]

_N_NAMED = 3
_IDLE = 1e-3  # of the largest value: what is smaller, with its error, does next to nothing


def answers(c: Mapping[str, Any]) -> list[dict[str, str]]:
    """What was predicted, compared with what, what counts most, what is unsure, and what to distrust."""
    noun = c["features"]["noun"]
    asked = (
        ("predicted", "What did the model say?", _predicted(c)),
        ("compared", "Compared with what?", _compared(c)),
        ("counts", f"Which {noun}s count most?", _counts(c)),
        ("unsure", f"Which {noun}s are unsure?", _unsure(c)),
        ("distrust", "What should I distrust?", " ".join(_distrust(c))),
    )
    return [{"id": key, "question": question, "answer": answer} for key, question, answer in asked]


def _predicted(c: Mapping[str, Any]) -> str:
    p = c["prediction"]
    what = p["label"] or p["target_words"]
    return f"The model's output{f' for {what}' if what else ''} is {number(p['f_x'])}."


def _compared(c: Mapping[str, Any]) -> str:
    p, noun = c["prediction"], c["features"]["noun"]
    beside = " (the picture beside)" if c["picture"].get("baseline") else ""
    compared = (
        f"With the baseline: {p['compared_with']}{beside}. Its output is {number(p['f_baseline'])}. This page says "
        f"which {noun}s make the difference of {signed(p['delta'])}."
    )
    return " ".join([compared, *(_sentence(text) for text in c["provenance"].get("choices") or ())])


def _sentence(text: str) -> str:
    """What was decided for the user, as a sentence: a picture cut into regions, a batch axis left out."""
    return f"Note: {text.rstrip('.')}."


def _numbers(c: Mapping[str, Any]) -> tuple[Array, Array]:
    """The values and their half-widths; NaN where unknown."""
    phi = c["methods"][0]
    values, half = (np.array([np.nan if v is None else v for v in phi[key]]) for key in ("values", "half_width"))
    return values, half


def _counts(c: Mapping[str, Any]) -> str:
    features, (values, half) = c["features"], _numbers(c)
    noun = features["noun"]
    if not np.nan_to_num(values).any():
        return f"No {noun} has any influence."
    order = np.argsort(-np.abs(np.nan_to_num(values)), kind="stable")[:_N_NAMED]
    named = []
    for i in order[np.nan_to_num(values)[order] != 0]:
        verb = "raises" if values[i] > 0 else "lowers"
        amount = with_margin(signed(values[i]), float(half[i]))
        named.append(f"{features['names'][i]} ({features['where'][i]}) {verb} the output: {amount}")
    return f"{'; '.join(named)}. {_tally(c, values, half)}".strip()


def _tally(c: Mapping[str, Any], values: Array, half: Array) -> str:
    """How many values can be distinguished from zero."""
    known = np.isfinite(values) & np.isfinite(half)
    if not known.any():
        return ""
    above, below = int((values - half > 0).sum()), int((values + half < 0).sum())
    noun, total = c["features"]["noun"], c["features"]["n"]
    among = f"Of {plural(total, noun)}" if total == len(values) else f"Of the {len(values)} {noun}s listed"
    clearly = "" if not half[known].any() else "clearly "
    return f"{among}, {above or 'none'} {clearly}raise the output and {below or 'none'} {clearly}lower it."


def _unsure(c: Mapping[str, Any]) -> str:
    features, (values, half) = c["features"], _numbers(c)
    noun = features["noun"]
    if not np.isfinite(half).any():
        return "All of them: how far off these numbers may be is not known."
    if not np.nan_to_num(half, nan=1.0).any():
        return "None: no value has an error above rounding."
    least = _IDLE * float(np.nanmax(np.abs(values), initial=0.0))
    open_ = np.flatnonzero(((np.abs(values) <= half) & (half > least)) | ~np.isfinite(half))
    if not len(open_):
        return f"None: for each {noun} it is certain whether it raises the output, lowers it, or does neither."
    first = int(open_[np.argmax(np.abs(np.nan_to_num(values[open_])))])
    amount = with_margin(signed(values[first]), float(half[first]))
    named = f"{features['names'][first]} ({amount})"
    if len(open_) == 1:
        return f"{named}: it may raise or lower the output, or do neither."
    largest = f"The largest of them is {named}: it may raise or lower the output."
    return f"For {len(open_)} {noun}s the sign is not certain. {largest}"


def _distrust(c: Mapping[str, Any]) -> list[str]:
    """The reasons for care, the most serious first."""
    sentences, names = [], c["features"]["names"]
    if c["doubts"]:
        n = len(c["doubts"])
        sentences.append(f"There {'is 1 doubt' if n == 1 else f'are {n} doubts'}, which the box below states.")
    opposed = list(dict.fromkeys(each["feature"] for each in c["disagreements"]))
    if opposed:
        more = [f"{len(opposed) - _N_NAMED} more"] if len(opposed) > _N_NAMED else []
        who = listed([*(names[i] for i in opposed[:_N_NAMED]), *more])
        sentences.append(f"Do not trust the direction of {who}: two methods disagree on it, as the box below says.")
    certificate = c["certificate"]
    if certificate.get("vacuous"):
        sentences.append("Do not trust the sizes: some ± are wider than the whole difference.")
    elif (certificate.get("share") or 0.0) > 0.01 and not certificate["exact"]:
        share = percent(certificate["share"])
        sentences.append(f"Do not compare values that are close to each other: a ± may be {share} of the difference.")
    sentences.append(_sum(c))
    sentences.append("The numbers describe what the model does, not the world.")
    return sentences


def _sum(c: Mapping[str, Any]) -> str:
    """Whether the values add up to the difference, and if not, why."""
    p, total, noun = c["prediction"], c["residual"]["sum"], c["features"]["noun"]
    if abs(total - p["delta"]) <= 0.02 * abs(p["delta"]):
        return f"Together the {noun}s account for the whole difference."
    more = abs(total) > abs(p["delta"]) and total * p["delta"] > 0
    often = "more" if more else "less"
    return f"Do not add the values up: on average a {noun} does {often} among few others than among all."
