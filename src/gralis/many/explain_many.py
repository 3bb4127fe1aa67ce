"""The door for data sets: every input explained, every result on disk, and nothing done twice."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, Unpack

import numpy as np
import torch
from tqdm.auto import tqdm

from gralis.api.explain import complete
from gralis.baselines import Sample
from gralis.checks import whole
from gralis.errors import GralisError, bad
from gralis.features import Features
from gralis.many import local
from gralis.many.blocks import Block, blocks
from gralis.many.items import as_source
from gralis.many.result import Failure, Results, failures_of
from gralis.many.store import Store
from gralis.many.tables import arrow
from gralis.many.work import Done, Question
from gralis.models import adapt
from gralis.models.failures import full_name
from gralis.options import Choices, Options
from gralis.targets import Target, check, describe
from gralis.version import __version__

#: Explains blocks and hands each to a function that keeps it.
Engine = Callable[[object, Question, Iterable[Block], Callable[[Done], None]], None]

_PER_CLOCK = ("max_seconds", "on_interrupt")  # what makes a result depend on the machine's speed


def explain_many(
    model: object,
    inputs: object,
    *,
    out: str | Path,
    ids: Iterable[object] | None = None,
    target: Target | Literal["predicted", "label"] = None,
    engine: Literal["local", "ray"] = "local",
    workers: int | None = None,
    address: str | None = None,
    block_size: int = 64,
    ledgers: bool = False,
    residuals: bool = False,
    strict: bool = False,
    retry: bool = False,
    **options: Unpack[Choices],
) -> Results:
    """phi of every input of a data set, as Parquet in `out`; stopped at any moment, the same call goes on from there.

    >>> import tempfile, torch
    >>> model = torch.nn.Linear(4, 3).eval()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = explain_many(model, torch.randn(5, 4), out=folder, target="predicted", budget=64)
    ...     found.values_table().num_rows, found.inputs_table().num_rows, found.failures
    (20, 5, [])

    inputs: a list or batch, a Dataset or DataLoader, a folder of pictures, a CSV or Parquet table, a Ray data set, a
    dict from id to input, or any iterable; a pair (x, label) has its label kept. target="predicted" asks for the class
    with the largest output, "label" for that of the label. features may be a function of x. An input that cannot be
    explained is recorded with the reason and does not stop the rest; strict=True stops there, retry=True tries blocks
    with failures again. ledgers=True keeps whole explanations, residuals=True splits every residual.
    """
    arrow()
    flags = {"ledgers": ledgers, "residuals": residuals, "strict": strict, "retry": retry}
    for name, flag in flags.items():
        if not isinstance(flag, bool):
            raise bad(name, "explain_many", "True or False", repr(flag))
    question = _question(target, ledgers, residuals, options)
    source = as_source(inputs, ids)
    if source.features is not None and question.given["features"] is None and question.given["layer"] is None:
        question = replace(question, given={**question.given, "features": source.features})
    engine_run = _engine(engine, workers, address)
    size = whole(block_size, "block_size", 1)
    store = Store(out)
    if options.get("seed", 0) is None:
        question = replace(question, given={**question.given, "seed": _seed_of(store, question.given["seed"])})
    settings = _settings(model, question, size) | {f"inputs.{name}": one for name, one in source.settings.items()}
    with store.writing(settings), Progress(options.get("progress"), source.total) as progress:
        last = -1

        def todo() -> Iterator[Block]:
            nonlocal last
            for block in blocks(source, size):
                last = block.number
                entry = store.finished(block.number, block.ids)
                if entry is None or (retry and entry.failed):
                    yield block
                else:
                    if strict:
                        _stop_at(failures_of(store, block.number))
                    progress.skip(len(block.items))

        def keep(done: Done) -> None:
            if strict:
                _stop_at([Failure(*failure) for failure in done.failures])
            store.commit(done.block, done.ids, len(done.failures), done.seconds, done.files)
            progress.add(len(done.ids), len(done.failures))

        engine_run(model, question, todo(), keep)
        if last < 0:
            raise bad("inputs", "explain_many", "at least one input", "none")
        if max(store.entries, default=last) > last:
            raise GralisError(f"{store.path} holds results of more inputs than there are now; choose another folder.")
    found = Results(out)
    if found.n_failures == len(found):
        first = found.failures[0]
        sentence = f"No input could be explained; the first, {first.id!r}: {first.reason}"
        warnings.warn(sentence, UserWarning, stacklevel=2)
    return found


def _stop_at(failures: list[Failure]) -> None:
    if failures:
        raise GralisError(f"Input {failures[0].id!r} cannot be explained: {failures[0].reason}")


def _question(target: Any, ledgers: bool, residuals: bool, options: Choices) -> Question:
    given = complete({**options, "target": None}, "explain_many")
    for name in _PER_CLOCK:
        asked = options.get(name)
        if asked is not None and not (isinstance(asked, str) and asked == "raise"):
            raise bad(name, "explain_many", "left out, because results would depend on the clock", options.get(name))
    if not (isinstance(target, str) and target in ("predicted", "label")):
        check(target, "explain_many")
    given["seed"] = Options.checked(given).seed
    return Question(given, target, bool(ledgers), bool(residuals))


def _engine(engine: object, workers: int | None, address: str | None) -> Engine:
    n = None if workers is None else whole(workers, "workers", 1)
    if isinstance(engine, str) and engine == "local":
        if n not in (None, 1) or address is not None:
            raise bad("workers", "explain_many", "1 with engine='local'", n or address, "Use engine='ray'.")
        return local.run
    if isinstance(engine, str) and engine == "ray":
        from gralis.many.ray_engine import RayEngine

        return RayEngine(n, address).run
    raise bad("engine", "explain_many", "'local' or 'ray'", repr(engine))


def _settings(model: object, question: Question, size: int) -> dict[str, Any]:
    """All that the results depend on, in plain text: a run goes on only with the same."""
    target = question.target if isinstance(question.target, str) else describe(question.target)
    known: dict[str, Any] = {"gralis": __version__, "torch": str(torch.__version__), "numpy": np.__version__}
    adapted = adapt(model, None)
    fingerprint = getattr(adapted, "fingerprint", None)
    known["model"] = str(fingerprint()) if fingerprint else type(adapted).__qualname__
    known |= {"target": target, "block_size": size, "ledgers": question.ledgers, "residuals": question.split}
    left_out = {"target", "progress", "device", "max_memory", *_PER_CLOCK}
    return known | {name: _text(value) for name, value in question.given.items() if name not in left_out}


def _text(value: Any) -> Any:
    """A setting as JSON can hold it; arrays by their sha256, code by its name."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Features):
        told = json.dumps([value.fingerprint(), value.names, value.discrete.tolist()])
        return hashlib.sha256(told.encode()).hexdigest()
    if isinstance(value, Sample):
        return ["sample", _text(value.X), repr(value)]
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        content = np.ascontiguousarray(value)
        return f"{value.shape} {value.dtype} {hashlib.sha256(content.tobytes()).hexdigest()}"
    if isinstance(value, list | tuple):
        return [_text(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _text(each) for key, each in value.items()}
    if callable(value) and hasattr(value, "__qualname__"):
        return full_name(value)
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _seed_of(store: Store, fresh: int) -> int:
    """seed=None: the one that the run in the folder drew, or the fresh one."""
    known = store._settings() or {}
    found = known.get("seed", fresh)
    return found if isinstance(found, int) else fresh


class Progress:
    """Inputs that are done, with rate and time left: a bar on a terminal, or the user's function of (done, total)."""

    def __init__(self, asked: Any, total: int | None) -> None:
        self._call = asked if callable(asked) and not isinstance(asked, bool) else None
        shown = asked is True or (asked is None and sys.stderr.isatty())
        self._bar: Any = tqdm(total=total, unit="input", desc="gralis", leave=False) if shown else nullcontext()
        self._done, self._failed, self._total = 0, 0, total

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if hasattr(self._bar, "close"):
            self._bar.close()

    def skip(self, n: int) -> None:
        """Done by an earlier run: they count, but say nothing of the rate."""
        self._done += n
        if hasattr(self._bar, "update"):
            self._bar.initial += n
            self._bar.n += n
            self._bar.refresh()

    def add(self, n: int, failed: int) -> None:
        """n more inputs are done."""
        self._done, self._failed = self._done + n, self._failed + failed
        if hasattr(self._bar, "update"):
            if self._failed:
                self._bar.set_postfix(failed=self._failed, refresh=False)
            self._bar.update(n)
        if self._call is not None:
            self._call(self._done, max(self._total or 0, self._done))
