"""The baseline and the target in words, for a reader who has not seen the call of `explain`."""

from __future__ import annotations

import re

from gralis.report.words import number

__all__ = ["baseline_words", "class_words", "target_words"]

#: What the names of baselines begin with, and what such a baseline is.
_KINDS = {
    "mean-color": "the picture in one colour, which is its mean colour",
    "mean_color": "the picture in one colour, which is its mean colour",
    "mean": "an input in which every value is the mean of this input",
    "blur": "a blurred copy of the input",
    "noise": "random noise in the range of the input",
    "zeros": "an input in which every value is 0",
    "array": "another input, which was given with the call",
}


def baseline_words(name: str, n_baselines: int) -> str:
    """What the input is compared with.

    >>> baseline_words("constant 0.0", 1)
    'an input in which every value is 0'
    >>> baseline_words("sample(200 rows, n=50, seed=0)", 50)
    '50 inputs drawn from 200 rows of data; the comparison is averaged over them'
    >>> baseline_words("callable cut_out", 1)
    'an input made by the function cut_out'
    """
    constant = re.fullmatch(r"constant (-?[\d.]+(?:e[-+]?\d+)?)", name)
    sampled = re.fullmatch(r"sample\((\d+) rows.*\)", name)
    if constant:
        return f"an input in which every value is {number(float(constant[1]), 3).removesuffix('.00')}"
    if sampled:
        whole = int(sampled[1]) == n_baselines
        drawn = (
            f"the {n_baselines} rows of data" if whole else f"{n_baselines} inputs drawn from {sampled[1]} rows of data"
        )
        return f"{drawn}; the comparison is averaged over them"
    if name.endswith("rows of the table"):
        return f"{name}; the comparison is averaged over them"
    if name.startswith("callable "):
        return f"an input made by the function {name.removeprefix('callable ')}"
    kind = next((words for start, words in _KINDS.items() if name == start or name.startswith(f"{start}(")), name)
    return kind if n_baselines == 1 else f"{kind}, averaged over {n_baselines} of them"


def class_words(name: object) -> str | None:
    """The name of a class that an estimator knows; a bare number says that it is a class.

    >>> class_words("benign"), class_words(1), class_words(None)
    ('benign', 'class 1', None)
    """
    if name is None:
        return None
    return f"class {name}" if re.fullmatch(r"-?\d+(\.\d+)?", str(name)) else str(name)


def target_words(target: object) -> str | None:
    """The explained output as part of a title, or None if there is only one output.

    >>> target_words("output[967]"), target_words("probability(3)"), target_words("output")
    ('class 967', 'the probability of class 3', None)
    """
    text = str(target or "")
    plain = re.fullmatch(r"output\[(\d+)\]", text)
    if plain:
        return f"class {plain[1]}"
    readout = re.fullmatch(r"(probability|logit|log_odds)\((\d+)\)", text)
    if readout:
        return f"the {readout[1].replace('_', ' ')} of class {readout[2]}"
    return None
