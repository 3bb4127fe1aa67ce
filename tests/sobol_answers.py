"""What the sensitivity of a function should be: closed forms, and enumeration from the definition."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from gralis.games import Anova
from reference import subsets


def known(f: Anova) -> dict[str, np.ndarray]:
    """The closed-form answers, in the order of the result's own arrays."""
    answers = {
        "mean": [f.mean()],
        "variance": [f.variance()],
        "first": f.first_order(),
        "total": f.total(),
        "pairs": list(f.pairs().values()),
        "closed": list(f.closed().values()),
        "shapley": f.shapley_effects(),
    }
    return {kind: np.array([float(value) for value in values]) for kind, values in answers.items()}


def by_enumeration(f: Callable, columns: list[np.ndarray], weights: list[np.ndarray]) -> tuple[float, dict]:
    """E F and Var E[F | x_T] for every T of independent discrete inputs, from the definition."""
    n = len(columns)
    shape = tuple(len(column) for column in columns)
    points = np.array(list(itertools.product(*columns)))
    values = f(points).reshape(shape)
    mass = np.array([math.prod(row) for row in itertools.product(*weights)]).reshape(shape)
    mean = float((mass * values).sum())
    closed = {}
    for t in subsets(range(n)):
        rest = tuple(j for j in range(n) if j not in t)
        share = mass.sum(rest)
        conditional = (mass * values).sum(rest) / share
        closed[t] = float((share * (conditional - mean) ** 2).sum())
    return mean, closed
