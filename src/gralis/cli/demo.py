"""`gralis demo`: one photograph, explained."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gralis.cli.options import Config, Debug, Quiet
from gralis.cli.outcome import DONE

EXAMPLES = (
    ("why an espresso? pictures and explanation in demo-output/", "gralis demo"),
    ("another photograph, a finer partition", "gralis demo --image chelsea --segments 50 --out cat"),
)


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("demo-output"),
    image: Annotated[str, typer.Option(help="astronaut, camera, chelsea, coffee, motorcycle or rocket.")] = "coffee",
    budget: Annotated[int, typer.Option(help="Gradients to spend at most.")] = 768,
    segments: Annotated[int, typer.Option(help="Superpixels, about.")] = 30,
    seed: Annotated[int, typer.Option(help="Same seed, same result.")] = 0,
    quiet: Quiet = False,
    config: Config = None,
    debug: Debug = False,
) -> int:
    """Explain a photograph with EfficientNet-Lite0: table, pictures, and the explanation as a file."""
    from gralis.demo import run

    run(out, image, budget, segments, seed, progress=False if quiet else None)
    return DONE
