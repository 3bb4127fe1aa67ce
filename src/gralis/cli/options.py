"""Options that several commands share, and values that are written as text."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gralis.cli.config import configured
from gralis.errors import GralisError
from gralis.files.images import IMAGENET_MEAN, IMAGENET_STD, Preprocessing

__all__ = ["MEAN", "STD", "method", "names", "numbers", "pictures", "preprocessing", "run", "size", "tables", "texts"]
__all__ += ["AllowPickle", "Compactness", "Config", "Debug", "Drop", "Json", "Mean", "ModelName", "Quiet", "Seed"]
__all__ += ["Segments", "Sigma", "Size", "Std", "Weights"]

#: The defaults of --mean and --std.
MEAN, STD = (",".join(map(str, channels)) for channels in (IMAGENET_MEAN, IMAGENET_STD))
#: Options that --help lists under a heading.
pictures, tables = partial(typer.Option, rich_help_panel="Pictures"), partial(typer.Option, rich_help_panel="Tables")
texts = partial(typer.Option, rich_help_panel="Texts")
method, run = partial(typer.Option, rich_help_panel="Method"), partial(typer.Option, rich_help_panel="Run")

_MODEL = (
    "The model: pkg.module:factory or file.py:factory (a function without arguments that returns it), a file.skops "
    "that holds an estimator, or a file.pt2 made by torch.export, which needs --allow-pickle."
)
_PICKLE = (
    "Allow files that can run any code when they are loaded: pickled models and .pt2 programs. gralis.toml cannot set "
    "this."
)
_CONFIG = (
    "Read options from this TOML file. The default is gralis.toml, if it is in this folder. The command line takes "
    "precedence."
)
_WEIGHTS = "The weights: .safetensors, or a state_dict in .pt or .pth."

ModelName = Annotated[str, typer.Option("--model", metavar="MODEL", help=_MODEL)]
Weights = Annotated[Path | None, typer.Option("--weights", metavar="FILE", help=_WEIGHTS)]
AllowPickle = Annotated[bool, typer.Option("--allow-pickle", help=_PICKLE)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON: one object per input, each on one line.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Write no progress and no notes to standard error.")]
Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help=_CONFIG, is_eager=True, callback=configured)
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

Segments = Annotated[int, pictures(help="The approximate number of superpixels of a picture.")]
Compactness = Annotated[float, pictures(help="The shape of superpixels: larger values make them squarer.")]
Size = Annotated[str, pictures(help="The pixels that the network sees: N, or HEIGHTxWIDTH.")]
Mean = Annotated[str, pictures(help="What is subtracted from each channel. A single number makes a grey picture.")]
Std = Annotated[str, pictures(help="What each channel is then divided by.")]
Drop = Annotated[list[str] | None, tables(metavar="COLUMN", help="A column that is not an input. May be repeated.")]
Sigma = Annotated[float, method(help="The width of the kernel; inf is the uniform kernel.")]
Seed = Annotated[int, method(help="The same seed gives the same result.")]


def numbers(text: str, option: str) -> tuple[float, ...]:
    """Numbers separated by commas.

    >>> numbers("0.5, 1", "--mean")
    (0.5, 1.0)
    """
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise GralisError(f"{option} must be a number, or several separated by commas. Got {text!r}.") from None


def size(text: str) -> tuple[int, int]:
    """Height and width: "224", or "224x320".

    >>> size("224"), size("224x320")
    ((224, 224), (224, 320))
    """
    parts = text.lower().split("x")
    if len(parts) > 2 or not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
        raise GralisError(f"--size must be a whole number > 0, or HEIGHTxWIDTH. Got {text!r}.")
    return int(parts[0]), int(parts[-1])


def preprocessing(pixels: str, mean: str, std: str) -> Preprocessing:
    """What --size, --mean and --std make of a picture.

    >>> preprocessing("32", "0.5", "0.25")
    Preprocessing(height=32, width=32, mean=(0.5,), std=(0.25,))
    """
    return Preprocessing(*size(pixels), numbers(mean, "--mean"), numbers(std, "--std"))


def names(text: str) -> tuple[str, ...]:
    """Names separated by commas.

    >>> names("gralis, random"), names("")
    (('gralis', 'random'), ())
    """
    return tuple(part.strip() for part in text.split(",") if part.strip())
