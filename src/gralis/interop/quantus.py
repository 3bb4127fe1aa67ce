"""An explain function as quantus calls it: explain_func(model, inputs, targets, **options) -> array like inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gralis.api.batch import explain_batch
from gralis.features import grid

_CELLS = 8  # along each axis of an image, if no features are given


def explain_func(model: Any, inputs: Any, targets: Any, **options: Any) -> NDArray[np.float64]:
    """phi of every input, spread over its coordinates: a region's value divided by its size, so that sums are kept.

    Images get a grid of patches unless `features=` says otherwise; quantus' own `device` is understood.

    >>> model = torch.nn.Linear(4, 2).eval()
    >>> explain_func(model, np.ones((3, 4), dtype=np.float32), np.array([0, 1, 1])).shape
    (3, 4)
    """
    batch = torch.as_tensor(np.asarray(inputs), dtype=torch.float32)
    if batch.ndim == 4 and "features" not in options:
        side = max(1, batch.shape[-1] // _CELLS)
        options["features"] = grid(tuple(batch.shape[1:]), side)
    chosen = [int(t) for t in np.asarray(targets).reshape(-1)]
    found = explain_batch(model, batch, target=chosen, **options)
    return np.stack([one.to_input() / one.features.to_input(one.features.sizes)[0] for one in found])
