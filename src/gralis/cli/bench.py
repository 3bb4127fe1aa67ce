"""`gralis bench`: methods against metrics over a folder of pictures."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gralis.baselines.recipes import RECIPES
from gralis.cli import options
from gralis.cli.exit_codes import BAD, DONE
from gralis.cli.inputs import baseline_from_text
from gralis.cli.messages import one_line, say
from gralis.cli.model import load_model, model_file
from gralis.cli.options import AllowPickle, Config, Debug, Json, ModelName, Quiet, Weights, method
from gralis.cli.target_choice import read_class_names
from gralis.errors import GralisError
from gralis.many import Pictures, every_picture, read_labels
from gralis.many.streams import as_stream
from gralis.storage.json_values import strict

__all__ = ["EXAMPLES", "bench"]

_START = "gralis bench --images photos --model net.py:build"
EXAMPLES = (
    ("all methods and metrics; run it again to continue a stopped run", f"{_START} --out results"),
    ("images of one patient belong together", f"{_START} --labels labels.csv --out study"),
    ("some methods and metrics", f"{_START} --methods gralis,random --metrics deletion,deletion:blur --out few"),
    ("small networks with known evidence, trained here", "gralis bench --planted --tasks 'mlp column' --out planted"),
)


_OUT = "Where tables, page and results go. A run that was stopped continues there."
_LABELS = (
    "A table, labels.csv, with the columns file, label, patient (what is independent) and annotation. The default is "
    "every picture, without labels."
)
_METRICS = (
    "The metrics, separated by commas. deletion:blur replaces removed regions by a blur. The default is all of them."
)
_CLASSES = (
    "A file with the names of the outputs, one on each line. With it, the class of the label is explained instead of "
    "the predicted class."
)
_BASELINE = "What replaces a region that is switched off: a number, or a name such as blur."


_PLANTED = (
    "Score all methods on small networks that are trained on data in which it is known what decides. Needs no pictures "
    "and no model; of the other options --tasks, --out, --limit (examples of each task), --budget and --seed count."
)
_TASKS = "With --planted: the tasks, separated by commas, such as 'mlp column, trees together'. The default is all."


def bench(
    *,
    images: Annotated[Path | None, typer.Option(metavar="FOLDER", help="The folder with the pictures.")] = None,
    model: ModelName = "",
    planted: Annotated[bool, typer.Option("--planted", help=_PLANTED)] = False,
    tasks: Annotated[str, typer.Option(help=_TASKS)] = "",
    out: Annotated[Path, typer.Option(metavar="FOLDER", help=_OUT)],
    labels: Annotated[Path | None, typer.Option(help=_LABELS)] = None,
    weights: Weights = None,
    methods: Annotated[str, typer.Option(help="The methods, separated by commas. The default is all of them.")] = "",
    metrics: Annotated[str, typer.Option(help=_METRICS)] = "",
    classes: Annotated[Path | None, typer.Option(help=_CLASSES)] = None,
    workers: Annotated[int | None, typer.Option(help="The number of processes. The default is one per core.")] = None,
    limit: Annotated[int | None, typer.Option(help="Use only the first N pictures.", min=1)] = None,
    group: Annotated[str, typer.Option(help="The column that says which pictures belong together.")] = "patient",
    segments: options.Segments = 30,
    compactness: options.Compactness = 50.0,
    size: options.Size = "224",
    mean: options.Mean = options.MEAN,
    std: options.Std = options.STD,
    baseline: Annotated[str, method(help=_BASELINE)] = "0",
    readout: Annotated[str, method(help="What methods explain: logit, probability, log_odds or margin.")] = "logit",
    score_readout: Annotated[str, method(help="What metrics measure, from the same list.")] = "probability",
    sigma: options.Sigma = 0.75,
    budget: Annotated[int, method(help="The largest number of gradients for each explanation.")] = 1024,
    repeats_on: Annotated[int, method(help="The number of pictures for metrics that run methods again.")] = 5,
    n_repeats: Annotated[int, method(help="How often these metrics run a method again.")] = 5,
    layer: Annotated[str | None, method(help="The layer that GradCAM uses.")] = None,
    seed: options.Seed = 0,
    allow_pickle: AllowPickle = False,
    as_json: Json = False,
    quiet: Quiet = False,
    config: Config = None,
    debug: Debug = False,
) -> int:
    """Score methods by metrics over pictures: tables, intervals, paired tests and one page."""
    if planted:
        return _planted(out, options.names(tasks), limit, budget, seed, as_json, quiet)
    if images is None or not model:
        raise GralisError("gralis bench needs --images and --model, or --planted; one of them is missing.")
    # Here, because its statistics take long to import, and other commands do not need them.
    from gralis.bench import Study, complaints, failures, means, rows, run, write_page, write_tables
    from gralis.bench.metric_names import takes

    lines = every_picture(images) if labels is None else read_labels(labels)
    if group != "patient" and group not in lines[0]:
        raise GralisError(f"--group must be a column of the labels: {', '.join(lines[0])}. Got {group!r}.")
    names = tuple(read_class_names(classes))
    preprocessing = options.preprocessing(size, mean, std)
    source = Pictures(images, lines[:limit], preprocessing, segments, compactness, names)
    study = Study(
        methods=options.names(methods) or Study.methods,
        metrics=options.names(metrics) or Study.metrics,
        readout=readout,
        score_readout=score_readout,
        baseline=baseline_from_text(baseline, tuple(RECIPES)),
        budget=budget,
        sigma=sigma,
        layer=layer,
        repeats_on=repeats_on,
        n_repeats=n_repeats,
        seed=seed,
    )
    for metric in study.metrics:
        if takes(metric, "annotation") and "annotation" not in lines[0]:
            raise GralisError(f"{metric} needs a column 'annotation' of the labels: {', '.join(lines[0])} are there.")
    make_model = partial(load_model, model, weights, allow_pickle=allow_pickle)
    stream = as_stream(source)
    stream = replace(stream, settings={**stream.settings, **model_file(model)})
    records = run(study, stream, make_model, out, workers=workers, progress=False if quiet else None)
    write_tables(records, out, group)
    failed = [record for record in records if "error" in record]
    facts = {"images": str(len(records) - len(failed)), "methods": str(len(study.methods)), "budget": str(budget)}
    path = write_page(out / "page.html", records, title=f"{images.name}: {model}", facts=facts, group=group)
    for complaint in complaints(records):
        say(complaint)
    for mean_score in means(rows(records, group)):
        spread = f"{mean_score.mean:10.4g}  {mean_score.low:10.4g} to {mean_score.high:.4g}"
        line = f"{mean_score.metric:<20} {mean_score.method:<22} {spread}"
        print(json.dumps(strict(vars(mean_score))) if as_json else line)
    if not as_json and not quiet:
        print(f"written: {one_line(str(path))}")
    return BAD if failed or any(failure.n_failed == failure.n_images for failure in failures(records)) else DONE


def _planted(
    out: Path, tasks: tuple[str, ...], limit: int | None, budget: int, seed: int, as_json: bool, quiet: bool
) -> int:
    """`gralis bench --planted`."""
    from gralis.planted import run

    shown = False if quiet else None
    scores = run(out, tasks or None, n_examples=limit or 40, budget=budget, seed=seed, progress=shown)
    table = out / "planted.md"
    if as_json:
        for score in scores:
            print(json.dumps(strict(score.settings())))
    else:
        print(table.read_text(encoding="utf-8"))
        if not quiet:
            print(f"written: {one_line(str(table))}")
    return DONE
