"""Sentences for people on standard error."""

from __future__ import annotations

import sys

__all__ = ["one_line", "say"]


def say(sentence: str) -> None:
    """One line on standard error; control characters from files or labels do not reach the terminal."""
    print(f"gralis: {one_line(sentence)}", file=sys.stderr)


def one_line(text: str) -> str:
    """The text on one line, with a mark in place of every character that cannot be printed.

    >>> one_line("a\\x1b[31m\\n b")
    'a\\ufffd[31m b'
    """
    return "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split()))
