"""The methods on one trained task: does a method find what was planted, and do its intervals tell the truth?"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.api.explain import explain
from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.kernels import Gaussian, Kernel
from gralis.methods import FROM_LEDGER
from gralis.methods import METHODS as KNOWN
from gralis.methods import run as run_methods
from gralis.planted.tasks import Trained
from gralis.results import Explanation, Interactions
from gralis.results.result import FeatureResult

__all__ = ["METHODS", "PlantedScore", "score_task"]

_NARROW = 0.3  # far from the default of 0.75, so it gets rays of its own
_PAIRS = "pairs (SII)"

#: What is scored: the methods of `gralis.methods`, Shapley values, GRALIS at a small sigma, and interactions of pairs.
METHODS: tuple[str, ...] = (*KNOWN, "shapley", f"gralis, sigma {_NARROW}", _PAIRS)


@dataclass(frozen=True)
class PlantedScore:
    """How one method did on one task.

    Attributes
    ----------
    task, method : str
        What was learned, and who explained it.
    n : int
        The number of explained examples; 0 if the method failed.
    evidence_first : float
        The share of examples in which the planted evidence has the largest |values|. With two marks, both must be on
        top; of pairs, the planted one must be.
    distractor_first : float
        The share in which the distractor has the largest |value|; NaN if there is none.
    distractor_ratio : float
        The sum of |value| of the distractors over that of the evidence; NaN if there is none.
    false_alarms : float
        The share of referenced examples in which some interval excludes zero while a reference with many more
        evaluations says that the value is zero or has the other sign; NaN if the method has no intervals.
    seconds : float
        The mean time of one attribution. Methods that read a ledger count the time of the ledger too.
    problem : str
        The sentence with which the method failed; empty if it did not.
    """

    task: str
    method: str
    n: int
    evidence_first: float
    distractor_first: float
    distractor_ratio: float
    false_alarms: float
    seconds: float
    problem: str = ""

    def settings(self) -> dict[str, Any]:
        """The score in plain values."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class _Answer:
    """The values of one method for one example: per feature, or per pair."""

    values: Array
    evidence: NDArray[np.bool_]
    distractor: NDArray[np.bool_]
    low: Array
    high: Array
    seconds: float


def score_task(
    name: str,
    trained: Trained,
    *,
    n_examples: int = 40,
    budget: int = 400,
    n_references: int = 8,
    reference_factor: int = 16,
    seed: int = 0,
) -> tuple[PlantedScore, ...]:
    """Every method of `METHODS` on examples of one trained task.

    Parameters
    ----------
    name : str
        The name of the task.
    trained : Trained
        The trained model with its test examples.
    n_examples : int, default=40
        How many examples are explained: those of `Scene.telling`, from the first.
    budget : int, default=400
        The gradients, or forwards for a model without gradients, of every explanation.
    n_references : int, default=8
        For how many examples intervals are compared with a reference.
    reference_factor : int, default=16
        The budget of the reference over `budget`.
    seed : int, default=0
        The seed of the explanations.

    Returns
    -------
    tuple of PlantedScore
        One per method.
    """
    scene = trained.tested.take(trained.tested.telling[:n_examples])
    inputs, marks = trained.examples(scene), list(zip(scene.evidence, scene.distractor, strict=True))
    answers: dict[str, list[_Answer]] = {method: [] for method in METHODS}
    problems: dict[str, str] = {}
    alarms: dict[str, list[bool]] = {method: [] for method in METHODS}
    for number, (x, (evidence, distractor)) in enumerate(zip(inputs, marks, strict=True)):
        mine = dict(_answers(trained, x, evidence, distractor, budget, seed + number, problems))
        reference = {}
        if number < n_references:
            much = reference_factor * budget
            reference = dict(_answers(trained, x, evidence, distractor, much, seed + number + 2**20, {}))
        for method, answer in mine.items():
            answers[method].append(answer)
            if method in reference and np.isfinite(answer.low).all() and (answer.low < answer.high).any():
                alarms[method].append(_false_alarm(answer, reference[method]))
    return tuple(_score(name, method, answers[method], alarms[method], problems.get(method, "")) for method in METHODS)


def _answers(
    trained: Trained,
    x: object,
    evidence: NDArray[np.bool_],
    distractor: NDArray[np.bool_],
    budget: int,
    seed: int,
    problems: dict[str, str],
) -> Iterator[tuple[str, _Answer]]:
    """The answers of all methods for one example. What fails leaves its sentence in `problems`."""
    common: dict[str, Any] = {"baseline": trained.baseline, "features": trained.features, "seed": seed}
    start = time.perf_counter()

    def made(kernel: Kernel = Gaussian(0.75)) -> Explanation:
        return explain(trained.model, x, target=None, kernel=kernel, budget=budget, progress=False, **common)

    ledger = made()
    shared = time.perf_counter() - start
    alone = partial(_by_name, trained.model, x, {**common, "budget": budget})
    for method in METHODS:
        if method == _PAIRS and trained.task.rule != "together":
            continue
        of_ledger = method in FROM_LEDGER or method not in KNOWN
        start = time.perf_counter()
        try:
            result = _from_ledger(method, ledger, made, alone) if of_ledger else alone(method, None)
            spent = time.perf_counter() - start + (shared if of_ledger else 0.0)
            yield method, _answer(result, evidence, distractor, spent)
        except GralisError as error:
            problems.setdefault(method, str(error))


def _by_name(
    model: object, x: object, keywords: dict[str, Any], method: str, ledger: Explanation | None
) -> FeatureResult:
    return run_methods([method], model, x, ledger=ledger, **keywords)[method]


def _from_ledger(
    method: str,
    ledger: Explanation,
    made: Callable[..., Explanation],
    alone: Callable[[str, Explanation | None], FeatureResult],
) -> FeatureResult | Interactions:
    if method == _PAIRS:
        return ledger.interactions(order=2, index="SII")
    if method == "shapley":
        return ledger.shapley()
    if method not in KNOWN:
        return made(Gaussian(_NARROW))
    return alone(method, ledger)


def _answer(
    result: FeatureResult | Interactions, evidence: NDArray[np.bool_], distractor: NDArray[np.bool_], seconds: float
) -> _Answer:
    values = result.estimate.values
    low, high = np.asarray(result.interval(0.95)).T
    if isinstance(result, Interactions):
        members = [tuple(coalition) for coalition in result]
        own = np.array([len(pair) == 2 for pair in members])
        evidence = np.array([evidence[list(pair)].all() for pair in members])[own]
        distractor = np.zeros(int(own.sum()), dtype=bool)
        values, low, high = values[own], low[own], high[own]
    return _Answer(values, evidence, distractor, low, high, seconds)


def _false_alarm(answer: _Answer, reference: _Answer) -> bool:
    """Whether an interval away from zero claims a sign that the reference denies beyond its own interval."""
    claims = (answer.low > 0) | (answer.high < 0)
    apart = (answer.low > reference.high) | (answer.high < reference.low)
    same_sign = np.sign(answer.values) == np.sign(reference.values)
    zero = (reference.low <= 0) & (reference.high >= 0)
    return bool((claims & apart & (zero | ~same_sign)).any())


def _score(task: str, method: str, answers: list[_Answer], alarms: list[bool], problem: str) -> PlantedScore:
    if not answers:
        nan = float("nan")
        return PlantedScore(task, method, 0, nan, nan, nan, nan, nan, problem)
    first = [_on_top(answer.values, answer.evidence) for answer in answers]
    misled = [_on_top(answer.values, answer.distractor) for answer in answers if answer.distractor.any()]
    distracted = [answer for answer in answers if answer.distractor.any()]
    beside = sum(np.abs(answer.values[answer.distractor]).sum() for answer in distracted)
    true = sum(np.abs(answer.values[answer.evidence]).sum() for answer in distracted)
    return PlantedScore(
        task,
        method,
        len(answers),
        _mean(first),
        _mean(misled),
        float(beside / true) if true > 0 else float("nan"),
        _mean(alarms),
        _mean([answer.seconds for answer in answers]),
        problem,
    )


def _on_top(values: Array, marked: NDArray[np.bool_]) -> bool:
    """Whether the smallest marked |value| is above the largest other one. A tie does not count."""
    size = np.abs(values)
    return bool(size[marked].min() > size[~marked].max())


def _mean(numbers: list[Any]) -> float:
    return float(np.mean(numbers)) if numbers else float("nan")
