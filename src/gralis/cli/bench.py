"""`gralis bench`: methods against metrics over a folder of pictures."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gralis.baselines.recipes import RECIPES
from gralis.cli import options
from gralis.cli.model import load_model
from gralis.cli.options import AllowPickle, Config, Debug, Json, ModelName, Quiet, Weights
from gralis.cli.outcome import BAD, DONE, one_line, say
from gralis.cli.question import read_labels as read_names
from gralis.cli.subjects import number_or_name
from gralis.errors import GralisError
from gralis.files.archive import strict
from gralis.files.images import Preprocessing

_START = "gralis bench --images photos --model net.py:build"
EXAMPLES = (
    ("all methods and metrics; run it again and it goes on where it was", f"{_START} --out results"),
    ("images of one patient belong together", f"{_START} --labels labels.csv --out study"),
    ("some of them", f"{_START} --methods gralis,random --metrics deletion,deletion:blur --out few"),
)
_IMAGES, _METHOD = "Pictures", "Method"


def bench(
    *,
    images: Annotated[Path, typer.Option(metavar="FOLDER", help="Pictures.")],
    model: ModelName,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Tables, page and finished images; run again to go on.")],
    labels: Annotated[
        Path | None,
        typer.Option(help="labels.csv: file, label, patient (what is independent), annotation; else all pictures."),
    ] = None,
    weights: Weights = None,
    methods: Annotated[str, typer.Option(help="Names between commas; all if left out.")] = "",
    metrics: Annotated[str, typer.Option(help="Names between commas; deletion:blur replaces by a blur.")] = "",
    classes: Annotated[
        Path | None,
        typer.Option(help="Names of the outputs, one per line: explain the label's class, not the predicted."),
    ] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; one for each core if left out.")] = None,
    limit: Annotated[int | None, typer.Option(help="The first pictures only.", min=1)] = None,
    group: Annotated[str, typer.Option(help="The column of labels.csv that says what is independent.")] = "patient",
    segments: Annotated[int, typer.Option(help="Superpixels, about.", rich_help_panel=_IMAGES)] = 30,
    compactness: Annotated[float, typer.Option(help="Larger: squarer.", rich_help_panel=_IMAGES)] = 50.0,
    size: Annotated[str, typer.Option(help="N, or HEIGHTxWIDTH.", rich_help_panel=_IMAGES)] = "224",
    mean: Annotated[str, typer.Option(help="Subtracted.", rich_help_panel=_IMAGES)] = "0.485,0.456,0.406",
    std: Annotated[str, typer.Option(help="Divided by.", rich_help_panel=_IMAGES)] = "0.229,0.224,0.225",
    baseline: Annotated[str, typer.Option(help="A number, or a name such as blur.", rich_help_panel=_METHOD)] = "0",
    readout: Annotated[
        str, typer.Option(help="What methods explain: logit, probability, log_odds, margin.", rich_help_panel=_METHOD)
    ] = "logit",
    score_readout: Annotated[str, typer.Option(help="What curves follow.", rich_help_panel=_METHOD)] = "probability",
    sigma: Annotated[float, typer.Option(help="Width of the kernel; inf: uniform.", rich_help_panel=_METHOD)] = 0.75,
    budget: Annotated[int, typer.Option(help="Gradients of the ledger.", rich_help_panel=_METHOD)] = 1024,
    repeats_on: Annotated[
        int, typer.Option(help="Pictures for metrics that run methods again.", rich_help_panel=_METHOD)
    ] = 5,
    n_repeats: Annotated[int, typer.Option(help="How often they do.", rich_help_panel=_METHOD)] = 5,
    layer: Annotated[str | None, typer.Option(help="Of GradCAM.", rich_help_panel=_METHOD)] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same table.", rich_help_panel=_METHOD)] = 0,
    allow_pickle: AllowPickle = False,
    as_json: Json = False,
    quiet: Quiet = False,
    config: Config = None,
    debug: Debug = False,
) -> int:
    """Score methods by metrics over pictures: tidy tables, intervals, paired tests and one page."""
    from gralis.bench import Pictures, Study, complaints, failures, means, rows, run, write_page, write_tables
    from gralis.bench.source import every_picture, read_labels
    from gralis.bench.study import ANNOTATED, parsed

    preprocessing = Preprocessing(*options.size(size), options.numbers(mean, "--mean"), options.numbers(std, "--std"))
    lines = every_picture(images) if labels is None else read_labels(labels)
    if group != "patient" and group not in lines[0]:
        raise GralisError(f"--group must be a column of the labels: {', '.join(lines[0])}. Got {group!r}.")
    names = tuple(read_names(classes))
    source = Pictures(images, lines[:limit], preprocessing, segments, compactness, names)
    study = Study(
        methods=options.names(methods) or Study.methods,
        metrics=options.names(metrics) or Study.metrics,
        readout=readout,
        score_readout=score_readout,
        baseline=number_or_name(baseline, tuple(RECIPES)),
        budget=budget,
        sigma=sigma,
        layer=layer,
        repeats_on=repeats_on,
        n_repeats=n_repeats,
        seed=seed,
    )
    for metric in study.metrics:
        if parsed(metric)[0] in ANNOTATED and "annotation" not in lines[0]:
            raise GralisError(f"{metric} needs a column 'annotation' of the labels: {', '.join(lines[0])} are there.")
    make_model = partial(load_model, model, weights, allow_pickle=allow_pickle)
    records = run(study, source, make_model, out, workers=workers, progress=False if quiet else None)
    write_tables(records, out, group)
    failed = [record for record in records if "error" in record]
    facts = {"images": str(len(records) - len(failed)), "methods": str(len(study.methods)), "budget": str(budget)}
    path = write_page(out / "page.html", records, title=f"{images.name}: {model}", facts=facts, group=group)
    for complaint in complaints(records):
        say(complaint)
    for one in means(rows(records, group)):
        spread = f"{one.mean:10.4g}  {one.low:10.4g} to {one.high:.4g}"
        print(json.dumps(strict(vars(one))) if as_json else f"{one.metric:<20} {one.method:<22} {spread}")
    if not as_json and not quiet:
        print(f"written: {one_line(str(path))}")
    return BAD if failed or any(failure.n_failed == failure.n_images for failure in failures(records)) else DONE
