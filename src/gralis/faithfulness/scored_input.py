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

from gralis.arrays import Array, Masks, describe, to_numpy
from gralis.errors import GralisError, bad
from gralis.evaluation.engine import Engine
from gralis.evaluation.points import PointBuilder
from gralis.faithfulness.impute import NoisyLinear
from gralis.features import Features, groups
from gralis.methods.method import BatchSize, Question, Words
from gralis.models.protocol import Points, session_of
from gralis.problem import Problem
from gralis.targets import check

Level = Literal["region", "pixel"]
_NUMBERS = 2**20  # of the input in one batch, 6 images of 3 x 224 x 224: more of them no longer fit in the cache
_MOST = 256


@dataclass(frozen=True, eq=False)
class Case:
    """An attribution `values` (n_features,) of one input; `outputs` gives F with features removed, batch by batch."""

    values: Array
    problem: Problem
    imputer: NoisyLinear | None  # in place of the problem's baseline
    question: Question

    @property
    def features(self) -> Features:
        return self.problem.features

    @property
    def seed(self) -> int:
        return self.question.seed

    @property
    def n_forwards(self) -> int:
        return self._engine.cost.n_forwards

    @cached_property
    def _engine(self) -> Engine:
        return Engine([self.problem], _batch_size(self.question.batch_size, self.problem))

    def endpoints(self) -> tuple[float, float]:
        """F(x), and F with every feature removed."""
        everyone = np.ones((1, self.features.n_features), dtype=bool)
        f_x, f_baseline = self.outputs(np.concatenate([everyone, ~everyone]))
        return float(f_x), float(f_baseline)

    def outputs(self, kept: Masks) -> Array:
        """F with the features that are not kept replaced, one number per row of `kept` (rows, n_features)."""
        weights = np.ones(1) if self.imputer is not None else self.problem.baselines.weights
        rows, pair = np.tile(kept, (len(weights), 1)), np.repeat(np.arange(len(weights)), len(kept))
        engine, impute = self._engine, None if self.imputer is None else self._imputed(self.imputer)

        def points(part: slice, builder: PointBuilder) -> Points:
            if impute is not None:
                return builder.arranged([impute(rows[part])])
            return builder.corners(engine.on_device(rows[part]), engine.on_device(pair[part]))

        values = engine.values(points, pair, lambda part: (rows[part], np.ones(len(rows[part]))))
        return np.asarray(weights @ values.reshape(len(weights), len(kept)))

    def pixels(self) -> Case:
        """The same attribution pixel by pixel: each pixel has its features' values, summed with their signs."""
        painted = self.features.to_input(self.values)
        shape = self._image_shape("level='pixel'")
        labels = np.arange(shape[-2] * shape[-1]).reshape(shape[-2:])
        values = painted[0].reshape(-1, labels.size).sum(0)
        return replace(self, values=values, problem=replace(self.problem, features=groups(labels, shape=shape)))

    def at(self, level: object, owner: str) -> Case:
        """At the level of the features, or of single pixels."""
        if level not in ("region", "pixel"):
            raise bad("level", owner, "'region' (the features) or 'pixel'", repr(level))
        return self if level == "region" else self.pixels()

    def order(self) -> NDArray[np.int64]:
        """Features from the largest value to the smallest, with their signs; ties in a random order of this seed."""
        shuffled = np.random.default_rng(self.seed).permutation(len(self.values))
        return np.lexsort((shuffled, -self.values))

    def picture(self) -> Array:
        """The attribution as a density over pixels, (H, W): a feature's value is shared by its coordinates."""
        shape = self._image_shape("a picture")
        density = self.features.to_input(self.values / self.features.sizes)[0]
        return np.asarray(density.reshape(-1, *shape[-2:]).sum(0))

    def _image_shape(self, owner: str) -> tuple[int, ...]:
        shapes = self.features.shapes
        if len(shapes) != 1 or len(shapes[0]) < 2:
            raise GralisError(f"{owner} needs one x whose last two axes are rows and columns; here x is {shapes}.")
        return shapes[0]

    def _imputed(self, imputer: NoisyLinear) -> Callable[[Masks], Tensor]:
        """Makes images from the pixels that are kept: one by one, each with noise of its own seed."""
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


@contextmanager
def case(
    metric: Callable[..., object],
    model: object,
    x: object,
    attribution: object,
    asked: Words,
    baseline: object = 0.0,
) -> Iterator[Case]:
    """Everything checked, and the model in a session until the end; `baseline` is that of the metric."""
    question = Question.of(metric, {"baseline": baseline, **asked})
    baseline, features = question.baseline, question.features
    imputer = NoisyLinear() if isinstance(baseline, str) and baseline == "noisy-linear" else baseline
    noisy = isinstance(imputer, NoisyLinear)
    own = getattr(attribution, "features", None)
    over = own if features is None and isinstance(own, Features) else features
    array = finite(attribution, "attribution", "a metric", "finite numbers, one per feature or shaped like x")
    if over is None and array.ndim == 2 and getattr(x, "ndim", 2) > 2:  # one number per pixel
        over = np.arange(array.size).reshape(array.shape)
    one = check(question.target, "a metric")
    problem = Problem.build(model, x, baseline=0.0 if noisy else baseline, target=one, features=over)
    if isinstance(own, Features) and own.fingerprint() != problem.features.fingerprint():
        raise bad("features", "a metric", f"those of the attribution, {own}", f"{problem.features}")
    values = _values(array, problem.features)
    found = Case(values, problem, imputer if isinstance(imputer, NoisyLinear) else None, question)
    with session_of(problem.model):
        yield found


def finite(given: object, parameter: str, owner: str, allowed: str, kinds: str = "fiu") -> NDArray[Any]:
    """Numbers from outside, an attribution's values or an array: without gaps, NaN or infinities."""
    try:
        array = to_numpy(getattr(given, "values", given))
    except (TypeError, ValueError, RuntimeError):
        raise bad(parameter, owner, allowed, describe(given)) from None
    if array.dtype.kind not in kinds or not np.isfinite(array).all():
        raise bad(parameter, owner, allowed, describe(array))
    return array


def _batch_size(given: BatchSize, problem: Problem) -> int:
    """Large enough to make calls cheap, small enough for the cache."""
    if given != "auto":
        return given
    return max(4, min(_MOST, _NUMBERS // sum(leaf.numel() for leaf in problem.x)))


def _values(array: NDArray[np.generic], features: Features) -> Array:
    """One number per feature: as given, or summed up, with their signs, from numbers shaped like x."""
    if array.shape == (features.n_features,):
        return array.astype(np.float64)
    shape = features.shapes[0]
    if len(features.shapes) == 1 and array.shape in (shape, shape[-2:]):  # channels share a pixel's number alike
        return features.collect([np.broadcast_to(array.astype(np.float64) * (array.size / math.prod(shape)), shape)])
    allowed = f"one number per feature ({features.n_features}) or shaped like x {features.shapes[0]}"
    raise bad("attribution", "a metric", allowed, f"shape {array.shape}")
