"""Whether a prediction is right: the class that was explained against the label."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["class_number", "class_text", "is_right", "label_text"]


def class_number(target: str | None) -> int | None:
    """The class in the description of a target, or None if it names none.

    >>> class_number("output[3]"), class_number("probability(3)"), class_number("output")
    (3, 3, None)
    """
    found = re.search(r"[\[(](\d+)[\])]", target or "")
    return int(found[1]) if found else None


def class_text(number: int | None, classes: Sequence[str]) -> str | None:
    """The name of a class, or its number where it has no name.

    >>> class_text(1, ["cat", "dog"]), class_text(2, ["cat", "dog"]), class_text(None, [])
    ('dog', '2', None)
    """
    if number is None:
        return None
    return classes[number] if number < len(classes) else str(number)


def label_text(label: str | None, classes: Sequence[str]) -> str | None:
    """A label as people read it: the name of the class where the label is its number.

    >>> label_text("1.0", ["cat", "dog"]), label_text("tiger", ["cat", "dog"]), label_text("7", [])
    ('dog', 'tiger', '7')
    """
    number = _number(label)
    return label if number is None or number >= len(classes) or label in classes else classes[number]


def is_right(number: int | None, label: str | None, classes: Sequence[str]) -> bool | None:
    """Whether the label names the predicted class, by its number or by its name; None where one of them is unknown.

    >>> is_right(1, "1.0", []), is_right(1, "dog", ["cat", "dog"]), is_right(1, "cat", ["cat", "dog"])
    (True, True, False)
    >>> is_right(None, "3", []) is None
    True
    """
    if number is None or label is None:
        return None
    if label in classes:
        return classes.index(label) == number
    named = _number(label)
    return label == class_text(number, classes) if named is None else named == number


def _number(label: str | None) -> int | None:
    """The class that a label such as 3 or 3.0 names by its number."""
    return int(label.partition(".")[0]) if label and re.fullmatch(r"\d{1,9}(\.0*)?", label) else None
