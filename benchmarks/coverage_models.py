"""The models of the coverage benchmarks: for each number of features and each seed another one, x = (1, ..., 1).

Models that are hard to integrate or to sample: kinks, steep steps, oscillation, saturation, a value that few coalitions
carry. And models that are not hard, so that a remedy for the hard ones does not spoil them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import torch
from coverage_truth import Function, Truth
from torch import Tensor

Maker = Callable[[int, np.random.Generator], Function]


@lru_cache(maxsize=64)
def model(name: str, n: int, seed: int) -> Truth:
    """The model with this name; every call returns the same one."""
    return Truth(MODELS[name](n, np.random.default_rng([seed, n])), np.ones(n))


def tensor(array: object) -> Tensor:
    return torch.from_numpy(np.asarray(array, dtype=np.float64))


def network(activation: Callable[[Tensor], Tensor], gain: float = 1.5, width: int = 32) -> Maker:
    """Two hidden layers with random weights."""

    def make(n: int, rng: np.random.Generator) -> Function:
        first, bias = tensor(rng.normal(size=(n, width)) * gain / np.sqrt(n)), tensor(rng.normal(size=width) * 0.3)
        second = tensor(rng.normal(size=(width, width)) * 1.4 / np.sqrt(width))
        bias2, last = tensor(rng.normal(size=width) * 0.3), tensor(rng.normal(size=width) / np.sqrt(width))
        return lambda z: activation(activation(z @ first + bias) @ second + bias2) @ last

    return make


def mean_weights(n: int, rng: np.random.Generator) -> Tensor:
    """Positive weights with the sum 1."""
    weights = rng.uniform(0.5, 1.5, n)
    return tensor(weights / weights.sum())


def step(shape: Callable[[Tensor], Tensor], slope: float) -> Maker:
    """shape(slope (w.z - c)), where the step lies between 0.25 and 0.55 of the way."""

    def make(n: int, rng: np.random.Generator) -> Function:
        weights, place = mean_weights(n, rng), rng.uniform(0.25, 0.55)
        return lambda z: shape(slope * (z @ weights - place))

    return make


def late_step(slope: float) -> Maker:
    """sigmoid(slope (w.z - c)) with weights of about 1: a single feature can cross the step."""

    def make(n: int, rng: np.random.Generator) -> Function:
        weights = tensor(rng.uniform(0.5, 1.5, n))
        place = float(weights.sum()) * 0.55 * rng.uniform(0.5, 1.0)
        return lambda z: torch.sigmoid(slope * (z @ weights - place))

    return make


def oscillating(n: int, rng: np.random.Generator) -> Function:
    weights = mean_weights(n, rng)
    return lambda z: torch.sin(40 * (z @ weights)) / 4 + z @ weights


def kinked(n: int, rng: np.random.Generator) -> Function:
    place, slope = tensor(rng.uniform(0.1, 0.9, n)), tensor(rng.normal(size=n))
    return lambda z: (z - place).abs() @ slope + (z * slope.abs()).max(1).values


def saturated(n: int, rng: np.random.Generator) -> Function:
    """The probability of one of three classes whose logits are large."""
    weights = tensor(rng.normal(size=(n, 3)) * 3)
    return lambda z: torch.softmax(z @ weights, 1)[:, 0]


def wakes_at_the_end(n: int, rng: np.random.Generator) -> Function:
    """A ReLU that only the full coalition activates, near x."""
    return lambda z: torch.relu(z.sum(1) - n + 0.8) / 0.8


def square_root(n: int, rng: np.random.Generator) -> Function:
    weights = mean_weights(n, rng)
    return lambda z: torch.sqrt(z @ weights)


def product(n: int, rng: np.random.Generator) -> Function:
    return lambda z: z.prod(1)


def one_coalition(n: int, rng: np.random.Generator) -> Function:
    """A product of half of the features that dies as soon as another feature reaches 1/4."""
    inside = torch.from_numpy(np.isin(np.arange(n), rng.choice(n, n // 2, replace=False)))
    return lambda z: torch.where(inside, z, torch.relu(1 - 4 * z)).prod(1)


def largest(n: int, rng: np.random.Generator) -> Function:
    weights = tensor(rng.uniform(0.5, 1.5, n))
    return lambda z: (z * weights).max(1).values


def log_sum_exp(n: int, rng: np.random.Generator) -> Function:
    weights = tensor(rng.normal(size=n) * 2)
    return lambda z: torch.logsumexp(z * weights, 1)


MODELS: dict[str, Maker] = {
    "relu": network(torch.relu),
    "tanh": network(torch.tanh, gain=1.0),
    "steep": late_step(60),
    "oscillating": oscillating,
    "kinked": kinked,
    "saturated": saturated,
    "sigmoid 50": step(torch.sigmoid, 50),
    "sigmoid 300": step(torch.sigmoid, 300),
    "tanh 1000": step(torch.tanh, 1000),
    "relu at the end": wakes_at_the_end,
    "square root": square_root,
    "product": product,
    "one coalition": one_coalition,
    "max": largest,
    "log-sum-exp": log_sum_exp,
}
