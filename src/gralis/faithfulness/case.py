"""What every metric starts from: one input, one attribution over its features, and F where features are removed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from gralis.errors import GralisError, ModelError, bad
from gralis.evaluate import Evaluator
from gralis.faithfulness.impute import NoisyLinear
from gralis.features import Features, groups
from gralis.labels import describe, to_numpy
from gralis.laws import Array, Masks
from gralis.models.blame import blame
from gralis.plans import whole
from gralis.problem import Problem
from gralis.targets import Target

Level = Literal["region", "pixel"]
BATCH = 64


@dataclass(frozen=True, eq=False)
class Case:
    """An attribution `values` (n_features,) of one input; `outputs` gives F with features removed, batch by batch."""

    values: Array
    evaluator: Evaluator
    imputer: NoisyLinear | None  # in place of the problem's baseline
    batch_size: int
    seed: int

    @property
    def problem(self) -> Problem:
        return self.evaluator.problem

    @property
    def features(self) -> Features:
        return self.problem.features

    @property
    def n_forwards(self) -> int:
        return self.evaluator.cost.n_forwards

    def endpoints(self) -> tuple[float, float]:
        """F(x), and F with every feature removed."""
        if self.imputer is None:
            f_x, f_baselines = self._ends
            return f_x, float(self.problem.baselines.weights @ f_baselines)
        everyone = np.ones((1, self.features.n_features), dtype=bool)
        both = self.outputs(np.concatenate([everyone, ~everyone]))
        return float(both[0]), float(both[1])

    @cached_property
    def _ends(self) -> tuple[float, Array]:
        return self.evaluator.endpoints()

    def outputs(self, kept: Masks) -> Array:
        """F with the features that are not kept replaced, one number per row of `kept` (rows, n_features)."""
        if self.imputer is not None:
            return self._imputed(kept, self.imputer)
        _, f_baselines = self._ends
        total = np.zeros(len(kept))
        for number, share in enumerate(self.problem.baselines.weights):
            v = self.evaluator.values(kept, np.full(len(kept), number))
            total += share * (v + f_baselines[number])
        return total

    def pixels(self) -> Case:
        """The same attribution pixel by pixel: each pixel has its features' values, summed with their signs."""
        painted = self.features.to_input(self.values)
        shape = self._image_shape("level='pixel'")
        labels = np.arange(shape[-2] * shape[-1]).reshape(shape[-2:])
        values = painted[0].reshape(-1, labels.size).sum(0)
        problem = replace(self.problem, features=groups(labels, shape=shape))
        evaluator = Evaluator(problem, batch_size=self.batch_size)
        return Case(values, evaluator, self.imputer, self.batch_size, self.seed)

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

    def _imputed(self, kept: Masks, imputer: NoisyLinear) -> Array:
        """Images are imputed one by one, each with noise of its own seed, and evaluated in batches."""
        self._image_shape("Noisy linear imputation")
        labels = self.features.labels[0].reshape(-1, *self.features.shapes[0][-2:])
        if (labels != labels[0]).any():
            raise GralisError("Noisy linear imputation removes whole pixels; these features divide their channels.")
        image = self.problem.endpoints.x[0].astype(np.float64)
        values = np.empty(len(kept))
        for start in range(0, len(kept), self.batch_size):
            rows = kept[start : start + self.batch_size]
            filled = [
                imputer(image, row[labels[0]], np.random.default_rng([self.seed, int(row.sum())])) for row in rows
            ]
            values[start : start + len(rows)] = self.forward(np.stack(filled))
        return values

    def forward(self, points: Array) -> Array:
        """F at these points, (rows, *x.shape), in one batch."""
        problem = self.problem
        batch = problem.pack([torch.from_numpy(points).to(device=problem.device, dtype=problem.dtypes[0])])
        with self.evaluator.session(), blame(f"The model {type(problem.model).__name__}", batch):
            found = problem.model.value(batch)
        self.evaluator.cost.n_forwards += len(points)
        values = found.double().cpu().numpy()
        if values.shape != (len(points),) or not np.isfinite(values).all():
            raise ModelError(f"The model must return {len(points)} finite values, one per row.")
        return values


@contextmanager
def case(
    model: object,
    x: object,
    attribution: object,
    target: Target,
    baseline: object,
    features: object,
    batch_size: int,
    seed: int,
) -> Iterator[Case]:
    """Everything checked, and the model in a session until the end."""
    imputer = NoisyLinear() if isinstance(baseline, str) and baseline == "noisy-linear" else baseline
    noisy = isinstance(imputer, NoisyLinear)
    own = getattr(attribution, "features", None)
    asked = own if features is None and isinstance(own, Features) else features
    array = np.asarray(to_numpy(getattr(attribution, "values", attribution)))
    if asked is None and array.ndim == 2 and getattr(x, "ndim", 2) > 2:  # one number per pixel
        asked = np.arange(array.size).reshape(array.shape)
    problem = Problem.build(model, x, baseline=0.0 if noisy else baseline, target=target, features=asked)
    if isinstance(own, Features) and own.fingerprint() != problem.features.fingerprint():
        raise bad("features", "a metric", f"those of the attribution, {own}", f"{problem.features}")
    size = whole(batch_size, "batch_size", 1)
    evaluator = Evaluator(problem, batch_size=size)
    found = Case(
        _values(array, problem.features),
        evaluator,
        imputer if isinstance(imputer, NoisyLinear) else None,
        size,
        whole(seed, "seed", 0),
    )
    with evaluator.session():
        yield found


def _values(array: NDArray[np.generic], features: Features) -> Array:
    """One number per feature: as given, or summed up, with their signs, from numbers shaped like x."""
    if array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        raise bad("attribution", "a metric", "finite numbers, one per feature or shaped like x", describe(array))
    if array.shape == (features.n_features,):
        return array.astype(np.float64)
    shape = features.shapes[0]
    if len(features.shapes) == 1 and array.shape in (shape, shape[-2:]):  # channels share a pixel's number alike
        return features.collect([np.broadcast_to(array.astype(np.float64) * (array.size / math.prod(shape)), shape)])
    allowed = f"one number per feature ({features.n_features}) or shaped like x {features.shapes[0]}"
    raise bad("attribution", "a metric", allowed, f"shape {array.shape}")
