"""Names of features and labels in pictures: they are shown letter by letter, whatever they contain."""

from __future__ import annotations

from gralis.checks import printable

__all__ = ["literal", "short"]

_LONGEST_NAME = 32


def literal(text: str) -> str:
    r"""The text as matplotlib shows it letter by letter: without mathematics and control characters.

    >>> literal(r"$\foo$"), literal("a\nb")
    ('\\$\\foo\\$', 'a⏎b')
    """
    return printable(text).replace("$", r"\$").replace("\n", "⏎")


def short(name: str) -> str:
    """`literal`, without its middle if the name is too long for a picture: names often differ only at their ends.

    >>> short("mean_of_the_last_twelve_months_of_income")
    'mean_of_the_las…onths_of_income'
    """
    if len(name) <= _LONGEST_NAME:
        return literal(name)
    kept = (_LONGEST_NAME - 1) // 2
    return literal(f"{name[:kept]}…{name[-kept:]}")
