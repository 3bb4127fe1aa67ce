"""Models as gralis sees them: two functions on a batch of points, and the adapters that provide them."""

from __future__ import annotations

from dataclasses import replace as _replace

import torch as _torch  # under another name: `torch` here is the adapter

from gralis.errors import GralisError, bad
from gralis.models.blackbox import blackbox
from gralis.models.failures import kind
from gralis.models.function import function
from gralis.models.jax_function import jax_model as jax
from gralis.models.keras_model import keras_model as keras
from gralis.models.outputs import READABLE
from gralis.models.protocol import Model, Points
from gralis.models.torch_module import torch_model as torch
from gralis.targets import Target
from gralis.targets import check as _check

__all__ = ["Model", "Points", "adapt", "blackbox", "function", "jax", "keras", "torch"]


def adapt(
    model: object,
    target: Target = None,
    *,
    device: _torch.device | str | None = None,
    dtype: _torch.dtype | None = None,
) -> Model:
    """The Model behind whatever the user gave: a Model as it is, a module or a function through `models.torch`.

    An adapter made without a target takes the one given here.

    >>> adapt(lambda x: x.sum(dim=1)).value(_torch.ones(2, 3))
    tensor([3., 3.])
    """
    if isinstance(model, READABLE) and model.target is None and target is not None:
        model, target = _replace(model, target=_check(target)), None
    if isinstance(model, Model) and not isinstance(model, type):
        for parameter, given in (("target", target), ("device", device), ("dtype", dtype)):
            if given is not None:
                raise GralisError(
                    f"The model {type(model).__name__} already has its own value and gradient, so "
                    f"{parameter}={given!r} has no effect; give it to the adapter (gralis.models.*) instead."
                )
        return model
    if callable(model) and not isinstance(model, type):
        return torch(model, target, device=device, dtype=dtype)
    allowed = (
        "a torch.nn.Module, a function on batch tensors, or an object with value(points) and "
        "value_and_gradient(points), such as those made by gralis.models.jax, gralis.models.keras, "
        "gralis.models.function (NumPy value and gradient) or gralis.models.blackbox (NumPy value only, e.g. "
        "estimator.predict_proba)"
    )
    raise bad("model", "explain", allowed, kind(model))
