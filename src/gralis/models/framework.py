"""A function of another framework as a gralis Model: the framework runs and differentiates, targets are read here.

F = target(outputs), so dF/dpoint is the pull-back of dtarget/doutputs through the framework: one forward, and one
backward for each target.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gralis.errors import GralisError, ModelError
from gralis.models.failures import report_failure
from gralis.models.fingerprint import of_function
from gralis.models.points import leaves, rebuild, require_floating
from gralis.models.protocol import OutputModel, Points
from gralis.targets import OnTensors, Target, check, describe, select

__all__ = ["FrameworkFunction", "FrameworkModel", "FrameworkPass", "Weights"]

#: dF/doutput for every array of the outputs; None where F does not depend on it.
Weights: TypeAlias = Sequence[NDArray[Any] | None]


class FrameworkPass(Protocol):
    """One run of the framework over a batch."""

    def arrays(self) -> list[NDArray[Any]]:
        """The arrays in the outputs, one after the other."""

    def put(self, parts: list[Any]) -> Any:
        """The outputs with these parts in the places of their arrays."""

    def read(self, target: Callable[[Any], Any], *, gradient: bool) -> tuple[NDArray[Any], Weights]:
        """A target that the user wrote for the framework's arrays, and its derivative by each array of the outputs."""

    def pull(self, weights: Weights) -> list[NDArray[Any]]:
        """sum over outputs of weight * doutput/dpoint, for every leaf of the points."""


class FrameworkFunction(Protocol):
    """A function of a framework, ready to run on batches."""

    @property
    def name(self) -> str:
        """The full name of the function, or the class of the model."""

    @property
    def advice(self) -> str:
        """What to add to the message when a run fails."""

    @property
    def dtype(self) -> torch.dtype | None:
        """The dtype that floating points are cast to; None keeps theirs."""

    def run(self, points: list[NDArray[Any]], form: Points, *, gradient: bool) -> FrameworkPass:
        """Run on these leaves, packed in the form of `form`; `gradient` says whether `pull` will be called."""


@dataclass(frozen=True, eq=False, repr=False)
class FrameworkModel(OutputModel):
    """F of a JAX, TensorFlow or Keras function; made by `gralis.models.jax` and `gralis.models.keras`.

    A function as target receives the framework's arrays; readouts from `gralis.targets` work on tensors as usual.

    Attributes
    ----------
    function : FrameworkFunction
        Runs the function. Compiled programs stay with it when the target is exchanged.
    target : Target, default=None
        What F reads off the outputs.
    source : callable or None, default=None
        The function that the user wrote, for its fingerprint.
    """

    function: FrameworkFunction
    target: Target = None
    source: Callable[..., Any] | None = None

    differentiable = True
    device = torch.device("cpu")

    @property
    def dtype(self) -> torch.dtype | None:
        """The dtype that floating points are cast to; None keeps theirs."""
        return self.function.dtype

    @property
    def name(self) -> str:
        """The full name of the function, or the class of the model."""
        return self.function.name

    def values(self, points: Points, targets: Sequence[Target]) -> list[Tensor]:
        """F of every target, each (rows,), by one forward."""
        run = self._run(points, gradient=False)
        return [self._selected(run, target, points, gradient=False)[0] for target in targets]

    def outputs(self, points: Points) -> Any:
        """What the function returns, its arrays as tensors."""
        run = self._run(points, gradient=False)
        return run.put([_tensor(array) for array in run.arrays()])

    def values_and_gradients(self, points: Points, targets: Sequence[Target]) -> tuple[list[Tensor], list[Points]]:
        """F and dF/dpoint of every target: one forward, and one backward for each."""
        require_floating(points)
        run = self._run(points, gradient=True)
        values, gradients = [], []
        for target in targets:
            value, weights = self._selected(run, target, points, gradient=True)
            with report_failure(f"The backward pass of {self.name}", points):
                pulled = run.pull(weights)
            values.append(value)
            gradients.append(rebuild(points, [_tensor(array) for array in pulled]))
        return values, gradients

    def fingerprint(self) -> str:
        """The name, with a hash of the code and of the parameters that are bound to it."""
        return self.name if self.source is None else of_function(self.source)

    def __repr__(self) -> str:
        return f"{type(self.function).__name__}({self.name}, target={describe(self.target)})"

    def _run(self, points: Points, *, gradient: bool) -> FrameworkPass:
        batch = [_array(leaf, self.dtype) for leaf in leaves(points)]
        with report_failure(f"The model {self.name}", points, self.function.advice):
            return self.function.run(batch, points, gradient=gradient)

    def _selected(
        self, run: FrameworkPass, target: Target, points: Points, *, gradient: bool
    ) -> tuple[Tensor, Weights]:
        target = check(target)
        with report_failure(f"The target {describe(target)}", points):
            if callable(target) and not isinstance(target, OnTensors):
                values, weights = run.read(target, gradient=gradient)
                value = _tensor(values)
            else:
                value, weights = _read(run, target, gradient=gradient)
        rows = leaves(points)[0].shape[0]
        if value.shape != (rows,):
            culprit = f"The target {describe(target)} of" if callable(target) else "The model"
            raise ModelError(
                f"{culprit} {self.name} must return one value for each of {rows} rows. Got shape {tuple(value.shape)}."
            )
        if value.is_complex():
            raise ModelError(f"The model {self.name} returned complex values; give a function as target.")
        if gradient and not value.is_floating_point():
            raise GralisError(
                f"The model {self.name} returns {str(value.dtype).removeprefix('torch.')} values, which have no "
                f'gradient, so there are no rays; plan="endpoint" and plan="values" need values only.'
            )
        return value, weights


def _read(run: FrameworkPass, target: Target, *, gradient: bool) -> tuple[Tensor, Weights]:
    """A target on the outputs as tensors, and its derivative by each of them."""
    tensors = [_tensor(array) for array in run.arrays()]
    floats = [tensor.requires_grad_() for tensor in tensors if gradient and tensor.is_floating_point()]
    with torch.inference_mode(False), torch.set_grad_enabled(gradient):
        value = select(run.put(tensors), target)
        if not value.requires_grad:
            return value.detach(), [None] * len(tensors)
        gradients = iter(torch.autograd.grad(value, floats, torch.ones_like(value), allow_unused=True))
    weights = [next(gradients) if tensor.requires_grad else None for tensor in tensors]
    return value.detach(), [None if weight is None else weight.numpy() for weight in weights]


def _array(leaf: Tensor, dtype: torch.dtype | None) -> NDArray[Any]:
    """The leaf as an array; NumPy has no bfloat16."""
    leaf = leaf.detach().cpu()
    if leaf.is_floating_point():
        leaf = leaf.to(dtype or (torch.float32 if leaf.dtype == torch.bfloat16 else leaf.dtype))
    return leaf.contiguous().numpy()


def _tensor(array: NDArray[Any]) -> Tensor:
    """The array as a tensor with its own memory: arrays of other frameworks may be read-only."""
    return torch.from_numpy(np.array(array, order="C"))
