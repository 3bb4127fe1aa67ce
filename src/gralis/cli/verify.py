"""`gralis verify`: the paper's claims, checked by machine."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from gralis.cli.options import Config, Debug, Json
from gralis.cli.outcome import DONE, NO

EXAMPLES = (
    ("every row of the table; half a minute", "gralis verify"),
    ("one section, for a script", "gralis verify --only paths --json"),
)


def verify(
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="SECTION", help="This section; may be repeated.")
    ] = None,
    as_json: Json = False,
    config: Config = None,
    debug: Debug = False,
) -> int:
    """Recompute every number and claim of the paper; exit code 1 if a row fails."""
    from gralis.paper import verify as check

    found = check(only or None)
    print(json.dumps(found.to_dict()) if as_json else found)
    return DONE if found.holds else NO
