"""The images that are not yet done, over processes with one thread each: the numbers do not depend on how many."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from tqdm.auto import tqdm

from gralis.bench.repeats import fingerprint
from gralis.bench.source import Source
from gralis.bench.store import Store
from gralis.bench.study import Study, measure
from gralis.checks import whole
from gralis.errors import GralisError
from gralis.models.layer import Layer
from gralis.version import __version__


@dataclass(frozen=True)
class _Work:
    """What every process needs to make the record of an image."""

    study: Study
    source: Source
    model: nn.Module | None
    ledgers: tuple[Path | None, ...]

    def one(self, index: int) -> tuple[int, dict[str, Any]]:
        """The record of one image; what is wrong with it is its record."""
        try:
            repeated = index < self.study.repeats_on
            item = self.source.load(index)
            return index, measure(self.study, self.model, item, repeated=repeated, ledger_path=self.ledgers[index])
        except Exception as error:  # one broken image must not end hours of work
            sentence = str(error) if isinstance(error, GralisError) else f"{type(error).__name__}: {error}"
            return index, {"image": self.source.names()[index], "error": sentence}


#: Makes the model, in every process anew; it is sent there, so it must be picklable.
MakeModel = Callable[[], object]
_state: list[_Work] = []  # of a worker process


def run(
    study: Study,
    source: Source,
    make_model: MakeModel,
    out: str | Path,
    *,
    workers: int | None = None,
    progress: bool | None = None,
    keep_ledgers: bool = False,
) -> list[dict[str, Any]]:
    """The records of all images, in the order of the source; those that `out` holds are not made again.

    A record has the scores of every method, or an error in place of them; images that failed are tried again when the
    same study is run again. `workers`: processes, by default one for each core. `progress`: None shows a bar on a
    terminal. `keep_ledgers`: the explanation that the methods read is kept for every image, in `Store.ledger(name)`.
    """
    names = list(source.names())
    n_workers = whole(os.cpu_count() or 1 if workers is None else workers, "workers", 1, "bench.run")
    with one_thread():
        model = _ready(make_model)
        if study.layer is not None:
            Layer.find(model, study.layer)
        about = {"model": fingerprint(model), "gralis": __version__}
        store = Store(out, {**study.settings(), **source.settings(), **about})
        digests = [f"{source.digest(index)} {index < study.repeats_on}" for index in range(len(names))]
        found = {index: store.get(name, digests[index]) for index, name in enumerate(names)}
        todo = [index for index, record in found.items() if record is None or "error" in record]
        done = _together if n_workers == 1 or len(todo) < 2 else _apart
        shown = progress is True or (progress is None and sys.stderr.isatty())
        bar = tqdm(total=len(names), initial=len(names) - len(todo), unit="image", desc="bench", disable=not shown)
        with store.writing(), bar:
            paths = tuple(store.ledger(name) if keep_ledgers else None for name in names)
            for index, record in done(_Work(study, source, model, paths), make_model, todo, n_workers):
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
    work: _Work, make_model: MakeModel, todo: Sequence[int], n_workers: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """In this process."""
    for index in todo:
        yield work.one(index)


def _apart(
    work: _Work, make_model: MakeModel, todo: Sequence[int], n_workers: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """In other processes, each of which makes the model once."""
    pool = ProcessPoolExecutor(
        min(n_workers, len(todo)),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(replace(work, model=None), make_model),
    )
    try:
        for future in as_completed([pool.submit(_in_worker, index) for index in todo]):
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


def _begin(work: _Work, make_model: MakeModel) -> None:
    torch.set_num_threads(1)
    _state.append(replace(work, model=_ready(make_model)))


def _in_worker(index: int) -> tuple[int, dict[str, Any]]:
    return _state[0].one(index)
