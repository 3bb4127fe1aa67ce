"""`explain_many`: every input of a data set is explained once, and every result is kept on disk."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, Unpack

from tqdm.auto import tqdm

from gralis.api.explain import complete
from gralis.api.signature import options_of_explain
from gralis.checks import one_of, whole
from gralis.errors import GralisError, bad
from gralis.many.block_worker import BlockResult, ManyOptions
from gralis.many.blocks import ItemBlock, blocks_of
from gralis.many.local_engine import run_locally
from gralis.many.ray_engine import RayEngine
from gralis.many.result import Failure, Results, failures_of
from gralis.many.result_tables import arrow
from gralis.many.run_settings import CLOCK_OPTIONS, settings_of
from gralis.many.store import ResultsFolder
from gralis.many.streams import as_stream
from gralis.models.estimator_model import is_estimator
from gralis.options import Choices, Options
from gralis.targets import Target, check

__all__ = ["explain_many"]

#: Explains blocks and passes each result to a function that keeps it.
BlockEngine = Callable[[object, ManyOptions, Iterable[ItemBlock], Callable[[BlockResult], None]], None]


@options_of_explain(without=CLOCK_OPTIONS)
def explain_many(
    model: object,
    inputs: object,
    *,
    out: str | Path,
    ids: Iterable[object] | None = None,
    target: Target | str = None,
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
    """phi of every input of a data set, as Parquet tables in the folder `out`.

    A run can be stopped at any moment; the same call continues it. An input that cannot be explained is recorded with
    the reason, and the run goes on. Three options differ from `gralis.explain`: `features` may be a function of x, a
    callable `progress` gets (inputs done, inputs in all), and `batch_size="auto"` depends on the size of x alone.

    Parameters
    ----------
    model : callable, torch.nn.Module or adapted model
        The model, as in `gralis.explain`.
    inputs : object
        A list or batch, a Dataset or DataLoader, a folder of pictures, a CSV or Parquet table, a data frame, a Ray data
        set, a dict from id to input, a `gralis.bench.Source`, or any iterable. If an element is a pair (x, label), the
        label is kept with the result.
    out : str or Path
        The folder of the results. A run continues in it only with the same model, settings and inputs.
    ids : iterable of str or int, default=None
        One id for each input; None numbers them from 0. Inputs with ids are explained in the order of the ids.
    target : int, callable, str or None, default=None
        What is explained, as in `gralis.explain`. "predicted" takes the class with the largest output of each input,
        or the only output of a model with one, "label" the class that its label names, and another text the class of an
        estimator.
    engine : {"local", "ray"}, default="local"
        Whether the blocks are explained in this process or by Ray workers. The results are the same up to rounding.
    workers : int, default=None
        The number of Ray workers; None takes one per GPU if there are any, else one per core.
    address : str, default=None
        The address of a Ray cluster; None uses the cluster that this process is connected to, or starts one here.
    block_size : int, default=64
        How many inputs are explained and written together. Inputs of one block share their rays where possible.
    ledgers : bool, default=False
        Whether the complete explanations are kept, for `Results.explanation`.
    residuals : bool, default=False
        Whether the residual of every input is split into its three parts.
    strict : bool, default=False
        Whether the run stops at the first input that cannot be explained.
    retry : bool, default=False
        Whether blocks in which an input failed in an earlier run are explained again.

    Returns
    -------
    Results
        A view of the folder; `gralis.many.Results(out)` opens it later.

    Raises
    ------
    GralisError
        If the folder holds a run with other settings or other inputs, or another process writes to it.

    Examples
    --------
    >>> import tempfile, torch
    >>> model = torch.nn.Linear(4, 3).eval()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     results = explain_many(model, torch.randn(5, 4), out=folder, target="predicted", budget=64)
    ...     results.values_table().num_rows, results.inputs_table().num_rows, results.failures
    (20, 5, [])
    """
    arrow()
    flags = {"ledgers": ledgers, "residuals": residuals, "strict": strict, "retry": retry}
    for name, flag in flags.items():
        one_of(flag, (True, False), name, "explain_many")
    explain_options = _explain_options(model, target, options)
    stream = as_stream(inputs, ids, as_frames=is_estimator(model))
    if stream.features is not None and explain_options["features"] is None and explain_options["layer"] is None:
        explain_options["features"] = stream.features
    run_blocks = _engine(engine, workers, address)
    size = whole(block_size, "block_size", 1, "explain_many", most=2**31)
    if options.get("seed", 0) is None:
        drawn = (ResultsFolder(out).known_settings() or {}).get("seed")  # by the run that is in the folder
        explain_options["seed"] = drawn if isinstance(drawn, int) else explain_options["seed"]
    every = ManyOptions(explain_options, target, ledgers, residuals)
    folder = ResultsFolder(out, settings_of(model, every, size, stream))
    with folder.writing(), InputProgress(options.get("progress"), stream.total) as progress:
        last = -1

        def unfinished() -> Iterator[ItemBlock]:
            nonlocal last
            for block in blocks_of(stream, size):
                last = block.number
                entry = folder.finished(block.number, block.ids)
                if entry is None or (retry and entry.failed):
                    yield block
                else:
                    if strict:
                        _stop_at(failures_of(folder, block.number))
                    progress.skip(len(block.items))

        def keep(result: BlockResult) -> None:
            if strict:
                _stop_at([Failure(*failure) for failure in result.failures])
            folder.commit(result.block, result.ids, len(result.failures), result.seconds, result.files, result.doubted)
            progress.add(len(result.ids), len(result.failures))

        run_blocks(model, every, unfinished(), keep)
        if last < 0:
            raise bad("inputs", "explain_many", "at least one input", "none")
        if max(folder.entries, default=last) > last:
            raise GralisError(f"{folder.path} holds results of more inputs than there are now; choose another folder.")
    results = Results(out)
    if not len(results):
        raise GralisError(f"The results in {folder.path} were removed while they were written; explain them again.")
    if results.n_failures == len(results):
        first = results.failures[0]
        sentence = f"No input could be explained; the first, {first.id!r}: {first.reason}"
        warnings.warn(sentence, UserWarning, stacklevel=2)
    return results


def _stop_at(failures: list[Failure]) -> None:
    if failures:
        raise GralisError(f"Input {failures[0].id!r} cannot be explained: {failures[0].reason}")


def _explain_options(model: object, target: Any, options: Choices) -> dict[str, Any]:
    """All options of `explain`, checked."""
    completed = complete({**options, "target": None}, "explain_many")
    for name in CLOCK_OPTIONS:
        value = options.get(name)
        if value is not None and not (isinstance(value, str) and value == "raise"):
            raise bad(name, "explain_many", "left out, because results would depend on the clock", value)
    if isinstance(target, str) and target == "all":
        allowed = "one target for each input: a number, the name of a class, 'predicted', 'label' or a function"
        raise bad("target", "explain_many", allowed, repr(target), "For all classes call it once for each of them.")
    if not (isinstance(target, str) and (target in ("predicted", "label") or is_estimator(model))):
        check(target, "explain_many")
    return {**completed, "seed": Options.checked(completed).seed}


def _engine(engine: object, workers: int | None, address: str | None) -> BlockEngine:
    n_workers = None if workers is None else whole(workers, "workers", 1, "explain_many")
    if one_of(engine, ("local", "ray"), "engine", "explain_many") == "ray":
        return RayEngine(n_workers, address).run
    if n_workers not in (None, 1) or address is not None:
        raise bad("workers", "explain_many", "1 with engine='local'", n_workers or address, "Use engine='ray'.")
    return run_locally


class InputProgress:
    """How many inputs are done: a bar with rate and remaining time, or the user's function of (done, total)."""

    def __init__(self, progress: Any, total: int | None) -> None:
        self._call = progress if callable(progress) and not isinstance(progress, bool) else None
        shown = progress is True or (progress is None and sys.stderr.isatty())
        self._bar: Any = tqdm(total=total, unit="input", desc="gralis", leave=False, disable=not shown)
        self._done, self._failed, self._total = 0, 0, total

    def __enter__(self) -> InputProgress:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def skip(self, n: int) -> None:
        """Count inputs that an earlier run finished; they do not enter the rate."""
        self._done += n
        if not self._bar.disable:
            self._bar.initial += n
            self._bar.n += n
            self._bar.refresh()

    def add(self, n: int, failed: int) -> None:
        """Count inputs that are done now."""
        self._done, self._failed = self._done + n, self._failed + failed
        if self._failed:
            self._bar.set_postfix(failed=self._failed, refresh=False)
        self._bar.update(n)
        if self._call is not None:
            self._call(self._done, max(self._total or 0, self._done))
