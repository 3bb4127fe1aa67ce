"""`gralis verify`: the claims of the paper and the library, checked row by row."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from gralis import paper
from gralis.cli.exit_codes import DONE, NO
from gralis.cli.options import Config, Debug, Json

__all__ = ["EXAMPLES", "verify"]

EXAMPLES = (
    ("check every row of the table, in half a minute", "gralis verify"),
    ("one section, for a script", "gralis verify --only paths --json"),
)


def verify(
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="SECTION", help="Check only this section. May be repeated.")
    ] = None,
    as_json: Json = False,
    config: Config = None,
    debug: Debug = False,
) -> int:
    """Check the claims of the paper and the library, row by row. The exit code is 1 if a row fails."""
    verification = paper.verify(only or None)
    print(json.dumps(verification.to_dict()) if as_json else verification)
    return DONE if verification.holds else NO
