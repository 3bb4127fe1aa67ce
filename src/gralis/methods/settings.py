"""The keywords that all methods and metrics share: written, documented and checked once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from inspect import signature
from typing import Any, Literal, Self, TypedDict

import numpy as np

from gralis.api.explain import explain
from gralis.api.tree_problem import TreeProblem, outputs_of
from gralis.arrays import describe as describe_value
from gralis.baselines.endpoints import Leaves
from gralis.checks import is_auto, whole
from gralis.errors import bad
from gralis.evaluation.evaluator import Evaluator
from gralis.kernels import Gaussian, as_kernel
from gralis.problem import Problem
from gralis.results.explanation import Explanation
from gralis.targets import Target, check, describe
from gralis.trees import has_trees, read

__all__ = [
    "BUDGET",
    "BatchSize",
    "MethodKeywords",
    "MethodSettings",
    "SharedKeywords",
    "SharedSettings",
]

BatchSize = int | Literal["auto"]
BUDGET = 1024


class SharedKeywords(TypedDict, total=False):
    """The keywords of every method and every metric, as types; `SharedSettings` documents them."""

    target: Target
    baseline: object
    features: object
    seed: int
    batch_size: BatchSize


class MethodKeywords(SharedKeywords, total=False):
    """The keywords of every method, as types; `MethodSettings` documents them."""

    budget: int
    ledger: Explanation | None


@dataclass(frozen=True, kw_only=True)
class SharedSettings:
    """The checked keywords that every method and every metric takes.

    Parameters
    ----------
    target : int, tuple of int, callable or None, default=None
        Which number of the model's output is F: the index of a class, a function of the outputs such as
        `gralis.targets.probability(3)`, or None if the model returns one number per input.
    baseline : object, default=0.0
        The values x' that a removed feature takes: a number, an array shaped like x, the name of a recipe such as
        "blur", or a distribution made by `gralis.baselines.sample`. Metrics also take "noisy-linear" and `NoisyLinear`.
    features : Features, array of int or None, default=None
        What is explained: a `Features` value, or an array of labels shaped like x or like its last two axes. None
        means the features of the attribution or of the ledger if there is one, and every coordinate of x otherwise.
    seed : int, default=0
        The seed of everything that is random: sampled coalitions, perturbations, the order of ties.
    batch_size : int or "auto", default="auto"
        How many points go into one call of the model. Results do not depend on it, except for rounding.
    """

    target: Target = None
    baseline: object = 0.0
    features: object = None
    seed: int = 0
    batch_size: BatchSize = "auto"

    @classmethod
    def of(cls, function: Callable[..., object], keywords: Mapping[str, Any]) -> Self:
        """The settings in the keywords of a call of this function; an unknown keyword raises a TypeError."""
        known = {field.name for field in fields(cls)}
        for keyword in keywords:
            if keyword not in known:
                allowed = ", ".join(p.name for p in signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY)
                raise TypeError(f"{function.__name__}() has no parameter '{keyword}'; it has {allowed}.")
        settings = cls(**keywords)
        settings.require_valid(function.__name__)
        return settings

    def require_valid(self, owner: str) -> None:
        """Raise the sentence that names the first setting with a wrong value."""
        whole(self.seed, "seed", 0, owner)
        if not is_auto(self.batch_size):
            whole(self.batch_size, "batch_size", 1, owner)


@dataclass(frozen=True, kw_only=True)
class MethodSettings(SharedSettings):
    """The checked keywords that every method takes: the shared ones, a budget, and a ledger to read instead.

    Parameters
    ----------
    budget : int, default=1024
        The largest number of model evaluations: gradients for methods that use gradients, forward passes for
        `occlusion`.
    ledger : Explanation or None, default=None
        An explanation of the same model, x, target, baseline and features. Methods named in `FROM_LEDGER` then read
        their values from its ledger and do not call the model.
    """

    budget: int = BUDGET
    ledger: Explanation | None = None

    def require_valid(self, owner: str) -> None:
        """Check the shared settings, then the budget and the ledger."""
        super().require_valid(owner)
        whole(self.budget, "budget", 1, owner)
        if self.ledger is not None and not isinstance(self.ledger, Explanation):
            raise bad("ledger", owner, "an Explanation that explain returned, or None", describe_value(self.ledger))

    @contextmanager
    def evaluator(self, model: object, x: object) -> Iterator[Evaluator]:
        """The model, ready to be evaluated on coalitions of the features; its state is restored at the end."""
        target = check(self.target, "a method")  # a list of targets is for `explain` only
        problem = Problem.build(model, x, baseline=self.baseline, target=target, features=self.features)
        evaluator = Evaluator([problem], batch_size=None if self.batch_size == "auto" else self.batch_size)
        with evaluator.session():
            yield evaluator

    def explain(self, model: object, x: object, kernel: object = None) -> Explanation:
        """The explanation in `ledger`, under this kernel if it is not None; without a ledger, a new explanation."""
        explanation = self.ledger
        if explanation is None:
            options = {name: value for name, value in vars(self).items() if name not in ("target", "ledger")}
            kernel = Gaussian(0.75) if kernel is None else kernel
            return explain(model, x, target=check(self.target, "a method"), kernel=kernel, progress=False, **options)
        _require_same(explanation, *self._question(explanation, model, x))
        same_kernel = kernel is None or explanation.kernel == as_kernel(kernel)
        return explanation if same_kernel else explanation.with_kernel(kernel)

    def _question(self, explanation: Explanation, model: object, x: object) -> tuple[Problem, str]:
        """The problem that these settings describe, and the fingerprint of its model, as `explanation` has them.

        Trees that were summed up are known by their arrays, and their rows by the numbers that the nodes compare.
        """
        features = explanation.features if self.features is None else self.features
        if explanation.plan["name"] == "trees" and has_trees(model):
            trees = TreeProblem.build(read(model), x, self.baseline, features)
            target, _, _ = outputs_of(trees.trees, trees.x, self.target)[0]
            return trees.as_problem((target,)), trees.trees.fingerprint()
        problem = Problem.build(model, x, baseline=self.baseline, target=self.target, features=features)
        return problem, problem.model_fingerprint()


def _require_same(explanation: Explanation, problem: Problem, fingerprint: str) -> None:
    """Refuse the ledger of another problem; the model is not called for that."""
    mine, theirs = problem.endpoints, explanation.endpoints
    same = {
        "x": _equal(mine.x, theirs.x),
        "features": problem.features.fingerprint() == explanation.features.fingerprint(),
        "baseline": _equal((*mine.baselines, mine.weights), (*theirs.baselines, theirs.weights)),
        "target": describe(problem.targets[0]) == explanation.provenance["target"],
        "model": fingerprint == explanation.provenance["hashes"]["model"],
    }
    wrong = " and ".join(name for name, equal in same.items() if not equal)
    if wrong:
        raise bad("ledger", "a method", f"an explanation of the same {wrong}", f"one of another {wrong}")


def _equal(mine: Leaves, theirs: Leaves) -> bool:
    """Whether two sequences hold equal arrays."""
    return len(mine) == len(theirs) and all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True))
