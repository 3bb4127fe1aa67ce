"""What every metric starts from: one input, one attribution over its features, and F where features are removed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gralis.errors import GralisError, ModelError, bad
from gralis.faithfulness.impute import NoisyLinear
from gralis.features import Features, groups
from gralis.labels import describe, to_numpy
from gralis.laws import Array, Masks
from gralis.models.blame import blame
from gralis.models.protocol import Guarded
from gralis.plans import whole
from gralis.problem import Problem
from gralis.targets import Target, check

Level = Literal["region", "pixel"]
BatchSize = int | Literal["auto"]
_NUMBERS = 2**20  # of the input in one batch, 6 images of 3 x 224 x 224: more of them no longer fit in the cache
_MOST = 256
_LARGE = 2**14


@dataclass(frozen=True, eq=False)
class Case:
    """An attribution `values` (n_features,) of one input; `outputs` gives F with features removed, batch by batch."""

    values: Array
    problem: Problem
    imputer: NoisyLinear | None  # in place of the problem's baseline
    batch_size: int
    seed: int
    forwards: Counter[str] = field(default_factory=Counter)  # of every model, by its one key "n"

    @property
    def features(self) -> Features:
        return self.problem.features

    @property
    def n_forwards(self) -> int:
        return self.forwards["n"]

    def endpoints(self) -> tuple[float, float]:
        """F(x), and F with every feature removed."""
        everyone = np.ones((1, self.features.n_features), dtype=bool)
        f_x, f_baseline = self.outputs(np.concatenate([everyone, ~everyone]))
        return float(f_x), float(f_baseline)

    def outputs(self, kept: Masks) -> Array:
        """F with the features that are not kept replaced, one number per row of `kept` (rows, n_features)."""
        if self.imputer is not None:
            return self._imputed(kept, self.imputer)
        return np.asarray(sum(share * self._replaced(kept, number) for number, share in enumerate(self._weights)))

    @property
    def _weights(self) -> Array:
        return self.problem.baselines.weights

    def _replaced(self, kept: Masks, baseline: int) -> Array:
        """By the coordinates of one baseline."""
        problem, device = self.problem, self.problem.device
        ends = [
            (x.to(device, dtype), base[baseline].to(device, dtype), torch.from_numpy(labels.flatten()).to(device))
            for x, base, dtype, labels in zip(
                problem.x, problem.baselines.points, problem.dtypes, self.features.labels, strict=True
            )
        ]
        values = np.empty(len(kept))
        for part in self._parts(len(kept)):
            rows = torch.from_numpy(kept[part]).to(device)
            points = [
                # x where it is kept, the baseline elsewhere: exact at 0 and at 1, and faster than a choice by booleans
                torch.lerp(base, x, rows.to(x.dtype).index_select(1, labels).view(-1, *x.shape))
                for x, base, labels in ends
            ]
            values[part] = self._forward(points)
        return values

    def _parts(self, n_rows: int) -> list[slice]:
        """Batches of at most batch_size rows, as even as can be."""
        ends = np.linspace(0, n_rows, -(-n_rows // self.batch_size) + 1).astype(int).tolist()
        return [slice(start, stop) for start, stop in pairwise(ends)]

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

    def _imputed(self, kept: Masks, imputer: NoisyLinear) -> Array:
        """Images are imputed one by one, each with noise of its own seed, and evaluated in batches."""
        self._image_shape("Noisy linear imputation")
        labels = self.features.labels[0].reshape(-1, *self.features.shapes[0][-2:])
        if (labels != labels[0]).any():
            raise GralisError("Noisy linear imputation removes whole pixels; these features divide their channels.")
        image = self.problem.endpoints.x[0].astype(np.float64)
        values = np.empty(len(kept))
        for part in self._parts(len(kept)):
            filled = [
                imputer(image, row[labels[0]], np.random.default_rng([self.seed, int(row.sum())])) for row in kept[part]
            ]
            points = torch.from_numpy(np.stack(filled)).to(self.problem.device, self.problem.dtypes[0])
            values[part] = self._forward([points])
        return values

    def _forward(self, points: list[Tensor]) -> Array:
        """F at one batch of points, leaf by leaf; no graph."""
        problem, rows = self.problem, len(points[0])
        batch = problem.pack([_in_layout(leaf) for leaf in points])
        with blame(f"The model {type(problem.model).__name__}", batch):
            found = problem.model.value(batch)
        self.forwards["n"] += rows
        values = found.double().cpu().numpy()
        if values.shape != (rows,) or not np.isfinite(values).all():
            raise ModelError(f"The model must return {rows} finite values, one per row of the batch.")
        return values


@contextmanager
def case(
    model: object,
    x: object,
    attribution: object,
    target: Target,
    baseline: object,
    features: object,
    batch_size: BatchSize,
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
    one = check(target, "a metric")
    problem = Problem.build(model, x, baseline=0.0 if noisy else baseline, target=one, features=asked)
    if isinstance(own, Features) and own.fingerprint() != problem.features.fingerprint():
        raise bad("features", "a metric", f"those of the attribution, {own}", f"{problem.features}")
    found = Case(
        _values(array, problem.features),
        problem,
        imputer if isinstance(imputer, NoisyLinear) else None,
        _batch_size(batch_size, problem),
        whole(seed, "seed", 0),
    )
    with problem.model.session() if isinstance(problem.model, Guarded) else nullcontext():
        yield found


def _in_layout(points: Tensor) -> Tensor:
    """Images of some size with their channels last, which convolutions are faster on; the numbers are the same."""
    if points.ndim != 4 or points.shape[1] > 16 or points[0].numel() < _LARGE:
        return points
    return points.contiguous(memory_format=torch.channels_last)


def _batch_size(given: BatchSize, problem: Problem) -> int:
    """Large enough to make calls cheap, small enough for the cache."""
    if given != "auto":
        return whole(given, "batch_size", 1)
    return max(4, min(_MOST, _NUMBERS // sum(leaf.numel() for leaf in problem.x)))


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
