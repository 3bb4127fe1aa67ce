"""`gralis gallery`: a folder of results as a site that opens from disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gralis.cli.exit_codes import DONE
from gralis.cli.messages import one_line
from gralis.cli.options import Config, Debug, Quiet
from gralis.cli.target_choice import read_class_names
from gralis.reading_room import gallery as write_gallery

__all__ = ["EXAMPLES", "gallery"]

EXAMPLES = (
    ("write the folder gallery", "gralis gallery results"),
    ("with the names of the classes", "gralis gallery results --out site --labels names.txt"),
)
_LABELS = "A text file with the names of the classes, one on each line; the first line names output 0."


def gallery(
    results: Annotated[Path, typer.Argument(metavar="FOLDER", help="What gralis batch or explain_many wrote.")],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder of the site.")] = Path("gallery"),
    labels: Annotated[Path | None, typer.Option(metavar="FILE", help=_LABELS)] = None,
    reports: Annotated[int | None, typer.Option(help="The largest number of reports. The default is all.")] = None,
    title: Annotated[str | None, typer.Option(help="The title of the page.")] = None,
    quiet: Quiet = False,
    config: Config = None,
    debug: Debug = False,
) -> int:
    """Write the results of a data set as a site that opens from disk, without a server."""
    classes = read_class_names(labels) or ()
    page = write_gallery(results, out, title=title, classes=classes, reports=reports, progress=False if quiet else None)
    if not quiet:
        print(f"Written to {one_line(str(page))}")
    return DONE
