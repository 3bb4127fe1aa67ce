"""All commands together, and the one place where a run of the command line begins and ends."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from gralis.cli import batch, bench, demo, explain, gallery, replay, report, verify
from gralis.cli.exit_codes import BAD, DONE, abandon_stdout, code_and_sentence, guarded
from gralis.cli.messages import one_line, say
from gralis.version import __version__

__all__ = ["COMMANDS", "run"]

#: The commands in the order in which --help lists them, each with its function and its examples.
COMMANDS: dict[str, tuple[Callable[..., int], Sequence[tuple[str, str]]]] = {
    "demo": (demo.demo, demo.EXAMPLES),
    "explain": (explain.explain, explain.EXAMPLES),
    "batch": (batch.batch, batch.EXAMPLES),
    "bench": (bench.bench, bench.EXAMPLES),
    "gallery": (gallery.gallery, gallery.EXAMPLES),
    "report": (report.report, report.EXAMPLES),
    "verify": (verify.verify, verify.EXAMPLES),
    "replay": (replay.replay, replay.EXAMPLES),
}


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. Any error is reported in one sentence; --debug adds the traceback."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed before the command began
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            command = typer.main.get_command(_app())
            code = command.main(args=list(arguments) or ["--help"], prog_name="gralis", standalone_mode=False)
            sys.stdout.flush()
            return code if isinstance(code, int) else DONE
        except SystemExit as left:  # completion scripts leave this way
            return left.code if isinstance(left.code, int) else DONE
        except BaseException as error:
            if "--debug" in arguments:
                traceback.print_exc()
            try:
                code, sentence = code_and_sentence(error)
                say(sentence)
            except OSError:
                code = BAD
            if isinstance(error.__cause__, OSError) or isinstance(error, OSError):
                abandon_stdout()
            return code


def _app() -> Any:
    app = typer.Typer(
        name="gralis",
        help="Explain predictions: attributions with their errors, their residual and a certificate.",
        epilog=_epilog([("start here", "gralis demo"), ("examples of one command", "gralis explain --help")]),
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )
    app.callback()(_top)
    for name, (function, examples) in COMMANDS.items():
        app.command(name, epilog=_epilog(examples))(guarded(function))
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"gralis {__version__}")
        raise typer.Exit


def _top(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    pass


def _epilog(examples: Sequence[tuple[str, str]]) -> str:
    """Examples in the form that typer shows: every line is a paragraph."""
    lines = ["[bold]Examples[/bold]"]
    for purpose, command in examples:
        lines += [f"[dim]# {purpose}[/dim]", command.replace("[", "\\[")]
    return "\n\n".join(lines)


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    print(f"gralis: warning: {one_line(str(message))}", file=sys.stderr)
