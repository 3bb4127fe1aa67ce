"""How a command ends: an exit code, and one sentence on standard error for whatever went wrong.

0  done                       2  bad input, or a result that could not be written
1  verify or replay says no   3  the tolerance was not reached
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from typing import Any

import typer

from gralis.errors import GralisError

DONE, NO, BAD, NOT_REACHED = 0, 1, 2, 3
_INTERRUPTED, _CLOSED = 130, 141  # as shells count them: 128 + the signal

#: The base of typer's own complaints (an unknown option, a number that is none), wherever typer keeps it.
_USAGE: type[Exception] = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "ClickException")


class Ending(Exception):  # noqa: N818  (an ending need not be an error)
    """The command ends here, with this code and this sentence."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def guarded(command: Callable[..., int]) -> Callable[..., int]:
    """The command with what typer would swallow (a closed pipe, Ctrl-C) turned into an ending of its own."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> int:
        try:
            code = command(*arguments, **options)
            sys.stdout.flush()
            return code
        except KeyboardInterrupt as error:
            raise Ending(_INTERRUPTED, "interrupted; what was written so far stays.") from error
        except BrokenPipeError as error:
            raise Ending(_CLOSED, "standard output was closed, so the rest is not shown.") from error
        except OSError as error:
            raise Ending(BAD, f"{_where(error)}: {error.strerror or error}.") from error

    return run


def told(error: BaseException) -> tuple[int, str]:
    """Exit code and sentence for anything that ends a command."""
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


def say(sentence: str) -> None:
    """One line on standard error; control characters from files or labels do not reach the terminal."""
    print(f"gralis: {one_line(sentence)}", file=sys.stderr)


def one_line(text: str) -> str:
    """The text on one line, what cannot be printed made visible.

    >>> one_line("a\\x1b[31m\\n b")
    'a\\ufffd[31m b'
    """
    return "".join(c if c.isprintable() else "\ufffd" for c in " ".join(text.split()))


def abandon_stdout() -> None:
    """Nothing can be written any more: the interpreter's last flush must not complain about it."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):  # no file behind it (a test's buffer): nothing to abandon
        return


def _where(error: OSError) -> str:
    return "standard output cannot be written" if error.filename is None else f"cannot use {error.filename}"
