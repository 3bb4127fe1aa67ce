"""`gralis explain`: pictures or rows of a table, with any torch model."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from gralis.cli import options
from gralis.cli.job import Job
from gralis.cli.model import load_model
from gralis.cli.options import AllowPickle, Config, Debug, Json, ModelName, Quiet, Weights
from gralis.cli.output import Folder
from gralis.cli.question import read_labels
from gralis.cli.subjects import Pictures, Rows
from gralis.cli.tables import read_table
from gralis.errors import GralisError
from gralis.files.images import Preprocessing
from gralis.kernels import Gaussian, Uniform

EXAMPLES = (
    ("why this class? (the one with the largest output)", "gralis explain photo.jpg --model net.py:build"),
    ("file, picture and report in out/", "gralis explain photo.jpg --model net.py:build --out out"),
    ("another class, with its name", "gralis explain photo.jpg --model net.py:build --target 1 --labels names.txt"),
    ("your weights, your input size", "gralis explain photo.jpg --model net.py:build --weights net.pt --size 32"),
    ("until every error is below 5%", "gralis explain photo.jpg other.png --model net.py:build --tolerance 0.05"),
    ("an exported program", "gralis explain photo.jpg --model net.pt2 --segments 20"),
    ("a row of a table", "gralis explain --data table.csv --row 2 --drop price --model net.py:rows"),
    ("for another program", "gralis explain photo.jpg --model net.py:build --json"),
)

_PLANS = ("shared", "exhaustive", "permutation", "independent", "endpoint", "values")
_IMAGES, _TABLES, _METHOD = "Pictures", "Tables", "Method"


def explain(
    images: Annotated[
        list[Path] | None, typer.Argument(metavar="IMAGE", help="Pictures to explain.", show_default=False)
    ] = None,
    *,
    model: ModelName,
    weights: Weights = None,
    target: Annotated[
        str | None,
        typer.Option(help="Which output: 281, '1,0', 'probability(281)', 'margin(3, against=5)'; else the largest."),
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="Names of the outputs, one per line.")] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write NAME.gralis, NAME.png and NAME.html there.")
    ] = None,
    as_json: Json = False,
    segments: Annotated[int, typer.Option(help="Superpixels, about.", rich_help_panel=_IMAGES)] = 30,
    compactness: Annotated[float, typer.Option(help="Larger: squarer.", rich_help_panel=_IMAGES)] = 50.0,
    size: Annotated[
        str, typer.Option(help="Pixels that the network sees: N, or HEIGHTxWIDTH.", rich_help_panel=_IMAGES)
    ] = "224",
    mean: Annotated[
        str, typer.Option(help="Subtracted; one number: a grey picture.", rich_help_panel=_IMAGES)
    ] = "0.485,0.456,0.406",
    std: Annotated[str, typer.Option(help="Divided by.", rich_help_panel=_IMAGES)] = "0.229,0.224,0.225",
    data: Annotated[Path | None, typer.Option(help="A table, .csv or .parquet.", rich_help_panel=_TABLES)] = None,
    row: Annotated[
        list[int] | None, typer.Option(help="This row, from 0; may be repeated.", rich_help_panel=_TABLES)
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Not an input; may be repeated.", rich_help_panel=_TABLES),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="What features are switched to. Pictures: a number after normalising (default 0), zeros, mean, "
            "mean-color, blur, noise. Tables: columns (their means, the default), a number, sample:N.",
            rich_help_panel=_METHOD,
        ),
    ] = None,
    sigma: Annotated[float, typer.Option(help="Width of the kernel; inf: uniform.", rich_help_panel=_METHOD)] = 0.75,
    tolerance: Annotated[
        float | None,
        typer.Option(help="Stop when every error is below this part of F(x) - F(x').", rich_help_panel=_METHOD),
    ] = None,
    budget: Annotated[int, typer.Option(help="Gradients at most.", rich_help_panel=_METHOD)] = 1024,
    plan: Annotated[
        str,
        typer.Option(help=", ".join(_PLANS), autocompletion=lambda: list(_PLANS), rich_help_panel=_METHOD),
    ] = "shared",
    layer: Annotated[
        str | None, typer.Option(help="Explain from the output of this module.", rich_help_panel=_METHOD)
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same result.", rich_help_panel=_METHOD)] = 0,
    max_seconds: Annotated[float | None, typer.Option(help="Per input.", rich_help_panel=_METHOD)] = None,
    allow_pickle: AllowPickle = False,
    quiet: Quiet = False,
    config: Config = None,
    debug: Debug = False,
) -> int:
    """Explain what a model makes of pictures, or of rows of a table, feature by feature, with errors."""
    subjects: Pictures | Rows
    if data is not None:
        if images:
            raise GralisError("Give pictures or --data, not both.")
        if not row:
            raise GralisError("--data needs --row, the row to explain, counted from 0 below the header.")
        subjects = Rows(read_table(data, drop or ()), row, baseline or "columns")
    else:
        if not images:
            raise GralisError("Give a picture to explain, or a table: --data table.csv --row 17.")
        preprocessing = Preprocessing(
            *options.size(size), options.numbers(mean, "--mean"), options.numbers(std, "--std")
        )
        subjects = Pictures(images, preprocessing, segments, compactness, baseline or "0")
    return Job(
        model=load_model(model, weights, allow_pickle=allow_pickle),
        subjects=subjects,
        target=target,
        labels=read_labels(labels),
        options={
            "kernel": Uniform() if sigma == math.inf else Gaussian(sigma),
            "plan": plan,
            "budget": budget,
            "tolerance": tolerance,
            "seed": seed,
            "max_seconds": max_seconds,
            "layer": layer,
            "progress": False if quiet else None,
        },
        folder=None if out is None else Folder(out),
        as_json=as_json,
        quiet=quiet,
        debug=debug,
    ).run()
