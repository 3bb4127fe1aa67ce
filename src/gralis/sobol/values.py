"""F at many points, batch by batch, counted and checked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np
import torch

from gralis.arrays import Array
from gralis.evaluation.batching import Layout
from gralis.evaluation.calls import ModelCalls
from gralis.evaluation.point_sequences import GivenPoints, PointBatch
from gralis.models import adapt
from gralis.models.outputs import TargetedModel
from gralis.targets import Target

#: Makes the points in a slice, (rows, n_inputs).
RowFunction = Callable[[slice], Array]


class PointValues:
    """F at points, without gradients."""

    def __init__(
        self,
        model: object,
        target: Target,
        n_inputs: int,
        batch_size: int | None,
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        adapted = TargetedModel(adapt(model, target, device=device, dtype=dtype))
        self._calls = ModelCalls(adapted, 8 * n_inputs, batch_size=batch_size)

    @property
    def n_evaluations(self) -> int:
        """How many points were evaluated so far."""
        return self._calls.cost.n_forwards

    @property
    def eps(self) -> float:
        """The rounding error of the numbers that the model returned so far, relative to their size."""
        return self._calls.rounding

    def session(self) -> AbstractContextManager[None]:
        """Around all calls: the model prepares once, and is restored once."""
        return self._calls.session()

    def __call__(self, n_points: int, rows: RowFunction) -> Array:
        """F at rows(slice(0, n_points)), batch by batch."""
        return self._calls.values(_RowPoints(n_points, rows))[:, 0]


@dataclass(frozen=True, eq=False)
class _RowPoints:
    """Points that are made when their batch is evaluated."""

    n_points: int
    rows: RowFunction

    def __len__(self) -> int:
        return self.n_points

    def batch(self, part: slice, layout: Layout) -> PointBatch:
        return PointBatch(torch.from_numpy(np.ascontiguousarray(self.rows(part))), None)

    def location(self, row: int) -> str:
        return GivenPoints(self.batch(slice(row, row + 1), "contiguous").points).location(0)
