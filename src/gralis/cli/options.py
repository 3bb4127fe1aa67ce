"""Options that several commands share, and values that come as text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gralis.cli.config import configured
from gralis.errors import GralisError

ModelName = Annotated[
    str,
    typer.Option(
        "--model",
        metavar="MODEL",
        help="pkg.module:factory or file.py:factory (called without arguments, returns the model), or file.pt2 "
        "(torch.export).",
    ),
]
Weights = Annotated[
    Path | None,
    typer.Option("--weights", metavar="FILE", help="State of the model: .safetensors, or a state_dict in .pt / .pth."),
]
AllowPickle = Annotated[
    bool,
    typer.Option("--allow-pickle", help="Load files that can run any code: whole pickled models. Not in gralis.toml."),
]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable: one JSON object per input, one per line.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes on standard error.")]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="Options from this TOML file; without it from gralis.toml, if that is here. The command line wins.",
        is_eager=True,
        callback=configured,
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def numbers(text: str, option: str) -> tuple[float, ...]:
    """Numbers between commas.

    >>> numbers("0.5, 1", "--mean")
    (0.5, 1.0)
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise GralisError(f"{option} must be a number, or several with commas between them. Got {text!r}.") from None


def size(text: str) -> tuple[int, int]:
    """Height and width: "224", or "224x320".

    >>> size("224"), size("224x320")
    ((224, 224), (224, 320))
    """
    parts = text.lower().split("x")
    if len(parts) > 2 or not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise GralisError(f"--size must be a whole number > 0, or HEIGHTxWIDTH. Got {text!r}.")
    return int(parts[0]), int(parts[-1])


def names(text: str) -> tuple[str, ...]:
    """Names between commas.

    >>> names("gralis, random"), names("")
    (('gralis', 'random'), ())
    """
    return tuple(part.strip() for part in text.split(",") if part.strip())
