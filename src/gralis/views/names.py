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
    """`literal`, cut if the name is too long for a picture."""
    return literal(name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…")
