"""`gralis batch`: a folder of pictures or a whole table, with results as Parquet; stopped, it goes on where it was."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from gralis.baselines.recipes import RECIPES
from gralis.cli import options
from gralis.cli.model import load_model
from gralis.cli.options import AllowPickle, Config, Debug, Json, ModelName, Quiet, Weights
from gralis.cli.outcome import BAD, DONE, one_line, say
from gralis.cli.show import to_json
from gralis.errors import GralisError
from gralis.features import Features, grid, slic
from gralis.files.images import Preprocessing
from gralis.kernels import Gaussian, Uniform
from gralis.many import Results, explain_many, folder, means, table
from gralis.targets import parse

EXAMPLES = (
    ("every picture of a folder", "gralis batch pictures --model net.py:build --out results"),
    ("stopped? the same command goes on", "gralis batch pictures --model net.py:build --out results"),
    ("regions that all pictures share", "gralis batch pictures --model net.py:build --grid 16 --out shared"),
    ("every row of a table", "gralis batch table.csv --drop price --model net.py:rows --target output --out rows"),
)
_SHOWN = 5  # failures on the screen
_PICTURES, _TABLES, _METHOD, _RUN = "Pictures", "Tables", "Method", "Run"


@dataclass(frozen=True)
class Superpixels:
    """Regions of each picture's own."""

    preprocessing: Preprocessing
    segments: int
    compactness: float

    def __call__(self, x: Any) -> Features:
        picture = np.asarray(self.preprocessing.shown(x.numpy()))
        return slic(picture, self.segments, self.compactness, channel_axis=2, shape=tuple(x.shape))


def batch(
    inputs: Annotated[
        Path, typer.Argument(metavar="FOLDER|TABLE", help="Pictures below a folder, or a .csv or .parquet table.")
    ],
    *,
    model: ModelName,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where results go; a run that stopped goes on there.")],
    weights: Weights = None,
    target: Annotated[
        str, typer.Option(help="'predicted' (largest output), 'label', 'output' (one number), 281, 'probability(281)'.")
    ] = "predicted",
    as_json: Json = False,
    ledgers: Annotated[bool, typer.Option("--ledgers", help="Keep whole explanations.", rich_help_panel=_RUN)] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first failure.", rich_help_panel=_RUN)] = False,
    retry: Annotated[bool, typer.Option("--retry", help="Try failures again.", rich_help_panel=_RUN)] = False,
    engine: Annotated[str, typer.Option(help="local, or ray.", rich_help_panel=_RUN)] = "local",
    workers: Annotated[int | None, typer.Option(help="Of Ray; else one per core.", rich_help_panel=_RUN)] = None,
    address: Annotated[str | None, typer.Option(help="Of a Ray cluster.", rich_help_panel=_RUN)] = None,
    block_size: Annotated[int, typer.Option(help="Inputs written together.", rich_help_panel=_RUN)] = 64,
    segments: Annotated[int, typer.Option(help="Superpixels, about.", rich_help_panel=_PICTURES)] = 30,
    compactness: Annotated[float, typer.Option(help="Larger: squarer.", rich_help_panel=_PICTURES)] = 50.0,
    patch: Annotated[
        int | None, typer.Option("--grid", help="Squares of N pixels instead.", rich_help_panel=_PICTURES)
    ] = None,
    size: Annotated[str, typer.Option(help="Pixels: N, or HEIGHTxWIDTH.", rich_help_panel=_PICTURES)] = "224",
    mean: Annotated[str, typer.Option(help="Subtracted.", rich_help_panel=_PICTURES)] = "0.485,0.456,0.406",
    std: Annotated[str, typer.Option(help="Divided by.", rich_help_panel=_PICTURES)] = "0.229,0.224,0.225",
    drop: Annotated[
        list[str] | None,
        typer.Option(metavar="COLUMN", help="Not an input; may be repeated.", rich_help_panel=_TABLES),
    ] = None,
    id_column: Annotated[
        str | None, typer.Option("--id", metavar="COLUMN", help="Names the rows.", rich_help_panel=_TABLES)
    ] = None,
    label_column: Annotated[
        str | None, typer.Option("--label", metavar="COLUMN", help="The label.", rich_help_panel=_TABLES)
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="Pictures: a number (default 0) or a name as in explain. Tables: columns (their means), a number.",
            rich_help_panel=_METHOD,
        ),
    ] = None,
    sigma: Annotated[float, typer.Option(help="Width of the kernel; inf: uniform.", rich_help_panel=_METHOD)] = 0.75,
    tolerance: Annotated[
        float | None, typer.Option(help="Stop an input when errors are below.", rich_help_panel=_METHOD)
    ] = None,
    budget: Annotated[int, typer.Option(help="Gradients per input, at most.", rich_help_panel=_METHOD)] = 1024,
    plan: Annotated[str, typer.Option(help="As in explain.", rich_help_panel=_METHOD)] = "shared",
    seed: Annotated[int, typer.Option(help="Same seed, same result.", rich_help_panel=_METHOD)] = 0,
    allow_pickle: AllowPickle = False,
    quiet: Quiet = False,
    config: Config = None,
    debug: Debug = False,
) -> int:
    """Explain every picture of a folder, or every row of a table; what is finished stays, whatever happens."""
    features: Any = None
    if inputs.is_dir():
        _only_tables({"--id": id_column, "--label": label_column, "--drop": drop, "--target label": target == "label"})
        height, width = options.size(size)
        shape = Preprocessing(height, width, options.numbers(mean, "--mean"), options.numbers(std, "--std"))
        source = folder(inputs, size=(height, width), mean=shape.mean, std=shape.std)
        channels = (len(shape.mean), height, width)
        features = Superpixels(shape, segments, compactness) if patch is None else grid(channels, patch)
    else:
        if not inputs.is_file():
            raise GralisError(f"There is no file or folder {inputs}.")
        source = table(inputs, id=id_column, label=label_column, drop=drop or ())
    apart = [*(drop or ()), *(name for name in (id_column, label_column) if name is not None)]
    found = explain_many(
        load_model(model, weights, allow_pickle=allow_pickle),
        source,
        out=out,
        target=target if target in ("predicted", "label") else parse(target),  # type: ignore[arg-type]
        engine=engine,  # type: ignore[arg-type]
        workers=workers,
        address=address,
        block_size=block_size,
        ledgers=ledgers,
        strict=strict,
        retry=retry,
        features=features,
        baseline=_baseline(baseline, inputs, apart),
        kernel=Uniform() if sigma == math.inf else Gaussian(sigma),
        plan=plan,
        budget=budget,
        tolerance=tolerance,
        seed=seed,
        progress=False if quiet else None,
    )
    return _close(found, as_json)


def _only_tables(asked: dict[str, Any]) -> None:
    for option, given in asked.items():
        if given:
            raise GralisError(f"{option} is for tables: pictures are named by their files and have no label.")


def _close(found: Results, as_json: bool) -> int:
    failures = found.failures
    if as_json:
        told = [{"input": failure.id, "error": failure.reason} for failure in failures]
        print(to_json({"folder": str(found.path), "inputs": len(found), "failures": told}), flush=True)
    else:
        print(f"{len(found)} inputs, {len(failures)} without a result, in {one_line(str(found.path))}", flush=True)
        for failure in failures[:_SHOWN]:
            say(f"{failure.id}: {failure.reason}")
        if len(failures) > _SHOWN:
            say(f"{len(failures) - _SHOWN} more failures are in the inputs table.")
    return BAD if failures else DONE


def _baseline(text: str | None, inputs: Path, apart: list[str]) -> Any:
    rows = not inputs.is_dir()
    if rows and text in (None, "columns"):
        return means(inputs, drop=apart)
    if not rows and text in RECIPES:
        return text
    try:
        number = float(text or 0)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        names = "columns" if rows else ", ".join(RECIPES)
        raise GralisError(f"--baseline must be a number or one of {names}. Got {text!r}.")
    return number
