"""What every metric starts from: one input, one attribution over its features, and F where features are removed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gralis.arrays import Array, Masks, Shape, describe, real_numbers
from gralis.checks import one_of
from gralis.errors import GralisError, bad
from gralis.evaluation import Questions
from gralis.evaluation.calls import ModelCalls
from gralis.evaluation.point_builder import PointBuilder
from gralis.evaluation.point_sequences import CoalitionPoints, ProblemPoints
from gralis.faithfulness.impute import NoisyLinear
from gralis.features import Features, groups
from gralis.methods.settings import BatchSize, SharedKeywords, SharedSettings
from gralis.models import Points
from gralis.models.protocol import session_of
from gralis.problem import Problem
from gralis.targets import check

__all__ = ["Level", "ScoredInput", "finite"]

Level = Literal["region", "pixel"]
_MOST_NUMBERS = 2**20  # in one batch, that is 6 images of 3 x 224 x 224: larger batches do not fit in the cache
_MOST_ROWS = 256


@dataclass(frozen=True, eq=False)
class ScoredInput:
    """One input with its attribution `values` (n_features,); `outputs` gives F with features removed."""

    values: Array
    problem: Problem
    imputer: NoisyLinear | None  # in place of the problem's baseline
    settings: SharedSettings

    @classmethod
    @contextmanager
    def open(
        cls,
        metric: Callable[..., object],
        model: object,
        x: object,
        attribution: object,
        keywords: SharedKeywords,
        settings_type: type[SharedSettings] = SharedSettings,
    ) -> Iterator[ScoredInput]:
        """Check the arguments of a metric, and hold the model in a session until the metric is done."""
        settings = settings_type.of(metric, keywords)
        baseline = settings.baseline
        if isinstance(baseline, str) and baseline == "noisy-linear":
            baseline = NoisyLinear()
        imputer = baseline if isinstance(baseline, NoisyLinear) else None
        features, attributed = settings.features, getattr(attribution, "features", None)
        if features is None and isinstance(attributed, Features):
            features = attributed
        array = finite(attribution, "attribution", "a metric", "finite numbers, one per feature or shaped like x")
        if features is None and array.ndim == 2 and getattr(x, "ndim", 2) > 2:  # one number per pixel
            features = np.arange(array.size).reshape(array.shape)
        target = check(settings.target, "a metric")
        problem = Problem.build(model, x, baseline=0.0 if imputer else baseline, target=target, features=features)
        if isinstance(attributed, Features) and attributed.fingerprint() != problem.features.fingerprint():
            raise bad("features", "a metric", f"those of the attribution, {attributed}", f"{problem.features}")
        with session_of(problem.model):
            yield cls(_values(array, problem.features), problem, imputer, settings)

    @property
    def features(self) -> Features:
        return self.problem.features

    @property
    def seed(self) -> int:
        return self.settings.seed

    @property
    def n_forwards(self) -> int:
        return self._calls.cost.n_forwards

    @cached_property
    def _calls(self) -> ModelCalls:
        return ModelCalls.of([self.problem], _batch_size(self.settings.batch_size, self.problem))

    @cached_property
    def _space(self) -> ProblemPoints:
        return ProblemPoints([self.problem], Questions(n_baselines=self.problem.baselines.n_baselines))

    def endpoints(self) -> tuple[float, float]:
        """F(x), and F with every feature removed."""
        everyone = np.ones((1, self.features.n_features), dtype=bool)
        f_x, f_baseline = self.outputs(np.concatenate([everyone, ~everyone]))
        return float(f_x), float(f_baseline)

    def outputs(self, kept: Masks) -> Array:
        """F with the features that are not kept replaced, one number per row of `kept` (rows, n_features)."""
        weights = np.ones(1) if self.imputer is not None else self.problem.baselines.weights
        rows, pair = np.tile(kept, (len(weights), 1)), np.repeat(np.arange(len(weights)), len(kept))
        if self.imputer is None:
            points = CoalitionPoints(self._space, pair, rows)
        else:
            points = _ImputedPoints(self._space, pair, rows, self._imputed(self.imputer))
        values = self._calls.values(points)
        return np.asarray(weights @ values.reshape(len(weights), len(kept)))

    def pixels(self) -> ScoredInput:
        """The same attribution pixel by pixel: each pixel has the values of its features, summed with their signs."""
        painted = self.features.to_input(self.values)
        shape = self._image_shape("level='pixel'")
        labels = np.arange(shape[-2] * shape[-1]).reshape(shape[-2:])
        values = painted[0].reshape(-1, labels.size).sum(0)
        return replace(self, values=values, problem=replace(self.problem, features=groups(labels, shape=shape)))

    def at(self, level: object, owner: str) -> ScoredInput:
        """The same attribution at the level of the features, or of single pixels."""
        one_of(level, ("region", "pixel"), "level", owner)
        return self if level == "region" else self.pixels()

    def order(self) -> NDArray[np.int64]:
        """Features from the largest signed value to the smallest; the seed decides the order of equal values."""
        shuffled = np.random.default_rng(self.seed).permutation(len(self.values))
        return np.lexsort((shuffled, -self.values))

    def picture(self) -> Array:
        """The attribution as a density over pixels, (H, W): each coordinate has an equal share of its feature."""
        shape = self._image_shape("a picture")
        density = self.features.to_input(self.values / self.features.sizes)[0]
        return np.asarray(density.reshape(-1, *shape[-2:]).sum(0))

    def _image_shape(self, owner: str) -> Shape:
        """The shape of x, which must be one array with rows and columns."""
        shapes = self.features.shapes
        if len(shapes) != 1 or len(shapes[0]) < 2:
            raise GralisError(f"{owner} needs one x whose last two axes are rows and columns; here x is {shapes}.")
        return shapes[0]

    def _imputed(self, imputer: NoisyLinear) -> Callable[[Masks], Tensor]:
        """A function that makes images from the pixels that are kept, each with noise of its own seed."""
        self._image_shape("Noisy linear imputation")
        labels = self.features.labels[0].reshape(-1, *self.features.shapes[0][-2:])
        if (labels != labels[0]).any():
            raise GralisError("Noisy linear imputation removes whole pixels; these features divide their channels.")
        image = self.problem.endpoints.x[0].astype(np.float64)

        def impute(kept: Masks) -> Tensor:
            filled = [
                imputer(image, row[labels[0]], np.random.default_rng([self.seed, int(row.sum())])) for row in kept
            ]
            return torch.from_numpy(np.stack(filled)).to(self.problem.device, self.problem.dtypes[0])

        return impute


@dataclass(frozen=True, eq=False)
class _ImputedPoints(CoalitionPoints):
    """x with the features outside every coalition imputed, in place of x_T."""

    impute: Callable[[Masks], Tensor]

    def build(self, part: slice, builder: PointBuilder) -> Points:
        return builder.in_layout([self.impute(self.masks[part])])


def finite(numbers: object, parameter: str, owner: str, allowed: str, kinds: str = "fiu") -> NDArray[Any]:
    """The values of an attribution, or an array, as a NumPy array without NaN or infinities."""
    array = real_numbers(getattr(numbers, "values", numbers), parameter, owner, allowed, kinds)
    if not np.isfinite(array).all():
        raise bad(parameter, owner, allowed, describe(array))
    return array


def _batch_size(batch_size: BatchSize, problem: Problem) -> int:
    """The user's batch size, or one that is large enough to make calls cheap and small enough for the cache."""
    if batch_size != "auto":
        return batch_size
    return max(4, min(_MOST_ROWS, _MOST_NUMBERS // sum(leaf.numel() for leaf in problem.x)))


def _values(array: NDArray[np.generic], features: Features) -> Array:
    """One number per feature: the array itself, or signed sums of numbers shaped like x."""
    if array.shape == (features.n_features,):
        return array.astype(np.float64)
    shape = features.shapes[0]
    if len(features.shapes) == 1 and array.shape in (shape, shape[-2:]):  # every channel gets the same share
        return features.collect([np.broadcast_to(array.astype(np.float64) * (array.size / math.prod(shape)), shape)])
    allowed = f"one number per feature ({features.n_features}) or shaped like x {features.shapes[0]}"
    raise bad("attribution", "a metric", allowed, f"shape {array.shape}")
