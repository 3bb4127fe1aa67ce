"""What a method is: one signature, the same features, one number per feature."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from inspect import signature
from typing import Any, Literal, Protocol, Self, TypedDict, Unpack

import numpy as np

from gralis.api.explain import explain
from gralis.arrays import Array
from gralis.arrays import describe as describe_value
from gralis.baselines.endpoints import Leaves
from gralis.checks import whole
from gralis.errors import bad
from gralis.estimators import Estimate
from gralis.evaluation.evaluator import Evaluator
from gralis.explainers import Attribution
from gralis.kernels import Gaussian, as_kernel
from gralis.problem import Problem
from gralis.results.explanation import Explanation
from gralis.targets import Target, check, describe

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

    @classmethod
    def of(cls, function: Callable[..., object], words: Mapping[str, Any]) -> Self:
        """What was asked of this function in these words; those that it does not have are a TypeError of its own."""
        common = [field.name for field in fields(cls)]
        for word in words:
            if word not in common:
                own = [p.name for p in signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
                allowed = ", ".join([*own, *common])
                raise TypeError(f"{function.__name__}() has no parameter '{word}'; it has {allowed}.")
        found = cls(**words)
        found.require_numbers(function.__name__)
        return found

    def require_numbers(self, owner: str) -> None:
        """Seed and batch size are what they must be."""
        whole(self.seed, "seed", 0, owner)
        if self.batch_size != "auto":
            whole(self.batch_size, "batch_size", 1, owner)


@dataclass(frozen=True, kw_only=True)
class Task(Question):
    """A question to a method: with a budget, or with a ledger to read the answer from."""

    budget: int = BUDGET
    ledger: Explanation | None = None

    def require_numbers(self, owner: str) -> None:
        """So is the budget; and a ledger is one."""
        super().require_numbers(owner)
        whole(self.budget, "budget", 1, owner)
        if self.ledger is not None and not isinstance(self.ledger, Explanation):
            raise bad("ledger", owner, "an Explanation that explain returned, or None", describe_value(self.ledger))

    @contextmanager
    def evaluator(self, model: object, x: object) -> Iterator[Evaluator]:
        """The model ready to be evaluated on coalitions of these features; restored afterwards."""
        one = check(self.target, "a method")  # several are for `explain`
        problem = Problem.build(model, x, baseline=self.baseline, target=one, features=self.features)
        evaluator = Evaluator([problem], batch_size=None if self.batch_size == "auto" else self.batch_size)
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
    """A ledger given to a method must answer the same question; the model is not called for that."""
    mine, theirs = problem.endpoints, ledger.endpoints
    same = {
        "x": _equal(mine.x, theirs.x),
        "features": problem.features.fingerprint() == ledger.features.fingerprint(),
        "baseline": _equal((*mine.baselines, mine.weights), (*theirs.baselines, theirs.weights)),
        "target": describe(problem.targets[0]) == ledger.provenance["target"],
        "model": problem.model_fingerprint() == ledger.provenance["hashes"]["model"],
    }
    wrong = " and ".join(name for name, right in same.items() if not right)
    if wrong:
        raise bad("ledger", "a method", f"an explanation of the same {wrong}", f"one of another {wrong}")


def _equal(mine: Leaves, theirs: Leaves) -> bool:
    return len(mine) == len(theirs) and all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))
