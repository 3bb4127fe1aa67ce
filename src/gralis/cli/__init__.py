"""The `gralis` command: demo, explain, batch, bench, report, verify, replay. One file per command; `app` joins them.

options   options that several commands share        outcome   errors as one sentence and an exit code
config    gralis.toml                                 output    where results go: names, atomic files
model     a model from its name or file               show      results as a table, or as JSON
program   a .pt2 file, screened before it is loaded   images, tables   inputs from files
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code."""
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        missing = (error.name or str(error)).partition(".")[0]
        print(f'gralis: the command line needs {missing}: pip install "gralis[cli]".', file=sys.stderr)
        return 2
    from gralis.cli.app import run

    return run(sys.argv[1:] if arguments is None else arguments)
