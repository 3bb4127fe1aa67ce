"""`gralis explain`: pictures or rows of a table, with any torch model or estimator."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from gralis import plans
from gralis.cli import options
from gralis.cli.explain_run import ExplainRun
from gralis.cli.explain_text import explain_prompt, explain_words, text_options
from gralis.cli.inputs import PictureInputs, RowInputs
from gralis.cli.model import load_model
from gralis.cli.options import AllowPickle, Config, Debug, Json, ModelName, Quiet, Weights, method, tables, texts
from gralis.cli.output import OutputFolder
from gralis.cli.tables import read_table
from gralis.cli.target_choice import read_class_names
from gralis.errors import GralisError
from gralis.kernels import Gaussian, Uniform

__all__ = ["EXAMPLES", "explain"]

EXAMPLES = (
    ("why the class with the largest output?", "gralis explain photo.jpg --model net.py:build"),
    ("write a file, a picture and a report to out/", "gralis explain photo.jpg --model net.py:build --out out"),
    ("another class, with its name", "gralis explain photo.jpg --model net.py:build --target 1 --labels names.txt"),
    ("your weights, your input size", "gralis explain photo.jpg --model net.py:build --weights net.pt --size 32"),
    ("until every error is below 5%", "gralis explain photo.jpg other.png --model net.py:build --tolerance 0.05"),
    ("an exported program", "gralis explain photo.jpg --model net.pt2 --allow-pickle"),
    ("a row of a table", "gralis explain --data table.csv --row 2 --drop price --model net.py:rows"),
    ("a text, word by word", 'gralis explain --text "not a good film" --model net.py:classifier --target 1'),
    ("a prompt, and what is written after it", "gralis explain --prompt prompt.txt --model net.py:writer --out out"),
    ("for another program", "gralis explain photo.jpg --model net.py:build --json"),
)


_TARGET = (
    "The output to explain: 281, '1,0', 'probability(281)' or 'margin(3, against=5)', or a name in the file of "
    "--labels or of a class of an estimator. The default is the largest."
)
_BASELINE = (
    "What replaces a feature that is switched off. Pictures: a number after normalising (default 0), zeros, mean, "
    "mean-color, blur or noise. Tables: columns (their means, the default), a number or sample:N (N rows of the table; "
    "the default for an estimator is sample:100). Texts: mask, pad, eos, unk, mean, zero, removed, hidden or the "
    "id of a token."
)
_OUT = "Write NAME.gralis, NAME.png and NAME.html to this folder."
_LABELS = "A file with the names of the outputs, one on each line."
_BUDGET = "The largest number of gradients. By default 1024, or a minute if the model is slow."
_TOLERANCE = "Stop as soon as every half-width is below this share of F(x) - F(x')."
_PLAN = f"How coalitions are sampled: {', '.join(plans.names())}. By default shared; for --prompt values."
_TEXT = "A text for a classifier; --model makes (model, tokenizer). --baseline says what an absent word is."
_PROMPT = "A file with a prompt; explain what the model writes after it. --model makes (model, tokenizer)."
_ANSWER = "The answer to explain, beginning with its space. By default the model writes one."
_ALTERNATIVE = "Another answer: explain why the answer and not this one."
_LENGTH = "The length of an answer that the model writes, in tokens, at most. By default 32."
_PARTS = "The features of a text: tokens, words, sentences or passages."
_Images = Annotated[list[Path] | None, typer.Argument(metavar="IMAGE", help="The pictures.", show_default=False)]


def explain(
    images: _Images = None,
    *,
    model: ModelName,
    weights: Weights = None,
    target: Annotated[str | None, typer.Option(help=_TARGET)] = None,
    labels: Annotated[Path | None, typer.Option(help=_LABELS)] = None,
    out: Annotated[Path | None, typer.Option(metavar="FOLDER", help=_OUT)] = None,
    as_json: Json = False,
    segments: options.Segments = 30,
    compactness: options.Compactness = 50.0,
    size: options.Size = "224",
    mean: options.Mean = options.MEAN,
    std: options.Std = options.STD,
    text: Annotated[str | None, texts(help=_TEXT)] = None,
    prompt: Annotated[Path | None, texts(metavar="FILE", help=_PROMPT)] = None,
    answer: Annotated[str | None, texts(help=_ANSWER)] = None,
    alternative: Annotated[str | None, texts(help=_ALTERNATIVE)] = None,
    max_new_tokens: Annotated[int | None, texts(help=_LENGTH)] = None,
    parts: Annotated[str | None, texts(help=_PARTS)] = None,
    data: Annotated[Path | None, tables(help="A table, .csv or .parquet.")] = None,
    row: Annotated[list[int] | None, tables(help="The number of a row, counted from 0. May be repeated.")] = None,
    drop: options.Drop = None,
    baseline: Annotated[str | None, method(help=_BASELINE)] = None,
    sigma: options.Sigma = 0.75,
    tolerance: Annotated[float | None, method(help=_TOLERANCE)] = None,
    budget: Annotated[int | None, method(help=_BUDGET)] = None,
    plan: Annotated[str | None, method(help=_PLAN, autocompletion=lambda: list(plans.names()))] = None,
    layer: Annotated[str | None, method(help="Explain the output of this module instead of the input.")] = None,
    seed: options.Seed = 0,
    max_seconds: Annotated[float | None, method(help="The largest time for each input, in seconds.")] = None,
    allow_pickle: AllowPickle = False,
    quiet: Quiet = False,
    config: Config = None,
    debug: Debug = False,
) -> int:
    """Explain the output of a model for pictures, rows of a table or texts, feature by feature and with errors."""
    inputs: PictureInputs | RowInputs
    if text is not None or prompt is not None:
        if images or data is not None or (text is not None and prompt is not None):
            raise GralisError("Give one of pictures, --data, --text and --prompt.")
        door = "--text" if prompt is None else "--prompt"
        unused: dict[str, object] = {"--layer": layer, "--labels": labels}
        written = {"--answer": answer, "--alternative": alternative, "--max-new-tokens": max_new_tokens}
        unused |= written if prompt is None else {"--target": target}
        parameters = {
            "kernel": Uniform() if sigma == math.inf else Gaussian(sigma),
            "plan": plan,
            "budget": budget,
            "tolerance": tolerance,
            "seed": seed,
            "max_seconds": max_seconds,
            "progress": False if quiet else None,
        }
        about = text_options(parameters, baseline, unused, door)
        pair = load_model(model, weights, allow_pickle=allow_pickle)
        folder = None if out is None else OutputFolder(out)
        if prompt is not None:
            about |= {} if max_new_tokens is None else {"max_new_tokens": max_new_tokens}
            return explain_prompt(pair, prompt, answer, alternative, parts, about, folder, as_json)
        return explain_words(pair, text or "", target, parts, about, folder, as_json)
    if data is not None:
        if images:
            raise GralisError("Give pictures or --data, not both.")
        if not row:
            raise GralisError("--data needs --row, the row to explain, counted from 0 below the header.")
        inputs = RowInputs(read_table(data, drop or ()), row, baseline)
    else:
        if not images:
            raise GralisError("Give a picture to explain, or a table: --data table.csv --row 17.")
        for path in images:
            if path.is_dir():
                raise GralisError(
                    f"{path} is a folder; gralis explain takes pictures, and gralis batch {path} --model {model} --out "
                    f"results explains every picture of a folder."
                )
        preprocessing = options.preprocessing(size, mean, std)
        inputs = PictureInputs(images, preprocessing, segments, compactness, baseline or "0")
    return ExplainRun(
        model=load_model(model, weights, allow_pickle=allow_pickle),
        inputs=inputs,
        target=target,
        class_names=read_class_names(labels),
        options={
            "kernel": Uniform() if sigma == math.inf else Gaussian(sigma),
            "plan": "shared" if plan is None else plan,
            "budget": "auto" if budget is None else budget,
            "tolerance": tolerance,
            "seed": seed,
            "max_seconds": max_seconds,
            "layer": layer,
            "progress": False if quiet else None,
        },
        folder=None if out is None else OutputFolder(out),
        as_json=as_json,
        quiet=quiet,
        debug=debug,
    ).run()
