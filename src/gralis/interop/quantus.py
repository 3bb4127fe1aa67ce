"""An explain function in the form in which quantus calls it: explain_func(model, inputs, targets, **options)."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np
import torch

from gralis.api.batch import explain_batch
from gralis.api.signature import options_of_explain
from gralis.arrays import Array
from gralis.features import grid
from gralis.options import Choices

__all__ = ["explain_func"]

_CELLS = 8  # along each axis of an image, if no features are given


@options_of_explain(without=("target",))
def explain_func(model: Any, inputs: Any, targets: Any, **options: Unpack[Choices]) -> Array:
    """phi of every input, spread evenly over the coordinates of each feature, so that sums are kept.

    The other options are those of `explain`; quantus hands them on from `explain_func_kwargs`. Without `features`, an
    image is divided into a grid of patches, about 8 along each axis.

    Parameters
    ----------
    model : torch.nn.Module
        The model that quantus evaluates.
    inputs : array of shape (n_inputs, ...)
        The inputs.
    targets : array of int of shape (n_inputs,)
        The class that is explained for each input.

    Returns
    -------
    array
        The attributions, in the shape of `inputs`.

    Examples
    --------
    >>> model = torch.nn.Linear(4, 2).eval()
    >>> explain_func(model, np.ones((3, 4), dtype=np.float32), np.array([0, 1, 1])).shape
    (3, 4)
    """
    batch = torch.as_tensor(np.asarray(inputs), dtype=torch.float32)
    if batch.ndim == 4:
        options.setdefault("features", grid(tuple(batch.shape[1:]), max(1, batch.shape[-1] // _CELLS)))
    classes = [int(target) for target in np.asarray(targets).reshape(-1)]
    explanations = explain_batch(model, batch, target=classes, **options)
    return np.stack([e.to_input() / e.features.to_input(e.features.sizes)[0] for e in explanations])
