"""`run`: the images that are not finished, on processes with one thread each; their number changes no result."""

from __future__ import annotations

import hashlib
import json
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

from gralis.arrays import parts_of
from gralis.bench.metric_names import parsed
from gralis.bench.repeats import digest, fingerprint
from gralis.bench.store import Store
from gralis.bench.study import Study, measure
from gralis.checks import whole
from gralis.errors import GralisError
from gralis.faithfulness import METRICS
from gralis.many.block_worker import reason_of
from gralis.many.items import PendingItem
from gralis.many.streams import as_stream
from gralis.methods import METHODS
from gralis.models.identity import identity
from gralis.models.layer import Layer
from gralis.version import __version__

__all__ = ["run"]

#: Makes the model, once in every process. It is sent there, so it must be picklable.
MakeModel = Callable[[], object]


@dataclass(frozen=True)
class _StudyWork:
    """What every process needs to make the record of an image."""

    study: Study
    items: tuple[PendingItem, ...]
    model: nn.Module | None
    ledgers: tuple[Path | None, ...]

    def record(self, index: int) -> tuple[int, dict[str, Any]]:
        """The number and the record of one image. If the image fails, its record is the error."""
        item = self.items[index]
        try:
            repeated, path = index < self.study.repeats_on, self.ledgers[index]
            return index, measure(self.study, self.model, item.make(), repeated=repeated, ledger_path=path)
        except Exception as error:  # one broken image must not end hours of work
            return index, {"image": item.id, "error": reason_of(error)}


def run(
    study: Study,
    source: object,
    make_model: MakeModel,
    out: str | Path,
    *,
    workers: int | None = None,
    progress: bool | None = None,
    keep_ledgers: bool = False,
) -> list[dict[str, Any]]:
    """The records of all images; those that are finished in the folder `out` are not made again.

    A run can be stopped at any moment; the same call continues it. Images that failed are tried again.

    Parameters
    ----------
    study : Study
        Methods, metrics and their options.
    source : Source or other data set
        The images: `Pictures`, any other `Source`, or whatever `gralis.explain_many` takes as `inputs`.
    make_model : callable
        Returns the model, a torch.nn.Module. It is called once in every process, so it must be picklable.
    out : str or Path
        The folder of the study. A run continues in it only with the same model and settings.
    workers : int, default=None
        The number of processes; None takes one for each core.
    progress : bool, default=None
        Whether a bar is shown; None shows it on a terminal.
    keep_ledgers : bool, default=False
        Whether the explanations that the methods read are kept, in `Store.ledger(name)`.

    Returns
    -------
    list of dict
        The records in the order of the source. A record has the scores of every method, or an "error" in their place.
    """
    stream = as_stream(source)
    items = tuple(stream)
    n_workers = whole(os.cpu_count() or 1 if workers is None else workers, "workers", 1, "bench.run")
    with one_thread():
        model = _ready(make_model)
        if study.layer is not None:
            Layer.find(model, study.layer)
        code = identity([model, *(METHODS[name] for name in study.methods), *map(_metric, study.metrics)])
        about = {"model": fingerprint(model), "code": code, "gralis": __version__}
        store = Store(out, {**study.settings(), **stream.settings, **about})
        with store.writing():
            digests = [f"{_digest(item)} {index < study.repeats_on}" for index, item in enumerate(items)]
            records = {index: store.get(item.id, digests[index]) for index, item in enumerate(items)}
            todo = [index for index, record in records.items() if record is None or "error" in record]
            paths = tuple(store.ledger(item.id) if keep_ledgers else None for item in items)
            work = _StudyWork(study, items, model, paths)
            alone = n_workers == 1 or len(todo) < 2
            made = map(work.record, todo) if alone else _in_processes(work, make_model, todo, n_workers)
            shown = progress is True or (progress is None and sys.stderr.isatty())
            n_done = len(items) - len(todo)
            with tqdm(total=len(items), initial=n_done, unit="image", desc="bench", disable=not shown) as bar:
                for index, record in made:
                    store.put(items[index].id, digests[index], record)
                    records[index] = record
                    bar.update()
    return [record for record in records.values() if record is not None]


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread, so that sums are the same in every process."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _metric(name: str) -> object:
    return METRICS[parsed(name)[0]]


def _digest(pending: PendingItem) -> str:
    """A text that changes with the content of an item."""
    if pending.digest is not None:
        return pending.digest()
    try:
        item = pending.make()
    except Exception:  # an image that fails is tried again anyway
        return "missing"
    content = json.dumps([list(map(digest, parts_of(item.x))), dict(item.about)], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def _in_processes(
    work: _StudyWork, make_model: MakeModel, todo: Sequence[int], n_workers: int
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records, made in other processes, each of which makes the model once."""
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
    """The model with its channels last, which makes convolutions on a processor faster."""
    model = make_model()
    if not isinstance(model, nn.Module):
        raise GralisError(f"A study needs a torch.nn.Module, which has layers. Got a {type(model).__name__}.")
    return model.eval().to(memory_format=torch.channels_last)  # type: ignore[call-overload, no-any-return]


_state: list[_StudyWork] = []  # of a worker process


def _begin(work: _StudyWork, make_model: MakeModel) -> None:
    torch.set_num_threads(1)
    _state.append(replace(work, model=_ready(make_model)))


def _in_worker(index: int) -> tuple[int, dict[str, Any]]:
    return _state[0].record(index)
