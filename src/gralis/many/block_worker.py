"""What a worker does with a block: make the inputs, explain them, and pack the results. It does not write to the disk.

Inputs that cannot be explained are set aside with the reason. The others give the same results as without them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from gralis.api.batch import on_shared_rays, sharing_groups
from gralis.api.explain import about, exactly
from gralis.api.tree_run import trees_behind
from gralis.errors import GralisError
from gralis.features import Features
from gralis.files.archive import to_bytes
from gralis.many.blocks import ItemBlock, seed_of
from gralis.many.items import Item
from gralis.many.result_tables import Outcome, pack, written
from gralis.many.store import ledger_name, table_name
from gralis.problem import Problem
from gralis.results.explanation import Explanation
from gralis.trees import TreeEnsemble

__all__ = ["BlockResult", "ManyOptions", "explain_block", "give_up", "reason_of"]

_ROWS_BYTES = 2**26  # of the gradients of inputs that share rays
_BATCH_NUMBERS = 2**18  # in the points of one batch
_BATCHES = (8, 1024)
_CLASS = re.compile(r"[0-9]{1,9}(\.0*)?")  # a class as a label: 3, or 3.0 where a column has gaps


@dataclass(frozen=True)
class ManyOptions:
    """How every input of a data set is explained."""

    explain: Mapping[str, Any]  # all options of `gralis.explain`
    target: Any  # a target, "predicted" or "label"
    ledgers: bool
    residuals: bool


@dataclass(frozen=True)
class BlockResult:
    """A block that was explained: the files to be written, and what failed."""

    block: int
    ids: list[str]
    files: dict[str, bytes]
    failures: list[tuple[str, str]]  # id, reason
    doubted: int  # inputs whose results have doubts
    seconds: float


def explain_block(model: object, block: ItemBlock, options: ManyOptions) -> BlockResult:
    """Explain the inputs of a block."""
    start = time.perf_counter()
    seed = seed_of(options.explain["seed"], block.ids)
    options = replace(options, explain={**options.explain, "seed": seed})
    trees = trees_behind(model, {**options.explain, "target": options.target})
    if trees is not None:
        return _packed(block, _by_sums(trees, block, options), options, time.perf_counter() - start)
    outcomes: dict[int, Outcome] = {}
    problems: dict[int, Problem] = {}
    for place, pending in enumerate(block.items):
        outcomes[place] = Outcome(pending.id, pending.label)
        try:
            item = pending.make()
            outcomes[place] = Outcome(pending.id, item.label or pending.label)
            problems[place] = _problem(model, item, outcomes[place].label, options)
        except Exception as error:  # the user's data may raise anything, and it concerns this input alone
            outcomes[place] = replace(outcomes[place], failure=reason_of(error))
    places = list(problems)
    for group in sharing_groups(list(problems.values())).values():
        for part in _parts([places[k] for k in group], problems[places[group[0]]].n_features, options):
            explained = _together([(outcomes[place], problems[place]) for place in part], options)
            outcomes.update(zip(part, explained, strict=True))
    ordered = [outcomes[place] for place in range(len(block.items))]
    return _packed(block, ordered, options, time.perf_counter() - start)


def _by_sums(trees: TreeEnsemble, block: ItemBlock, options: ManyOptions) -> list[Outcome]:
    """The inputs of a block by a tree ensemble, each summed up in closed form."""
    outcomes = []
    for pending in block.items:
        outcome = Outcome(pending.id, pending.label)
        try:
            item = pending.make()
            outcome = Outcome(pending.id, item.label or pending.label)
            asked = {**options.explain, "target": _target(trees, item, outcome.label, options), "progress": False}
            asked["features"] = item.features if asked["features"] is None else asked["features"]
            run = exactly(trees, item.x, asked)
            assert run is not None
            outcomes.append(replace(outcome, explanation=run.results()[0]))
        except Exception as error:  # the user's data may raise anything, and it concerns this input alone
            outcomes.append(replace(outcome, failure=reason_of(error)))
    return outcomes


def give_up(block: ItemBlock, options: ManyOptions, reason: str) -> BlockResult:
    """The result of a block that cannot be explained at all."""
    return _packed(block, [Outcome(item.id, item.label, failure=reason) for item in block.items], options, 0.0)


def _packed(block: ItemBlock, ordered: Sequence[Outcome], options: ManyOptions, seconds: float) -> BlockResult:
    values, inputs = pack(ordered, float(options.explain["level"]), residuals=options.residuals)
    files = {table_name("values", block.number): values, table_name("inputs", block.number): inputs}
    if options.ledgers:
        files |= {ledger_name(o.id): _bytes(o.explanation) for o in ordered if o.explanation is not None}
    failures = [(outcome.id, outcome.failure) for outcome in ordered if outcome.failure is not None]
    doubted = sum(o.explanation is not None and bool(o.explanation.doubts) for o in ordered)
    return BlockResult(block.number, block.ids, files, failures, doubted, seconds)


def reason_of(error: BaseException) -> str:
    """Why an input has no result, on one line."""
    sentence = written(" ".join(str(error).split()))
    return sentence if isinstance(error, GralisError) else f"{type(error).__name__}: {sentence}"


def _problem(model: object, item: Item, label: str | None, options: ManyOptions) -> Problem:
    described = about(options.explain)
    features = described["features"]
    if features is None and options.explain["layer"] is None:
        described["features"] = item.features
    elif callable(features) and not isinstance(features, Features):
        described["features"] = features(item.x)
    problem = Problem.build(model, item.x, target=_target(model, item, label, options), **described)
    if len(problem.targets) > 1:
        raise GralisError("explain_many explains one target of each input.")
    if not problem.squared_distance.any():
        raise GralisError("The input equals the baseline everywhere, so there is no difference to explain.")
    return problem


def _target(model: object, item: Item, label: str | None, options: ManyOptions) -> Any:
    if not isinstance(options.target, str):
        return options.target
    if options.target == "label":
        if item.target is not None:
            return item.target
        if label is None or not _CLASS.fullmatch(label):
            raise GralisError(f"target='label' needs a label that is a whole number. Got {label}.")
        return int(label.partition(".")[0])
    return options.target


def _parts(places: Sequence[int], n_features: int, options: ManyOptions) -> list[Sequence[int]]:
    """Groups of similar inputs, each as large as the memory for its rows allows.

    The groups are cut by the places in the block, so that an input which is missing does not move the others.
    """
    rows = (options.explain["budget"] or 2**16) * n_features * 8
    most = max(1, _ROWS_BYTES // rows)
    return [list(part) for _, part in groupby(places, lambda place: place // most)]


def _together(pairs: Sequence[tuple[Outcome, Problem]], options: ManyOptions) -> list[Outcome]:
    """Explain on the same rays; if that fails, one by one, so that one bad input does not spoil the others."""
    problems = [problem for _, problem in pairs]
    explain_options = {**options.explain, "progress": False, "batch_size": _batch_size(problems[0], options)}
    try:
        explanations = on_shared_rays(problems, explain_options)
        for explanation in explanations if options.residuals else ():
            _ = explanation.residual  # so that an error is raised here and not while the tables are packed
    except Exception as error:
        if len(pairs) > 1:
            return [outcome for pair in pairs for outcome in _together([pair], options)]
        return [replace(pairs[0][0], failure=reason_of(error))]
    return [replace(outcome, explanation=e) for (outcome, _), e in zip(pairs, explanations, strict=True)]


def _batch_size(problem: Problem, options: ManyOptions) -> int:
    """Depends on the size of the input alone: a size chosen by the clock would change the last bits of the results."""
    batch_size = options.explain["batch_size"]
    if batch_size != "auto":
        return int(batch_size)
    fits = _BATCH_NUMBERS // sum(leaf.numel() for leaf in problem.x)
    return int(min(max(1 << max(fits, 1).bit_length() - 1, _BATCHES[0]), _BATCHES[1]))


def _bytes(explanation: Explanation) -> bytes:
    """The file of an explanation, without its seconds, which differ from run to run and stand in the manifest."""
    return to_bytes(replace(explanation, cost=replace(explanation.cost, seconds=0.0, peak_bytes=0)))
