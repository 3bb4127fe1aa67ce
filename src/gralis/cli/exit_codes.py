"""How a command ends: with an exit code, and with one sentence if something went wrong.

0  the command finished           2  the input is bad, or a result could not be written
1  verify or replay disagrees     3  the tolerance was not reached
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

import typer

from gralis.errors import GralisError

__all__ = ["BAD", "DONE", "NO", "NOT_REACHED", "Ending", "abandon_stdout", "code_and_sentence", "guarded"]

DONE, NO, BAD, NOT_REACHED = 0, 1, 2, 3
_INTERRUPTED, _CLOSED = 130, 141  # 128 + the signal, as shells do

#: The base class of what typer raises for bad arguments (an unknown option, a number that cannot be read).
_USAGE: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


class Ending(Exception):  # noqa: N818  (an ending need not be an error)
    """Ends the command with this exit code and this sentence."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def guarded(command: Callable[..., int]) -> Callable[..., int]:
    """The command, with an `Ending` for what typer would swallow (a closed pipe, Ctrl-C)."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> int:
        try:
            code = command(*arguments, **options)
            sys.stdout.flush()
            return code
        except KeyboardInterrupt as error:
            raise Ending(_INTERRUPTED, "interrupted; what was written so far is kept.") from error
        except BrokenPipeError as error:
            raise Ending(_CLOSED, "standard output was closed, so the rest is not shown.") from error
        except OSError as error:
            raise Ending(BAD, f"{_where(error)}: {error.strerror or error}.") from error

    return run


def code_and_sentence(error: BaseException) -> tuple[int, str]:
    """The exit code and the sentence for any error that ends a command."""
    if isinstance(error, Ending):
        return error.code, str(error)
    if isinstance(error, GralisError):
        return BAD, str(error)
    if isinstance(error, _USAGE):
        message = str(getattr(error, "format_message", error.__str__)())
        return BAD, f"{message.rstrip('.')}; --help lists what is allowed."
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        return _INTERRUPTED, "interrupted."
    if isinstance(error, MemoryError):
        return BAD, "not enough memory; use fewer segments, a smaller --size or a smaller --budget."
    return BAD, f"unexpected {type(error).__name__}: {error}; --debug shows where."


def abandon_stdout() -> None:
    """Send standard output nowhere, so that the interpreter does not complain when it flushes it at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # there is no file behind it, as in tests
        return


def _where(error: OSError) -> str:
    return "standard output cannot be written" if error.filename is None else f"cannot use {error.filename}"
