"""The commands put together, and the one place where a run of the command line begins and ends."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from gralis.cli import batch, bench, demo, explain, replay, report, verify
from gralis.cli.outcome import BAD, DONE, abandon_stdout, guarded, one_line, say, told
from gralis.version import __version__

#: The commands in the order in which --help lists them; each module has its function and its examples.
COMMANDS: dict[str, tuple[Callable[..., int], Sequence[tuple[str, str]]]] = {
    "demo": (demo.demo, demo.EXAMPLES),
    "explain": (explain.explain, explain.EXAMPLES),
    "batch": (batch.batch, batch.EXAMPLES),
    "bench": (bench.bench, bench.EXAMPLES),
    "report": (report.report, report.EXAMPLES),
    "verify": (verify.verify, verify.EXAMPLES),
    "replay": (replay.replay, replay.EXAMPLES),
}


def run(arguments: Sequence[str]) -> int:
    """Run one command; its exit code. Whatever goes wrong is one sentence; --debug adds the traceback."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed before we began
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
                code, sentence = told(error)
                say(sentence)
            except OSError:
                code = BAD
            if isinstance(error.__cause__, OSError) or isinstance(error, OSError):
                abandon_stdout()
            return code


def _app() -> Any:
    app = typer.Typer(
        name="gralis",
        help="Explanations of predictions: attributions, each with its residual, its error bar and its certificate.",
        epilog=_epilog([("begin here", "gralis demo"), ("what a command does, by example", "gralis explain --help")]),
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
    )
    app.callback()(_top)
    for name, (function, examples) in COMMANDS.items():
        app.command(name, epilog=_epilog(examples))(guarded(function))
    return app


def _print_version(asked: bool) -> None:
    if asked:
        print(f"gralis {__version__}")
        raise typer.Exit


def _top(
    version: Annotated[
        bool,
        typer.Option("--version", help="Print the version and leave.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    pass


def _epilog(examples: Sequence[tuple[str, str]]) -> str:
    """Examples as typer shows them: every line is a paragraph."""
    lines = ["[bold]Examples[/bold]"]
    for purpose, command in examples:
        lines += [f"[dim]# {purpose}[/dim]", command.replace("[", "\\[")]
    return "\n\n".join(lines)


def _show_warning(message: Any, *_: Any, **__: Any) -> None:
    print(f"gralis: warning: {one_line(str(message))}", file=sys.stderr)
