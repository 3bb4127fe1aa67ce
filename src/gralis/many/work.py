"""What a worker does with a block: make the inputs, explain them, pack the results. It writes nothing itself.

Inputs that cannot be explained are put aside with the reason; the others are explained as if those had not been there.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from gralis.api.batch import alike, on_shared_rays
from gralis.api.explain import about
from gralis.errors import GralisError
from gralis.features import Features
from gralis.files.archive import to_bytes
from gralis.many.blocks import Block, seed_of
from gralis.many.items import Given
from gralis.many.store import ledger_name, table_name
from gralis.many.tables import Outcome, pack, written
from gralis.problem import Problem
from gralis.results.explanation import Explanation

_ROWS_BYTES = 2**26  # of the gradients of inputs that share rays
_BATCH_NUMBERS = 2**18  # in the points of one batch
_BATCHES = (8, 1024)
_CLASS = re.compile(r"[0-9]{1,9}(\.0*)?")  # a class as a label: 3, or 3.0 where a column has gaps


@dataclass(frozen=True)
class Question:
    """What is asked of every input."""

    given: Mapping[str, Any]  # the options of explain, complete
    target: Any  # or "predicted", or "label"
    ledgers: bool
    split: bool


@dataclass(frozen=True)
class Done:
    """A block that is explained: the files it becomes, and what failed."""

    block: int
    ids: list[str]
    files: dict[str, bytes]
    failures: list[tuple[str, str]]  # id, reason
    seconds: float


def explain_block(model: object, block: Block, question: Question) -> Done:
    """Explain the inputs of a block."""
    began = time.perf_counter()
    seed = seed_of(question.given["seed"], block.ids)
    question = replace(question, given={**question.given, "seed": seed})
    outcomes: dict[int, Outcome] = {}
    problems: dict[int, Problem] = {}
    for place, item in enumerate(block.items):
        outcomes[place] = Outcome(item.id, item.label)
        try:
            given: Given = item.make()
            outcomes[place] = Outcome(item.id, item.label if given.label is None else given.label)
            problems[place] = _problem(model, given, outcomes[place].label, question)
        except Exception as error:  # of the user's data, too: whatever it is, it concerns this input alone
            outcomes[place] = replace(outcomes[place], failure=reason(error))
    made = list(problems)
    for kind in alike(list(problems.values())).values():
        for part in _parts([made[k] for k in kind], problems[made[kind[0]]].n_features, question):
            found = _together([(outcomes[place], problems[place]) for place in part], question)
            outcomes.update(zip(part, found, strict=True))
    return _done(block, [outcomes[place] for place in range(len(block.items))], question, time.perf_counter() - began)


def give_up(block: Block, question: Question, why: str) -> Done:
    """A block that cannot be explained at all."""
    return _done(block, [Outcome(item.id, item.label, failure=why) for item in block.items], question, 0.0)


def _done(block: Block, ordered: Sequence[Outcome], question: Question, seconds: float) -> Done:
    values, inputs = pack(ordered, float(question.given["level"]), split=question.split)
    files = {table_name("values", block.number): values, table_name("inputs", block.number): inputs}
    if question.ledgers:
        files |= {ledger_name(one.id): _bytes(one.explanation) for one in ordered if one.explanation is not None}
    failures = [(one.id, one.failure) for one in ordered if one.failure is not None]
    return Done(block.number, block.ids, files, failures, seconds)


def reason(error: BaseException) -> str:
    """Why an input has no result, on one line."""
    sentence = written(" ".join(str(error).split()))
    return sentence if isinstance(error, GralisError) else f"{type(error).__name__}: {sentence}"


def _problem(model: object, given: Given, label: str | None, question: Question) -> Problem:
    options = about(question.given)
    features = options["features"]
    if callable(features) and not isinstance(features, Features):
        options["features"] = features(given.x)
    target = _target(model, given.x, label, question)
    problem = Problem.build(model, given.x, target=target, **options)
    if len(problem.targets) > 1:
        raise GralisError("explain_many explains one target of each input.")
    if not problem.squared_distance.any():
        raise GralisError("The input equals the baseline everywhere, so there is no difference to explain.")
    return problem


def _target(model: object, x: Any, label: str | None, question: Question) -> Any:
    if not isinstance(question.target, str):
        return question.target
    if question.target == "label":
        if label is None or not _CLASS.fullmatch(label):
            raise GralisError(f"target='label' needs a label that is a whole number. Got {label}.")
        return int(label.partition(".")[0])
    options = question.given
    place = {name: options[name] for name in ("device", "dtype")}
    found = Problem.build(model, x, target=0, **place).predicted()
    if found is None:
        raise GralisError("target='predicted' needs outputs of shape (rows, classes).")
    return found


def _parts(places: Sequence[int], n_features: int, question: Question) -> list[Sequence[int]]:
    """Inputs of one kind, as many together as the memory for their rows allows; cut by their places in the block, so
    that one which is missing does not move the others.
    """
    rows = (question.given["budget"] or 2**16) * n_features * 8
    most = max(1, _ROWS_BYTES // rows)
    return [list(part) for _, part in groupby(places, lambda place: place // most)]


def _together(asked: Sequence[tuple[Outcome, Problem]], question: Question) -> list[Outcome]:
    """On the same rays; if that fails, each on its own, so that one bad input does not spoil the others."""
    problems = [problem for _, problem in asked]
    given = {**question.given, "progress": False, "batch_size": _batch_size(problems[0], question)}
    try:
        found = on_shared_rays(problems, given)
        for explanation in found if question.split else ():
            _ = explanation.residual  # a sentence now, not while the tables are packed
    except Exception as error:
        if len(asked) > 1:
            return [outcome for one in asked for outcome in _together([one], question)]
        return [replace(asked[0][0], failure=reason(error))]
    return [replace(outcome, explanation=one) for (outcome, _), one in zip(asked, found, strict=True)]


def _batch_size(problem: Problem, question: Question) -> int:
    """By the size of the input alone: measured by the clock, it would differ from run to run, and so would the bits."""
    asked = question.given["batch_size"]
    if asked != "auto":
        return int(asked)
    fits = _BATCH_NUMBERS // sum(leaf.numel() for leaf in problem.x)
    return int(min(max(1 << max(fits, 1).bit_length() - 1, _BATCHES[0]), _BATCHES[1]))


def _bytes(explanation: Explanation | None) -> bytes:
    """The file of an explanation, without what differs from run to run: the manifest has the seconds."""
    assert explanation is not None
    steady = replace(explanation, cost=replace(explanation.cost, seconds=0.0, peak_bytes=0))
    return to_bytes(steady)
