"""Checks of single parameters: each returns the value, or raises an error that says what is allowed."""

from __future__ import annotations

import errno
import math
import os
import re
from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from pathlib import Path
from typing import TypeVar

import numpy as np

from gralis.errors import bad

#: Control characters other than tab and newline, marks that turn the direction of a line or end it, and surrogates,
#: which UTF-8 cannot represent.
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_ABSENT = (errno.ENOENT, errno.ENOTDIR)  # of a file that is still to be written

Choice = TypeVar("Choice")
Function = TypeVar("Function")

__all__ = [
    "as_path",
    "flag",
    "function",
    "is_auto",
    "is_whole",
    "non_negative",
    "one_of",
    "positive",
    "printable",
    "probability",
    "several",
    "whole",
]


def is_whole(value: object, least: int | None = None, most: int | None = None) -> bool:
    """Whether the value is a whole number from `least` to `most`; True and False do not count as numbers.

    >>> is_whole(3, 1), is_whole(True), is_whole(2.0), is_whole(9, 1, 8)
    (True, False, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        return False
    return (least is None or int(value) >= least) and (most is None or int(value) <= most)


def whole(value: object, name: str, least: int, owner: str = "explain", *, most: int | None = None) -> int:
    """The value as an int, if it is a whole number from `least` to `most`.

    >>> whole(0, "budget", 1)
    Traceback (most recent call last):
        ...
    gralis.errors.GralisError: The 'budget' parameter of explain must be a whole number >= 1. Got 0 instead.
    """
    if not is_whole(value, least, most):
        allowed = f"a whole number >= {least}" if most is None else f"a whole number from {least} to {most}"
        raise bad(name, owner, allowed, repr(value))
    return int(value)  # type: ignore[call-overload, no-any-return]


def probability(value: object, name: str, owner: str) -> float:
    """The value as a float, if it is a number between 0 and 1, both excluded."""
    return _number(value, name, owner, lambda number: 0 < number < 1, "a number between 0 and 1")


def positive(value: object, name: str, owner: str, advice: str = "") -> float:
    """The value as a float, if it is a finite number > 0; `advice` is added to the error message.

    >>> positive(-1, "sigma", "Gaussian")
    Traceback (most recent call last):
        ...
    gralis.errors.GralisError: The 'sigma' parameter of Gaussian must be a number > 0. Got -1 instead.
    """
    return _number(value, name, owner, lambda number: 0 < number < math.inf, "a number > 0", advice)


def non_negative(value: object, name: str, owner: str) -> float:
    """The value as a float, if it is a finite number >= 0."""
    return _number(value, name, owner, lambda number: 0 <= number < math.inf, "a number >= 0")


def one_of(value: Choice, choices: Sequence[Choice], name: str, owner: str) -> Choice:
    """The value, if it is one of the choices.

    >>> one_of("SVM", ("lasso", "largest"), "select", "lime")
    Traceback (most recent call last):
        ...
    gralis.errors.GralisError: The 'select' parameter of lime must be one of 'lasso', 'largest'. Got 'SVM' instead.
    """
    if not any(value is choice or (type(value) is type(choice) and value == choice) for choice in choices):
        raise bad(name, owner, f"one of {', '.join(map(repr, choices))}", repr(value))
    return value


def several(values: Iterable[Choice], name: str, owner: str, allowed: str) -> tuple[Choice, ...]:
    """The values as a tuple with at least one entry; a string is not a list.

    >>> several([], "sigmas", "sweep", "a list of numbers")
    Traceback (most recent call last):
        ...
    gralis.errors.GralisError: The 'sigmas' parameter of sweep must be a list of numbers. Got [] instead.
    """
    try:
        listed = () if isinstance(values, str) else tuple(values)
    except TypeError:
        listed = ()
    if not listed:
        raise bad(name, owner, allowed, repr(values))
    return listed


def flag(value: object, name: str, owner: str) -> bool:
    """The value, if it is True or False.

    >>> flag("yes", "residual", "to_shap")
    Traceback (most recent call last):
        ...
    gralis.errors.GralisError: The 'residual' parameter of to_shap must be True or False. Got 'yes' instead.
    """
    if not isinstance(value, bool | np.bool_):
        raise bad(name, owner, "True or False", repr(value)[:200])
    return bool(value)


def is_auto(value: object) -> bool:
    """Whether the value is the word "auto"; anything may be asked, also an array."""
    return isinstance(value, str) and value == "auto"


def function(value: Function, name: str, owner: str, role: str) -> Function:
    """Something that can be called; `role` says for what."""
    if not callable(value):
        raise bad(name, owner, f"a function {role}", repr(value))
    return value


def _number(
    value: object, name: str, owner: str, holds: Callable[[float], bool], allowed: str, advice: str = ""
) -> float:
    try:
        number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    except OverflowError:  # an int beyond the largest float
        number = math.inf
    if not holds(number):
        raise bad(name, owner, allowed, repr(value), advice)
    return number


def as_path(value: object, owner: str = "save", name: str = "path") -> Path:
    """The value as a `Path`, if it can name a file or folder.

    >>> as_path("why.gralis").name
    'why.gralis'
    >>> as_path(3, "load")
    Traceback (most recent call last):
        ...
    gralis.errors.GralisError: The 'path' parameter of load must be the path of a file or folder. Got 3 instead.
    """
    given = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(given, str) or not given or "\0" in given:
        raise bad(name, owner, "the path of a file or folder", repr(value)[:200])
    try:
        os.lstat(given)
    except UnicodeEncodeError:  # the code that uses it says so
        pass
    except OSError as error:  # a name that is too long, or a folder that may not be searched
        if error.errno not in _ABSENT:
            allowed = "a path that the system can look up"
            raise bad(name, owner, allowed, f"{repr(given)[:200]} ({error.strerror or error})") from None
    return Path(given)


def printable(text: str) -> str:
    r"""The text with what cannot be seen written out, so that it can be printed, drawn and saved.

    >>> printable("a\x1b[31m \udcff"), printable("evil\u202etxt.exe")
    ('a\\x1b[31m \\udcff', 'evil\\u202etxt.exe')
    """
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
