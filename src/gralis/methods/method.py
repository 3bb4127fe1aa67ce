"""What a method is: one signature, the same features, one number per feature."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from gralis.errors import bad
from gralis.estimators import Estimate
from gralis.evaluate import Evaluator
from gralis.explainers import Attribution
from gralis.laws import Array
from gralis.plans import whole
from gralis.problem import Problem
from gralis.targets import Target, check

if TYPE_CHECKING:
    from gralis.explanation import Explanation

BatchSize = int | Literal["auto"]
BUDGET = 1024


class Method(Protocol):
    """Why F(x) differs from F(x'), feature by feature. A method may have options of its own, with defaults."""

    def __call__(
        self,
        model: object,
        x: object,
        *,
        target: Target = None,
        baseline: object = 0.0,
        features: object = None,
        budget: int = BUDGET,
        seed: int = 0,
        batch_size: BatchSize = "auto",
        ledger: Explanation | None = None,
    ) -> Attribution: ...


@contextmanager
def evaluator_of(
    model: object, x: object, baseline: object, target: Target, features: object, batch_size: BatchSize
) -> Iterator[Evaluator]:
    """The model ready to be evaluated on coalitions of these features; restored afterwards."""
    one = check(target, "a method")  # several are for `explain`
    problem = Problem.build(model, x, baseline=baseline, target=one, features=features)
    evaluator = Evaluator([problem], batch_size=None if batch_size == "auto" else whole(batch_size, "batch_size", 1))
    with evaluator.session():
        yield evaluator


def delta_of(evaluator: Evaluator) -> float:
    """F(x) - F(x'), averaged over the baselines."""
    f_x, f_baselines = evaluator.endpoints()
    return float(f_x[0] - evaluator.problem.baselines.weights @ f_baselines[0])


def known(values: Array, method: str) -> Estimate:
    """Values without sampling error."""
    return Estimate(values, np.zeros((1, len(values))), method, exact=True)


def require_same(ledger: Explanation, problem: Problem, owner: str) -> None:
    """A ledger given to a method must be one of the same input and the same features."""
    same = ledger.features.fingerprint() == problem.features.fingerprint() and all(
        np.array_equal(mine, theirs) for mine, theirs in zip(problem.endpoints.x, ledger.endpoints.x, strict=True)
    )
    if not same:
        raise bad("ledger", owner, "an explanation of the same x and features", "one of another x or other features")
