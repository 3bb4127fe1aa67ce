"""The same method once more: with another seed, on a perturbed input, or on another model."""

from __future__ import annotations

import numpy as np

from gralis.arrays import Array
from gralis.errors import bad
from gralis.faithfulness.scored_input import Case, finite
from gralis.methods.method import BUDGET, Method
from gralis.methods.several import METHODS


def method_of(method: str | Method, owner: str) -> Method:
    """A method by its name, or a function with their signature."""
    if isinstance(method, str) and method in METHODS:
        return METHODS[method]
    if not isinstance(method, str) and callable(method):
        return method
    allowed = f"one of {', '.join(map(repr, METHODS))}, or a function with their signature"
    raise bad("method", owner, allowed, repr(method))


def again(
    method: Method, found: Case, model: object, x: object, *, budget: int = BUDGET, seed: int | None = None
) -> Array:
    """The method's values over the same features and for the same question, (n_features,)."""
    made = method(
        model,
        x,
        target=found.question.target,
        baseline=found.question.baseline,
        features=found.features,
        seed=found.seed if seed is None else seed,
        budget=budget,
    )
    n = found.features.n_features
    allowed = f"one that returns one finite number for each of {n} features"
    values = finite(made, "method", "a metric", allowed)
    if values.shape != (n,):
        raise bad("method", "a metric", allowed, f"shape {values.shape}")
    return values.astype(np.float64)
