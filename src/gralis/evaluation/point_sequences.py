"""Points that a model is to be evaluated at, in order: each batch of them is built only when it is evaluated."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gralis.arrays import Array, Masks
from gralis.evaluation.batching import Layout
from gralis.evaluation.point_builder import PointBuilder
from gralis.evaluation.questions import Questions
from gralis.models import Points
from gralis.models.points import leaves, rebuild, require_like
from gralis.problem import Problem
from gralis.rays.discrete import HALFWAY

__all__ = [
    "CoalitionPoints",
    "GivenPoints",
    "PairBatch",
    "PairPoints",
    "PointBatch",
    "PointSequence",
    "ProblemPoints",
    "RayPoints",
    "StepPoints",
]


@dataclass(frozen=True, eq=False)
class PointBatch:
    """Some points of a sequence, as the model expects them."""

    points: Points
    inputs: NDArray[np.int64] | None  # the input that every row belongs to; None if there is only one

    def reduced(self, gradients: Points) -> Tensor:
        """What is kept of the gradients: dF/dx at every coordinate, (rows, n_coordinates) in float64."""
        require_like(gradients, self.points)
        return torch.cat([leaf.reshape(len(leaf), -1).double() for leaf in leaves(gradients)], dim=1)

    def name_of(self, place: tuple[int, ...]) -> str:
        """What the number at this place in a row of `reduced` is, in words."""
        return f"gradient in the direction of feature {place[0]}"


class PointSequence(Protocol):
    """Points in a fixed order."""

    def __len__(self) -> int: ...

    def batch(self, part: slice, layout: Layout) -> PointBatch:
        """The points in a slice, in a memory layout."""
        ...

    def location(self, row: int) -> str:
        """Where a point lies and what must be finite, in words; an error message ends with it."""
        ...


@dataclass(frozen=True, eq=False)
class GivenPoints:
    """Points that exist already; the layout stays as it is."""

    points: Points
    batch_type: type[PointBatch] = PointBatch

    def __len__(self) -> int:
        return len(leaves(self.points)[0])

    def batch(self, part: slice, layout: Layout) -> PointBatch:
        return self.batch_type(rebuild(self.points, [leaf[part] for leaf in leaves(self.points)]), None)

    def location(self, row: int) -> str:
        numbers = torch.cat([leaf[row].reshape(-1)[:9] for leaf in leaves(self.points)]).tolist()
        shown = ", ".join(f"{number:.6g}" for number in numbers[:8]) + (", ..." if len(numbers) > 8 else "")
        return f"the point ({shown}); all outputs and gradients must be finite."


class ProblemPoints:
    """All points between the inputs x and the baselines x' of problems with the same features."""

    def __init__(self, problems: Sequence[Problem], questions: Questions) -> None:
        self.questions, self.n_features = questions, problems[0].n_features
        self.builder = cache(partial(PointBuilder, problems, questions))  # of every layout


@dataclass(frozen=True, eq=False)
class PairBatch(PointBatch):
    """Points between inputs and baselines, whose gradients are summed over features."""

    builder: PointBuilder
    pair: NDArray[np.int64]

    def reduced(self, gradients: Points) -> Tensor:
        """sum over the coordinates p of each feature of (x_p - x'_p) dF/dx_p, (rows, n_features) in float64."""
        require_like(gradients, self.points)
        return self.builder.to_features(gradients, self.pair)


@dataclass(frozen=True, eq=False)
class PairPoints(PointSequence):
    """Points between inputs and baselines."""

    space: ProblemPoints
    pair: NDArray[np.int64]  # (n_points,)

    def __len__(self) -> int:
        return len(self.pair)

    def batch(self, part: slice, layout: Layout) -> PointBatch:
        builder, pair = self.space.builder(layout), self.pair[part]
        return PairBatch(self.build(part, builder), self.space.questions.input_of_pair(pair), builder, pair)

    @abstractmethod
    def build(self, part: slice, builder: PointBuilder) -> Points:
        """The points in a slice."""


@dataclass(frozen=True, eq=False)
class CoalitionPoints(PairPoints):
    """x_T of every row."""

    masks: Masks  # (n_points, n_features)

    def build(self, part: slice, builder: PointBuilder) -> Points:
        return builder.at_coalitions(self.masks[part], self.pair[part])

    def location(self, row: int) -> str:
        return _on_ray(self.masks[row], 1.0)


@dataclass(frozen=True, eq=False)
class StepPoints(PairPoints):
    """x' + step (x - x') of every row, half-way on a ray where discrete features jump."""

    step: Array  # (n_points, n_features)

    def build(self, part: slice, builder: PointBuilder) -> Points:
        return builder.at_steps(self.step[part], self.pair[part])

    def location(self, row: int) -> str:
        return _on_ray(self.step[row] > 0, HALFWAY)


@dataclass(frozen=True, eq=False)
class RayPoints(PairPoints):
    """x' + a (x_T - x') at every node a of every ray, with the same rays and nodes for every input."""

    masks: Masks  # (n_rays, n_features)
    ray: NDArray[np.int64]  # (n_points / n_inputs,)
    node: Array  # (n_points / n_inputs,)

    def build(self, part: slice, builder: PointBuilder) -> Points:
        point = np.arange(part.start, part.stop) % len(self.ray)
        return builder.on_rays(self.masks[self.ray[point]], self.node[point], self.pair[part])

    def location(self, row: int) -> str:
        point = row % len(self.ray)
        return _on_ray(self.masks[self.ray[point]], self.node[point])


def _on_ray(members: NDArray[np.bool_], node: float) -> str:
    features = np.flatnonzero(members).tolist()
    shown = f"{features[:8]}{' and more' if len(features) > 8 else ''}"
    return (
        f"the point a = {node:.4g} on the ray of features {shown} (0 is the baseline, 1 is x on these features); "
        f"every point between the baseline and x must be finite."
    )
