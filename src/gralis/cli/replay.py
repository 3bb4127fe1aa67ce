"""`gralis replay`: a saved explanation computed again, and compared number by number."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gralis import text
from gralis.api.replay import replay as replay_explanation
from gralis.cli.exit_codes import DONE, NO
from gralis.cli.explain_text import pair_of
from gralis.cli.messages import one_line
from gralis.cli.model import load_model
from gralis.cli.options import AllowPickle, Config, Debug, Json, ModelName, Quiet, Weights
from gralis.cli.printing import to_json
from gralis.files.archive import load
from gralis.text.generation import is_saved

__all__ = ["EXAMPLES", "replay"]

EXAMPLES = (
    ("does the model still give these numbers?", "gralis replay why.gralis --model net.py:build"),
    ("the verdict as JSON", "gralis replay why.gralis --model net.py:build --json"),
)


def replay(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A saved explanation or report: .gralis, .html, .json, or .zip.")
    ],
    model: ModelName,
    weights: Weights = None,
    target: Annotated[str | None, typer.Option(help="The target. Needed only if it was a Python function.")] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="The largest relative deviation. The default allows for rounding.")
    ] = None,
    allow_pickle: AllowPickle = False,
    as_json: Json = False,
    quiet: Quiet = False,
    config: Config = None,
    debug: Debug = False,
) -> int:
    """Compute a saved explanation again with this model. The exit code is 1 if a number or a hash differs."""
    made = load_model(model, weights, allow_pickle=allow_pickle)
    wanted = "saved" if target is None else target
    progress = False if quiet else None
    saved = text.load(file) if is_saved(file) else load(file)
    if isinstance(saved, text.Generation) or "text" in saved.provenance:
        network, tokenizer = pair_of(made, "A text needs")
        result = text.replay(saved, network, tokenizer, target=wanted, tolerance=tolerance, progress=progress)
    else:
        result = replay_explanation(saved, made, target=wanted, tolerance=tolerance, progress=progress)
    print(to_json({"file": str(file), **result.to_dict()}) if as_json else one_line(repr(result)))
    return DONE if result.same else NO
