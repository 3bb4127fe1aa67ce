"""`gralis batch`: a folder of pictures or a whole table, with results as Parquet. A stopped run can be continued."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from gralis import plans
from gralis.baselines.recipes import RECIPES
from gralis.cli import options
from gralis.cli.exit_codes import BAD, DONE
from gralis.cli.inputs import background, baseline_from_text
from gralis.cli.messages import one_line, say
from gralis.cli.model import load_model, model_file
from gralis.cli.options import (
    AllowPickle,
    Config,
    Debug,
    Json,
    ModelName,
    Quiet,
    Weights,
    method,
    pictures,
    run,
    tables,
)
from gralis.cli.printing import to_json
from gralis.cli.tables import read_table
from gralis.errors import GralisError
from gralis.features import Features, grid, slic
from gralis.files.images import Preprocessing
from gralis.kernels import Gaussian, Uniform
from gralis.many import Results, explain_many, folder, means, table
from gralis.many.streams import as_stream
from gralis.models.estimator_model import estimator, is_estimator
from gralis.targets import parse

__all__ = ["EXAMPLES", "batch"]

EXAMPLES = (
    ("every picture of a folder", "gralis batch pictures --model net.py:build --out results"),
    ("continue a run that was stopped", "gralis batch pictures --model net.py:build --out results"),
    ("the same regions for all pictures", "gralis batch pictures --model net.py:build --grid 16 --out shared"),
    ("every row of a table", "gralis batch table.csv --drop price --model net.py:rows --target output --out rows"),
)
_SHOWN = 5  # failures on the screen


@dataclass(frozen=True)
class Superpixels:
    """Cuts every picture into superpixels."""

    preprocessing: Preprocessing
    segments: int
    compactness: float

    def __call__(self, x: Any) -> Features:
        picture = np.asarray(self.preprocessing.shown(x.numpy()))
        return slic(picture, self.segments, self.compactness, channel_axis=2, shape=tuple(x.shape))


_INPUTS = "A folder with pictures, or a .csv or .parquet table."
_OUT = "Where the results go. A run that was stopped continues there."
_TARGET = (
    "The output to explain: predicted (the largest, or the only one), label (that of the input's label), output (for a "
    "model with one output), 281, or 'probability(281)'."
)
_BASELINE = (
    "What replaces a feature that is switched off. Pictures: a number (default 0) or a name as in gralis explain. "
    "Tables: columns (their means, the default) or a number."
)
_TOLERANCE = "Stop each input as soon as every half-width is below this share of its F(x) - F(x')."
_PLAN = f"How coalitions are sampled: {', '.join(plans.names())}."


def batch(
    inputs: Annotated[Path, typer.Argument(metavar="FOLDER|TABLE", help=_INPUTS)],
    *,
    model: ModelName,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help=_OUT)],
    weights: Weights = None,
    target: Annotated[str, typer.Option(help=_TARGET)] = "predicted",
    as_json: Json = False,
    ledgers: Annotated[bool, run("--ledgers", help="Keep the whole explanation of every input.")] = False,
    strict: Annotated[bool, run("--strict", help="Stop at the first failure.")] = False,
    retry: Annotated[bool, run("--retry", help="Explain the inputs that failed once more.")] = False,
    engine: Annotated[str, run(help="Where the work runs: local or ray.")] = "local",
    workers: Annotated[int | None, run(help="The number of Ray workers. The default is one per core.")] = None,
    address: Annotated[str | None, run(help="The address of a Ray cluster.")] = None,
    block_size: Annotated[int, run(help="How many inputs are written together.")] = 64,
    segments: options.Segments = 30,
    compactness: options.Compactness = 50.0,
    patch: Annotated[int | None, pictures("--grid", help="Use squares of N pixels instead of superpixels.")] = None,
    size: options.Size = "224",
    mean: options.Mean = options.MEAN,
    std: options.Std = options.STD,
    drop: options.Drop = None,
    id_column: Annotated[str | None, tables("--id", metavar="COLUMN", help="The names of the rows.")] = None,
    label_column: Annotated[str | None, tables("--label", metavar="COLUMN", help="The labels of the rows.")] = None,
    baseline: Annotated[str | None, method(help=_BASELINE)] = None,
    sigma: options.Sigma = 0.75,
    tolerance: Annotated[float | None, method(help=_TOLERANCE)] = None,
    budget: Annotated[int, method(help="The largest number of gradients for each input.")] = 1024,
    plan: Annotated[str, method(help=_PLAN)] = "shared",
    seed: options.Seed = 0,
    allow_pickle: AllowPickle = False,
    quiet: Quiet = False,
    config: Config = None,
    debug: Debug = False,
) -> int:
    """Explain every picture of a folder, or every row of a table. Finished results are kept if the run is stopped."""
    features: Any = None
    loaded = load_model(model, weights, allow_pickle=allow_pickle)
    not_inputs = [*(drop or ()), *(name for name in (id_column, label_column) if name is not None)]
    if inputs.is_dir():
        _only_tables({"--id": id_column, "--label": label_column, "--drop": drop, "--target label": target == "label"})
        preprocessing = options.preprocessing(size, mean, std)
        height, width = preprocessing.height, preprocessing.width
        source = folder(inputs, size=(height, width), mean=preprocessing.mean, std=preprocessing.std)
        if patch is None:
            features = Superpixels(preprocessing, segments, compactness)
        else:
            features = grid((len(preprocessing.mean), height, width), patch)
        reference = _baseline(baseline, inputs, not_inputs)
    else:
        if not inputs.is_file():
            raise GralisError(f"There is no file or folder {inputs}.")
        if is_estimator(loaded):
            _only_networks({"--label": label_column, "--target label": target == "label"})
            rows = read_table(inputs, not_inputs)
            ids = None if id_column is None else read_table(inputs).frame[id_column].astype(str).tolist()
            source, reference = as_stream(rows.frame, ids, as_frames=True), background(rows, baseline)
        else:
            source = table(inputs, id=id_column, label=label_column, drop=drop or ())
            reference = _baseline(baseline, inputs, not_inputs)
    results = explain_many(
        loaded,
        replace(source, settings={**source.settings, **model_file(model)}),
        out=out,
        target=_target(target, loaded),
        engine=engine,  # type: ignore[arg-type]
        workers=workers,
        address=address,
        block_size=block_size,
        ledgers=ledgers,
        strict=strict,
        retry=retry,
        features=features,
        baseline=reference,
        kernel=Uniform() if sigma == math.inf else Gaussian(sigma),
        plan=plan,
        budget=budget,
        tolerance=tolerance,
        seed=seed,
        progress=False if quiet else None,
    )
    return _finish(results, as_json)


def _target(text: str, model: Any) -> Any:
    """The value of --target; an estimator knows the names of its classes."""
    if text in ("predicted", "label") or (is_estimator(model) and text in estimator(model).class_names):
        return text
    return parse(text)


def _only_networks(options_given: dict[str, Any]) -> None:
    for option, value in options_given.items():
        if value:
            raise GralisError(f"{option} is for networks; an estimator explains --target predicted or a class by name.")


def _only_tables(options_given: dict[str, Any]) -> None:
    for option, value in options_given.items():
        if value:
            raise GralisError(f"{option} is for tables: pictures are named by their files and have no label.")


def _finish(results: Results, as_json: bool) -> int:
    failures = results.failures
    if as_json:
        listed = [{"input": failure.id, "error": failure.reason} for failure in failures]
        print(to_json({"folder": str(results.path), "inputs": len(results), "failures": listed}), flush=True)
    else:
        print(f"{len(results)} inputs, {len(failures)} without a result, in {one_line(str(results.path))}", flush=True)
        for failure in failures[:_SHOWN]:
            say(f"{failure.id}: {failure.reason}")
        if len(failures) > _SHOWN:
            say(f"{len(failures) - _SHOWN} more failures are in the inputs table.")
    return BAD if failures else DONE


def _baseline(text: str | None, inputs: Path, not_inputs: list[str]) -> Any:
    if inputs.is_dir():
        return baseline_from_text(text or "0", tuple(RECIPES))
    return means(inputs, drop=not_inputs) if text in (None, "columns") else baseline_from_text(text, ("columns",))
