"""The one place here that calls the model: values of many points, in batches, counted and checked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Literal

import numpy as np
import torch

from gralis.arrays import Array
from gralis.errors import ModelError
from gralis.evaluation.batching import BatchSizer
from gralis.evaluation.engine import require_rows
from gralis.models import adapt
from gralis.models.failures import report_failure
from gralis.models.protocol import session_of
from gralis.targets import Target

#: The points of a slice, (rows, n_inputs).
Points = Callable[[slice], Array]


class Values:
    """F at points; no gradient is needed. `eps` is the rounding of the numbers the model returns."""

    def __init__(
        self,
        model: object,
        target: Target,
        batch_size: int | Literal["auto"],
        device: torch.device | str | None,
        dtype: torch.dtype | None,
    ) -> None:
        self._model = adapt(model, target, device=device, dtype=dtype)
        self._sizers = BatchSizer.start(None if batch_size == "auto" else batch_size, ("contiguous",))
        self.n_evaluations = 0
        self.eps = float(np.finfo(np.float64).eps)

    def session(self) -> AbstractContextManager[None]:
        """Around all calls: the model prepares once, and is restored once."""
        return session_of(self._model)

    def __call__(self, n_points: int, points: Points) -> Array:
        """F at points(slice(0, n_points)), batch by batch."""
        found = np.empty(n_points)

        def use(part: slice, layout: object, values: Array) -> None:
            found[part] = values

        self._sizers.through(n_points, lambda part, layout: self._batch(points(part)), use)
        self.n_evaluations += n_points
        return found

    def _batch(self, rows: Array) -> Array:
        points = torch.from_numpy(np.ascontiguousarray(rows))
        with report_failure(f"The model {type(self._model).__name__}", points):
            said = self._model.value(points)
        values = require_rows(said, points)
        if values.is_floating_point():
            self.eps = max(self.eps, float(torch.finfo(values.dtype).eps))
        found = values.detach().double().cpu().numpy()
        if not np.isfinite(found).all():
            row = int(np.flatnonzero(~np.isfinite(found))[0])
            place = ", ".join(f"{value:.6g}" for value in rows[row, :8]) + (", ..." if rows.shape[1] > 8 else "")
            raise ModelError(f"The model's output is {found[row]} at the point ({place}); every output must be finite.")
        return np.asarray(found)
