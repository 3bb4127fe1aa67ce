"""`gralis replay`: the same numbers again, or which ones not."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gralis.cli.model import load_model
from gralis.cli.options import AllowPickle, Config, Debug, Json, ModelName, Quiet, Weights
from gralis.cli.outcome import DONE, NO, one_line
from gralis.cli.show import to_json

EXAMPLES = (
    ("is it still what the model says?", "gralis replay why.gralis --model net.py:build"),
    ("the verdict as JSON", "gralis replay why.gralis --model net.py:build --json"),
)


def replay(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A saved explanation or report: .gralis, .html, .json.")],
    model: ModelName,
    weights: Weights = None,
    target: Annotated[
        str | None, typer.Option(help="Only where the target was a Python function: what stands for it.")
    ] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Allowed relative deviation; by default what rounding explains.")
    ] = None,
    allow_pickle: AllowPickle = False,
    as_json: Json = False,
    quiet: Quiet = False,
    config: Config = None,
    debug: Debug = False,
) -> int:
    """Compute a saved explanation again with this model; exit code 1 and the first difference if it is not the same."""
    import gralis

    found = gralis.replay(
        gralis.load(file),
        load_model(model, weights, allow_pickle=allow_pickle),
        target="saved" if target is None else target,
        tolerance=tolerance,
        progress=False if quiet else None,
    )
    print(to_json({"file": str(file), **found.to_dict()}) if as_json else one_line(repr(found)))
    return DONE if found.same else NO
