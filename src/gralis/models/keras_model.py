"""A Keras model, or a TensorFlow function, as a gralis Model: differentiated by the backend that Keras runs on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gralis.errors import GralisError, bad
from gralis.models.failures import full_name, kind
from gralis.models.framework import FrameworkModel, Weights
from gralis.models.jax_function import JaxFunction
from gralis.models.points import call, rebuild
from gralis.models.protocol import Points
from gralis.models.torch_module import TorchModel
from gralis.targets import Target, check

__all__ = ["TensorFlowFunction", "TensorFlowPass", "keras_model"]


def keras_model(
    model: Callable[..., Any], target: Target = None, *, dtype: torch.dtype | None = None
) -> FrameworkModel | TorchModel:
    """F(point) = target(model(point, training=False)), for a Keras model or a TensorFlow function.

    Keras 3 runs on TensorFlow (differentiated by GradientTape), JAX (by jax.vjp) or torch (by autograd).

    Parameters
    ----------
    model : keras.Model or callable
        A Keras model; any other callable is taken for a function of TensorFlow tensors.
    target : int, tuple of int, callable or None, default=None
        What F reads off the outputs: None if the model returns one number per row, otherwise an index, a readout from
        `gralis.targets`, or a function that receives the tensors of the backend.
    dtype : torch.dtype or None, default=None
        The dtype that points are cast to, `torch.float32` or `torch.float64`. None takes the dtype of the model.

    Returns
    -------
    FrameworkModel or TorchModel
        A `TorchModel` if Keras runs on torch.
    """
    if isinstance(model, type) or not callable(model):
        raise bad("model", "models.keras", "a Keras model or a function of TensorFlow tensors", kind(model))
    if not any(dtype is each for each in (None, torch.float32, torch.float64)):
        raise bad("dtype", "models.keras", "None, torch.float32 or torch.float64", repr(dtype))
    target, layer = check(target, "models.keras"), _is_layer(model)
    dtype = dtype or _dtype(model)
    name = type(model).__name__ if layer else full_name(model)
    predict = partial(_predict, model) if layer else model
    backend = _backend() if layer else "tensorflow"
    if backend == "tensorflow":
        return FrameworkModel(TensorFlowFunction(predict, dtype, name), target, predict)
    if backend == "jax":
        return FrameworkModel(JaxFunction(predict, dtype, name), target, predict)
    if backend == "torch":
        device = next((variable.value.device for variable in getattr(model, "variables", ())), None)
        return TorchModel(predict, target, device, dtype)
    raise GralisError(
        f"Keras runs on {backend} here, which has no gradients; set KERAS_BACKEND to tensorflow, jax or torch before "
        f"keras is imported, or explain model.predict with gralis.models.blackbox."
    )


def _predict(model: Callable[..., Any], *inputs: Any, **named: Any) -> Any:
    """The model in inference mode: dropout off, batch norm with its running statistics; several inputs as one list."""
    if named:
        return model(named, training=False)
    return model(inputs[0] if len(inputs) == 1 else list(inputs), training=False)


def _is_layer(model: object) -> bool:
    """Whether the model is one of Keras; Keras itself is not imported."""
    return any(parent.__module__.split(".")[0] in ("keras", "tf_keras") for parent in type(model).__mro__)


def _backend() -> str:
    import keras

    return str(keras.config.backend())


def _dtype(model: object) -> torch.dtype | None:
    """The dtype that the model computes in; None if it does not say."""
    named = getattr(model, "compute_dtype", None) or next(
        (variable.dtype for variable in getattr(model, "variables", ())), None
    )
    dtype = getattr(torch, str(getattr(named, "name", named)), None)
    return dtype if dtype in (torch.float32, torch.float64) else None


class TensorFlowFunction:
    """A function of TensorFlow tensors."""

    advice = ""

    def __init__(self, fn: Callable[..., Any], dtype: torch.dtype | None, name: str) -> None:
        try:
            import tensorflow
        except ImportError as error:
            raise GralisError("A TensorFlow function needs TensorFlow: pip install tensorflow.") from error
        self.name, self.dtype = name, dtype
        self._fn, self._tf = fn, tensorflow

    def run(self, points: list[NDArray[Any]], form: Points, *, gradient: bool) -> TensorFlowPass:
        """Run under a persistent tape, or without a tape."""
        tf = self._tf
        inputs = [tf.convert_to_tensor(leaf) for leaf in points]
        if not gradient:
            return TensorFlowPass(tf, inputs, call(self._fn, rebuild(form, inputs)), None)
        with tf.GradientTape(persistent=True) as tape:
            for leaf in inputs:
                tape.watch(leaf)
            outputs = call(self._fn, rebuild(form, inputs))
        return TensorFlowPass(tf, inputs, outputs, tape)


@dataclass(frozen=True, eq=False)
class TensorFlowPass:
    """The outputs of one run, and the tape that differentiates them."""

    tf: Any
    inputs: list[Any]
    outputs: Any
    tape: Any

    def arrays(self) -> list[NDArray[Any]]:
        """The tensors in the outputs, as arrays."""
        return [np.asarray(part) for part in self.tf.nest.flatten(self.outputs)]

    def put(self, parts: list[Any]) -> Any:
        """The outputs with these parts in the places of their tensors."""
        return self.tf.nest.pack_sequence_as(self.outputs, parts)

    def read(self, target: Callable[[Any], Any], *, gradient: bool) -> tuple[NDArray[Any], Weights]:
        """The target on TensorFlow tensors, and its derivative by each of them."""
        parts = self.tf.nest.flatten(self.outputs)
        with self.tf.GradientTape() as tape:
            for part in parts:
                if part.dtype.is_floating:
                    tape.watch(part)
            value = target(self.put(parts))
        if not gradient or not value.dtype.is_floating:
            return np.asarray(value), [None] * len(parts)
        floats = [part for part in parts if part.dtype.is_floating]
        gradients = iter(tape.gradient(value, floats))
        weights = [next(gradients) if part.dtype.is_floating else None for part in parts]
        return np.asarray(value), [None if weight is None else np.asarray(weight) for weight in weights]

    def pull(self, weights: Weights) -> list[NDArray[Any]]:
        """The gradient at the points, leaf by leaf."""
        parts = self.tf.nest.flatten(self.outputs)
        used = [(part, weight) for part, weight in zip(parts, weights, strict=True) if weight is not None]
        gradients = self.tape.gradient(
            [part for part, _ in used],
            self.inputs,
            output_gradients=[self.tf.convert_to_tensor(weight) for _, weight in used],
            unconnected_gradients="zero",
        )
        return [np.asarray(part) for part in gradients]
