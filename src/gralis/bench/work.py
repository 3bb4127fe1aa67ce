"""The images that are not yet done, over processes with one thread each: the numbers do not depend on how many."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from tqdm.auto import tqdm

from gralis.bench.repeats import fingerprint
from gralis.bench.source import Source
from gralis.bench.store import Store
from gralis.bench.study import Study, measure
from gralis.errors import GralisError
from gralis.plans import whole
from gralis.version import __version__

#: Makes the model, in every process anew; it is sent there, so it must be picklable.
MakeModel = Callable[[], object]
_state: dict[str, Any] = {}  # of a worker process: study, source and model


def run(
    study: Study,
    source: Source,
    make_model: MakeModel,
    out: str | Path,
    *,
    workers: int | None = None,
    progress: bool | None = None,
) -> list[dict[str, Any]]:
    """The records of all images, in the order of the source; those that `out` holds are not made again.

    A record has the scores of every method, or an error in place of them; images that failed are tried again when the
    same study is run again. `workers`: processes, by default one for each core. `progress`: None shows a bar on a
    terminal.
    """
    names = list(source.names())
    n_workers = whole(os.cpu_count() or 1 if workers is None else workers, "workers", 1)
    with one_thread():
        model = _ready(make_model)
        about = {"model": fingerprint(model), "gralis": __version__}
        store = Store(out, {**study.settings(), **source.settings(), **about})
        digests = [f"{source.digest(index)} {index < study.repeats_on}" for index in range(len(names))]
        found = {index: store.get(name, digests[index]) for index, name in enumerate(names)}
        todo = [index for index, record in found.items() if record is None or "error" in record]
        done = _together if n_workers == 1 or len(todo) < 2 else _apart
        shown = progress is True or (progress is None and sys.stderr.isatty())
        bar = tqdm(total=len(names), initial=len(names) - len(todo), unit="image", desc="bench", disable=not shown)
        with bar:
            for index, record in done(study, source, make_model, model, todo, n_workers):
                store.put(names[index], digests[index], record)
                found[index] = record
                bar.update()
    return [record for record in found.values() if record is not None]


@contextmanager
def one_thread() -> Iterator[None]:
    """Sums come out the same in any process."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _together(
    study: Study, source: Source, make_model: MakeModel, model: object, todo: Sequence[int], n_workers: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """In this process."""
    for index in todo:
        yield index, _one(study, source, model, index)


def _apart(
    study: Study, source: Source, make_model: MakeModel, model: object, todo: Sequence[int], n_workers: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """In other processes, each of which makes the model once."""
    pool = ProcessPoolExecutor(
        min(n_workers, len(todo)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(study, source, make_model),
    )
    try:
        for future in as_completed({pool.submit(_in_worker, index) for index in todo}):
            yield future.result()
    except BrokenProcessPool as error:
        raise GralisError(
            "A worker process ended before its work was done (was memory short?). Finished images are kept; run the "
            "same again, with fewer workers."
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _ready(make_model: MakeModel) -> nn.Module:
    """The model with its channels last, which convolutions on a processor are faster with."""
    model = make_model()
    if not isinstance(model, nn.Module):
        raise GralisError(f"A study needs a torch.nn.Module, which has layers. Got a {type(model).__name__}.")
    return model.eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


def _begin(study: Study, source: Source, make_model: MakeModel) -> None:
    torch.set_num_threads(1)
    _state.update(study=study, source=source, model=_ready(make_model))


def _in_worker(index: int) -> tuple[int, dict[str, Any]]:
    return index, _one(_state["study"], _state["source"], _state["model"], index)


def _one(study: Study, source: Source, model: object, index: int) -> dict[str, Any]:
    """The record of one image; what is wrong with it is its record."""
    try:
        return measure(study, model, source.load(index), repeated=index < study.repeats_on)
    except Exception as error:  # one broken image must not end hours of work
        sentence = str(error) if isinstance(error, GralisError) else f"{type(error).__name__}: {error}"
        return {"image": source.names()[index], "error": sentence}
