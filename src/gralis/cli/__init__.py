"""The `gralis` command: demo, explain, batch, bench, gallery, report, verify, replay. `app` joins the commands.

explain_run        explains one input after the other for `gralis explain`
inputs             pictures and rows as inputs; tables: rows from files
target_choice      which output is explained
model              a model from its name or file; exported_program: a .pt2 file, which needs --allow-pickle
options            options that several commands share; config: gralis.toml
printing           results as a table or as JSON; output: the files that are written
messages           sentences on standard error; exit_codes: how a command ends
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : sequence of str, optional
        The arguments. By default they are those of the process.

    Returns
    -------
    int
        The exit code.
    """
    try:
        import rich  # noqa: F401
        import typer  # noqa: F401
    except ImportError as error:
        missing = (error.name or str(error)).partition(".")[0]
        print(f'gralis: the command line needs {missing}: pip install "gralis[cli]".', file=sys.stderr)
        return 2
    from gralis.cli.app import run  # it needs the two packages

    return run(sys.argv[1:] if arguments is None else arguments)
