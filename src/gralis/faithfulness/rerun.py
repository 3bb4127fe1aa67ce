"""The same method once more: with another seed, on a perturbed input, or on another model."""

from __future__ import annotations

import numpy as np

from gralis.arrays import Array
from gralis.errors import bad
from gralis.faithfulness.scored_input import ScoredInput, finite
from gralis.methods import METHODS, Method

__all__ = ["method_of", "values_again"]


def method_of(method: str | Method, owner: str) -> Method:
    """A method by its name, or a function with the signature of a method."""
    if isinstance(method, str) and method in METHODS:
        return METHODS[method]
    if not isinstance(method, str | type) and callable(method):
        return method
    allowed = f"one of {', '.join(map(repr, METHODS))}, or a function with their signature"
    raise bad("method", owner, allowed, repr(method))


def values_again(
    method: Method, scored: ScoredInput, model: object, x: object, *, budget: int, seed: int | None = None
) -> Array:
    """The values of the method for this model and x, with the features, target and baseline of the scored input."""
    attribution = method(
        model,
        x,
        target=scored.settings.target,
        baseline=scored.settings.baseline,
        features=scored.features,
        seed=scored.seed if seed is None else seed,
        budget=budget,
    )
    n = scored.features.n_features
    allowed = f"one that returns one finite number for each of {n} features"
    values = finite(attribution, "method", "a metric", allowed)
    if values.shape != (n,):
        raise bad("method", "a metric", allowed, f"shape {values.shape}")
    return values.astype(np.float64)
