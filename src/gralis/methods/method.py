"""What a method is: one signature, the same features, one number per feature."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol, TypedDict, Unpack

import numpy as np

from gralis.errors import bad
from gralis.estimators import Estimate
from gralis.evaluate import Evaluator
from gralis.explain import explain
from gralis.explainers import Attribution
from gralis.explanation import Explanation
from gralis.kernels import Gaussian, as_kernel
from gralis.laws import Array
from gralis.plans import whole
from gralis.problem import Problem
from gralis.targets import Target, check

BatchSize = int | Literal["auto"]
BUDGET = 1024


class Words(TypedDict, total=False):
    """The keywords of `Question`, for signatures."""

    target: Target
    baseline: object
    features: object
    seed: int
    batch_size: BatchSize


class TaskWords(Words, total=False):
    """The keywords of `Task`."""

    budget: int
    ledger: Explanation | None


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked about F at x; the same for methods and metrics."""

    target: Target = None
    baseline: object = 0.0
    features: object = None
    seed: int = 0
    batch_size: BatchSize = "auto"


@dataclass(frozen=True, kw_only=True)
class Task(Question):
    """A question to a method: with a budget, or with a ledger to read the answer from."""

    budget: int = BUDGET
    ledger: Explanation | None = None

    @contextmanager
    def evaluator(self, model: object, x: object) -> Iterator[Evaluator]:
        """The model ready to be evaluated on coalitions of these features; restored afterwards."""
        one = check(self.target, "a method")  # several are for `explain`
        problem = Problem.build(model, x, baseline=self.baseline, target=one, features=self.features)
        size = None if self.batch_size == "auto" else whole(self.batch_size, "batch_size", 1)
        evaluator = Evaluator([problem], batch_size=size)
        with evaluator.session():
            yield evaluator

    def explain(self, model: object, x: object, kernel: object = None) -> Explanation:
        """The ledger that was given, under this kernel if one is named, or one of its own."""
        ledger = self.ledger
        if ledger is None:
            return explain(
                model,
                x,
                target=check(self.target, "a method"),
                baseline=self.baseline,
                features=self.features,
                budget=self.budget,
                seed=self.seed,
                batch_size=self.batch_size,
                kernel=Gaussian(0.75) if kernel is None else kernel,
                progress=False,
            )
        # The ledger's own features unless others are asked for, which must then be the same.
        asked = ledger.features if self.features is None else self.features
        problem = Problem.build(model, x, baseline=self.baseline, target=self.target, features=asked)
        _require_same(ledger, problem)
        return ledger if kernel is None or ledger.kernel == as_kernel(kernel) else ledger.with_kernel(kernel)


class Method(Protocol):
    """Why F(x) differs from F(x'), feature by feature. A method may have options of its own, with defaults."""

    def __call__(self, model: object, x: object, **asked: Unpack[TaskWords]) -> Attribution: ...


def delta_of(evaluator: Evaluator) -> float:
    """F(x) - F(x'), averaged over the baselines."""
    f_x, f_baselines = evaluator.endpoints()
    return float(f_x[0] - evaluator.problem.baselines.weights @ f_baselines[0])


def known(values: Array, method: str) -> Estimate:
    """Values without sampling error."""
    return Estimate(values, np.zeros((1, len(values))), method, exact=True)


def _require_same(ledger: Explanation, problem: Problem) -> None:
    """A ledger given to a method must be one of the same input and the same features."""
    same = ledger.features.fingerprint() == problem.features.fingerprint() and all(
        np.array_equal(mine, theirs) for mine, theirs in zip(problem.endpoints.x, ledger.endpoints.x, strict=True)
    )
    if not same:
        allowed = "an explanation of the same x and features"
        raise bad("ledger", "a method", allowed, "one of another x or other features")
