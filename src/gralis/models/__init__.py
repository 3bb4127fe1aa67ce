"""Models as gralis sees them: two functions on a batch of points, and the adapters that provide them."""

from __future__ import annotations

from collections.abc import Callable

import torch as _torch  # under another name: `torch` here is the adapter

from gralis.checks import function as check_function
from gralis.errors import GralisError, bad
from gralis.models.black_box import blackbox
from gralis.models.estimator_model import estimator, is_estimator
from gralis.models.failures import kind
from gralis.models.jax_function import jax_model as jax
from gralis.models.keras_model import keras_model as keras
from gralis.models.numpy_function import function
from gralis.models.onnx_session import onnx_model as onnx
from gralis.models.protocol import Model, OutputModel, Points, is_model, is_output_model
from gralis.models.torch_module import torch_model as torch
from gralis.targets import Target
from gralis.targets import check as _check
from gralis.trees import TreeEnsemble
from gralis.trees import read as trees

__all__ = [
    "Model",
    "OutputModel",
    "Points",
    "TreeEnsemble",
    "adapt",
    "blackbox",
    "estimator",
    "function",
    "jax",
    "keras",
    "onnx",
    "register",
    "torch",
    "trees",
]

_ADAPTERS: list[tuple[Callable[[object], bool], Callable[[object, Target], Model]]] = []


def register(accepts: Callable[[object], bool], adapter: Callable[[object, Target], Model]) -> None:
    """Let `explain` take the models of another framework as they are.

    Parameters
    ----------
    accepts : callable
        Says whether an object is a model of that framework.
    adapter : callable
        Called as `adapter(model, target)`; it returns an object with `value(points)` and `value_and_gradient(points)`.

    Examples
    --------
    >>> class Doubler:
    ...     pass
    >>> register(lambda model: type(model).__name__ == "Doubler", lambda model, target: torch(lambda x: 2 * x.sum(1)))
    >>> adapt(Doubler()).value(_torch.ones(2, 3))
    tensor([6., 6.])
    """
    owner = "models.register"
    tested = check_function(accepts, "accepts", owner, "that recognises a model")
    _ADAPTERS.append((tested, check_function(adapter, "adapter", owner, "that makes a Model")))


def adapt(
    model: object,
    target: Target = None,
    *,
    device: _torch.device | str | None = None,
    dtype: _torch.dtype | None = None,
) -> Model:
    """Return the `Model` behind anything that can be explained.

    Parameters
    ----------
    model : Model, torch.nn.Module, callable or estimator
        A `Model` is returned as it is; a module or a function on batch tensors goes through `gralis.models.torch`, and
        an estimator with `predict_proba`, `decision_function` or `predict` through `gralis.models.estimator`.
    target : int, tuple of int, callable or None, default=None
        What F reads off the outputs. An adapter that was made without a target takes this one.
    device : torch.device, str or None, default=None
        Where points are evaluated, for a module or a function.
    dtype : torch.dtype or None, default=None
        The floating dtype that points are cast to, for a module or a function.

    Returns
    -------
    Model

    Raises
    ------
    GralisError
        If the model is none of these, or if it is a `Model` on which target, device or dtype have no effect.

    Examples
    --------
    >>> adapt(lambda x: x.sum(dim=1)).value(_torch.ones(2, 3))
    tensor([3., 3.])
    """
    for accepts, adapter in reversed(_ADAPTERS):
        if accepts(model):
            model, target = adapter(model, target), None
            break
    if is_estimator(model):
        model, target = estimator(model, target), None
    if is_output_model(model) and model.target is None and target is not None:
        model, target = model.with_target(_check(target)), None
    if is_model(model) and not isinstance(model, type):
        for parameter, value in (("target", target), ("device", device), ("dtype", dtype)):
            if value is not None:
                raise GralisError(
                    f"The model {type(model).__name__} already has its own value and gradient, so "
                    f"{parameter}={value!r} has no effect; give it to the adapter (gralis.models.*) instead."
                )
        return model
    if callable(model) and not isinstance(model, type):
        return torch(model, target, device=device, dtype=dtype)
    allowed = (
        "a torch.nn.Module, a function on batch tensors, a fitted estimator, or an object with value(points) and "
        "value_and_gradient(points), such as those made by gralis.models.jax, gralis.models.keras, "
        "gralis.models.function (NumPy value and gradient) or gralis.models.blackbox (NumPy value only, e.g. "
        "estimator.predict_proba)"
    )
    raise bad("model", "explain", allowed, kind(model))
