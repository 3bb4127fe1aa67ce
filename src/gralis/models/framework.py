"""A model of another framework as a gralis Model: the framework runs and differentiates, targets are read here.

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
from gralis.models.protocol import Points
from gralis.targets import OnTensors, Target, check, describe, select

#: dF/doutput for every array of the outputs; None: F does not depend on it.
Weights: TypeAlias = Sequence[NDArray[Any] | None]


class Pass(Protocol):
    """One run of the framework over a batch."""

    def arrays(self) -> list[NDArray[Any]]:
        """The arrays in the outputs, one after the other."""
        ...

    def put(self, parts: list[Any]) -> Any:
        """The outputs with other things in the places of their arrays."""
        ...

    def read(self, target: Callable[[Any], Any], *, gradient: bool) -> tuple[NDArray[Any], Weights]:
        """The user's own target on the framework's own outputs, and its derivative by each of their arrays."""
        ...

    def pull(self, weights: Weights) -> list[NDArray[Any]]:
        """sum over outputs of weight * doutput/dpoint, for every leaf of the points."""
        ...


class Engine(Protocol):
    """A function of a framework, ready to run on batches."""

    @property
    def name(self) -> str: ...
    @property
    def advice(self) -> str: ...
    @property
    def dtype(self) -> torch.dtype | None: ...
    def run(self, points: list[NDArray[Any]], form: Points, *, gradient: bool) -> Pass: ...


@dataclass(frozen=True, eq=False, repr=False)
class ForeignModel:
    """`value` and `value_and_gradient` of a JAX, TensorFlow or Keras function; made by `gralis.models.jax`, `.keras`.

    A function given as target receives the framework's own arrays; readouts from `gralis.targets` work as ever.
    """

    engine: Engine  # what is compiled stays there when the target is exchanged
    target: Target = None
    source: Callable[..., Any] | None = None  # what was given, for its fingerprint

    differentiable = True
    device = torch.device("cpu")

    @property
    def dtype(self) -> torch.dtype | None:
        """What floating points are cast to; None: they stay as given."""
        return self.engine.dtype

    @property
    def name(self) -> str:
        """The full name of the function, or the class of the model."""
        return self.engine.name

    def value(self, points: Points) -> Tensor:
        """F at every row, (rows,)."""
        return self.values(points, (self.target,))[0]

    def value_and_gradient(self, points: Points) -> tuple[Tensor, Points]:
        """F at every row and dF/dpoint: one forward, one backward."""
        (value,), (gradient,) = self.values_and_gradients(points, (self.target,))
        return value, gradient

    def values(self, points: Points, targets: Sequence[Target]) -> list[Tensor]:
        """F of every target, each (rows,), by one forward."""
        run = self._run(points, gradient=False)
        return [self._selected(run, target, points, gradient=False)[0] for target in targets]

    def outputs(self, points: Points) -> Any:
        """What the function returns, its arrays as tensors."""
        run = self._run(points, gradient=False)
        return run.put([_tensor(array) for array in run.arrays()])

    def values_and_gradients(self, points: Points, targets: Sequence[Target]) -> tuple[list[Tensor], list[Points]]:
        """F and dF/dpoint of every target: one forward, a backward each."""
        require_floating(points)
        run = self._run(points, gradient=True)
        values, gradients = [], []
        for target in targets:
            value, weights = self._selected(run, target, points, gradient=True)
            with report_failure(f"The backward pass of {self.name}", points):
                found = run.pull(weights)
            values.append(value)
            gradients.append(rebuild(points, [_tensor(array) for array in found]))
        return values, gradients

    def fingerprint(self) -> str:
        """The name, with a hash of the code and of the parameters that are bound to it."""
        return self.name if self.source is None else of_function(self.source)

    def __repr__(self) -> str:
        return f"{type(self.engine).__name__}({self.name}, target={describe(self.target)})"

    def _run(self, points: Points, *, gradient: bool) -> Pass:
        batch = [_array(leaf, self.dtype) for leaf in leaves(points)]
        with report_failure(f"The model {self.name}", points, self.engine.advice):
            return self.engine.run(batch, points, gradient=gradient)

    def _selected(self, run: Pass, target: Target, points: Points, *, gradient: bool) -> tuple[Tensor, Weights]:
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


def _read(run: Pass, target: Target, *, gradient: bool) -> tuple[Tensor, Weights]:
    """A target on the outputs as tensors, and its derivative by each of them."""
    tensors = [_tensor(array) for array in run.arrays()]
    floats = [tensor.requires_grad_() for tensor in tensors if gradient and tensor.is_floating_point()]
    with torch.inference_mode(False), torch.set_grad_enabled(gradient):
        value = select(run.put(tensors), target)
        if not value.requires_grad:
            return value.detach(), [None] * len(tensors)
        found = iter(torch.autograd.grad(value, floats, torch.ones_like(value), allow_unused=True))
    by_place = [next(found) if tensor.requires_grad else None for tensor in tensors]
    return value.detach(), [None if weight is None else weight.numpy() for weight in by_place]


def _array(leaf: Tensor, dtype: torch.dtype | None) -> NDArray[Any]:
    """The leaf as an array; NumPy has no bfloat16."""
    own = leaf.detach().cpu()
    if own.is_floating_point():
        own = own.to(dtype or (torch.float32 if own.dtype == torch.bfloat16 else own.dtype))
    return own.contiguous().numpy()


def _tensor(array: NDArray[Any]) -> Tensor:
    """A tensor of its own: arrays of other frameworks may be read-only."""
    return torch.from_numpy(np.array(array, order="C"))
