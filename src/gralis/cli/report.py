"""`gralis report`: a saved explanation as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gralis import text
from gralis.cli.exit_codes import DONE
from gralis.cli.messages import one_line
from gralis.cli.options import Config, Debug, Quiet
from gralis.cli.output import write_report
from gralis.files.archive import load
from gralis.files.images import Preprocessing
from gralis.text.generation import is_saved

__all__ = ["EXAMPLES", "report"]

EXAMPLES = (
    ("write why.html beside why.gralis", "gralis report why.gralis"),
    ("under another name", "gralis report why.gralis --out explained.html"),
)


def report(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A saved explanation, .gralis or .zip.", show_default=False)
    ],
    out: Annotated[Path | None, typer.Option(help="The HTML file. The default is FILE with the ending .html.")] = None,
    quiet: Quiet = False,
    config: Config = None,
    debug: Debug = False,
) -> int:
    """Write a saved explanation as one self-contained HTML file, without the model."""
    path = file.with_suffix(".html") if out is None else out
    if is_saved(file):
        path = text.load(file).report(path)
    else:
        explanation = load(file)
        preprocessing = Preprocessing.of(explanation)
        image = None if preprocessing is None else preprocessing.shown(explanation.endpoints.x[0])
        path = write_report(explanation, path, image)
    if not quiet:
        print(f"Written to {one_line(str(path))}")
    return DONE
