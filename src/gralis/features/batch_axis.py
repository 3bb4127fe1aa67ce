"""A batch axis of 1 that was left on x. It is taken off only if the model itself shows that x is a batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor

from gralis.arrays import Shape
from gralis.errors import GralisError
from gralis.features.features import Features
from gralis.models.protocol import OutputModel, Points
from gralis.targets import Target, select
from gralis.targets.outputs import as_tensor

__all__ = ["LEFT_OUT", "is_batch_of_one", "without_batch_axis"]

LEFT_OUT = "x has a batch axis of 1, which was left out: x[0] is explained"


def is_batch_of_one(
    model: object, target: Target, leaves: Sequence[Tensor], pack: Callable[[list[Tensor]], Points]
) -> bool:
    """Whether x is surely a batch of one input: the model reads x itself, and fails or misreads x with an axis more.

    Parameters
    ----------
    model : object
        The model. Only one whose outputs can be read is asked.
    target : Target
        What is read off the outputs.
    leaves : sequence of tensor
        The arrays of x. If one of them does not begin with an axis of 1, the model is not asked.
    pack : callable
        Brings arrays into the form that the model expects.

    Returns
    -------
    bool
    """
    if not all(leaf.ndim > 1 and leaf.shape[0] == 1 for leaf in leaves) or not isinstance(model, OutputModel):
        return False
    with_one_more = _reading(model, target, pack([leaf[None] for leaf in leaves]))
    return with_one_more < 2 and _reading(model, target, pack(list(leaves))) > with_one_more


def _reading(model: OutputModel, target: Target, points: Points) -> int:
    """2 if the target can be read, 1 if there is at least one row of outputs, 0 if the model fails or misreads."""
    try:
        outputs = model.outputs(points)
        logits = None if callable(target) else as_tensor(outputs, "explain")
    except GralisError:
        return 0
    try:
        return 2 if select(outputs, target).shape == (1,) else 0
    except GralisError:
        pass
    except Exception:  # a function as target fails on outputs that it was not written for
        return 0
    return int(logits is not None and logits.ndim == 2 and logits.shape[0] == 1)  # the target is what is wrong


def without_batch_axis(value: Any, shapes: Mapping[str, Shape]) -> Any:
    """x, a baseline, labels or features without their first axis, if they have the shapes of x.

    Parameters
    ----------
    value : object
        An array, a tuple or dict of arrays, or Features. Anything else is returned as it is.
    shapes : mapping of str to tuple of int
        The shapes of the arrays of x, with the batch axis, by their names.

    Returns
    -------
    object

    Examples
    --------
    >>> without_batch_axis(np.zeros((1, 3)), {"x": (1, 3)}).shape, without_batch_axis(0.5, {"x": (1, 3)})
    ((3,), 0.5)
    """
    listed = tuple(shapes.values())
    if isinstance(value, Features):
        if value.shapes != listed:
            return value
        return Features(tuple(leaf[0] for leaf in value.labels), value.names, value.kind, value.meta)
    if isinstance(value, Mapping) and set(value) == set(shapes):
        return {key: without_batch_axis(part, {key: shapes[key]}) for key, part in value.items()}
    if isinstance(value, tuple) and len(value) == len(listed):
        return tuple(without_batch_axis(part, {"x": shape}) for part, shape in zip(value, listed, strict=True))
    shape = getattr(value, "shape", None) if not isinstance(value, list) else np.shape(value)
    return value[0] if len(listed) == 1 and shape == listed[0] else value
