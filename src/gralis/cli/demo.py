"""`gralis demo`: one photograph, explained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gralis import demo as photograph
from gralis.cli.exit_codes import DONE
from gralis.cli.options import Config, Debug, Quiet
from gralis.demo import OPTIONS

__all__ = ["EXAMPLES", "demo"]

EXAMPLES = (
    ("why an espresso? pictures and explanation in demo-output/", "gralis demo"),
    ("another photograph, a finer partition", "gralis demo --image chelsea --segments 50 --out cat"),
)


def demo(
    out: Annotated[Path, typer.Option(help=OPTIONS["out"].help)] = OPTIONS["out"].default,
    image: Annotated[str, typer.Option(help=OPTIONS["image"].help)] = OPTIONS["image"].default,
    budget: Annotated[int, typer.Option(help=OPTIONS["budget"].help)] = OPTIONS["budget"].default,
    segments: Annotated[int, typer.Option(help=OPTIONS["segments"].help)] = OPTIONS["segments"].default,
    seed: Annotated[int, typer.Option(help=OPTIONS["seed"].help)] = OPTIONS["seed"].default,
    quiet: Quiet = False,
    config: Config = None,
    debug: Debug = False,
) -> int:
    """Explain a photograph with EfficientNet-Lite0: a table, pictures, and the explanation as a file."""
    photograph.run(out, image, budget, segments, seed, progress=False if quiet else None)
    return DONE
