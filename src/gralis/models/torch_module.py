"""A torch module, or a function on batch tensors, as a gralis Model: one forward, one backward, nothing left behind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from gralis.errors import ModelError, NoGradientError, bad
from gralis.models.device_map import input_device, is_loaded
from gralis.models.failures import class_of, full_name, kind, report_failure
from gralis.models.fingerprint import of_function, of_module
from gralis.models.frozen import frozen
from gralis.models.points import call, leaves, rebuild, require_floating
from gralis.models.protocol import OutputModel, Points
from gralis.targets import Target, check, describe, select

__all__ = ["TorchModel", "torch_model"]


def torch_model(
    module: Callable[..., Any],
    target: Target = None,
    *,
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> TorchModel:
    """F(point) = target(module(point)), for a torch.nn.Module or a function on batch tensors.

    Parameters
    ----------
    module : torch.nn.Module or callable
        Maps a batch of points (rows, *shape) to (rows,) or (rows, classes, ...). Several inputs are passed as
        positional arguments if x is a tuple, and as keyword arguments if x is a dict. The module is evaluated in eval
        mode and put back afterwards.
    target : int, tuple of int, callable or None, default=None
        What F reads off the outputs: None if the module returns one number per row, otherwise an index, a readout from
        `gralis.targets`, or a function that receives what the module returns.
    device : torch.device, str or None, default=None
        Where points are evaluated. None takes the device of the module's parameters. The module itself is never moved.
    dtype : torch.dtype or None, default=None
        The floating dtype that points are cast to. None takes the dtype of the module's parameters.

    Returns
    -------
    TorchModel

    Examples
    --------
    >>> model = torch_model(lambda x: x**2, target=1)
    >>> model.value_and_gradient(torch.tensor([[1.0, 3.0]]))
    (tensor([9.]), tensor([[0., 6.]]))
    """
    if isinstance(module, type) or not callable(module):
        raise bad("module", "models.torch", "a torch.nn.Module or a function on batch tensors", kind(module))
    owner = module if isinstance(module, nn.Module) else getattr(module, "__self__", None)
    if isinstance(owner, nn.Module) and not is_loaded(owner):
        raise bad("module", "models.torch", "loaded", "a module on the device 'meta', which has no numbers")
    if isinstance(owner, nn.Module) and any(map(is_lazy, (*owner.parameters(), *owner.buffers()))):
        advice = "Call it once with a batch: lazy modules such as LazyLinear take their shapes from it."
        raise bad("module", "models.torch", "initialized", "a module with parameters that have no shape yet", advice)
    if not any(dtype is each for each in (None, torch.float16, torch.bfloat16, torch.float32, torch.float64)):
        raise bad("dtype", "models.torch", "None or a floating torch.dtype of 16 to 64 bits", repr(dtype))
    return TorchModel(module, check(target, "models.torch"), None if device is None else _available(device), dtype)


def _available(device: torch.device | str) -> torch.device:
    """The device, if this machine and this build of torch have it."""
    try:
        place = torch.device(device)
    except (RuntimeError, TypeError, ValueError, OverflowError):
        allowed = "None or a torch device such as 'cpu' or 'cuda:0'"
        raise bad("device", "models.torch", allowed, repr(device)) from None
    try:
        return torch.empty(0, device=place).device
    except (RuntimeError, TypeError, AssertionError, NotImplementedError) as error:
        why = (str(error).strip().splitlines() or ["no reason given"])[0].rstrip(".")
        advice = "Leave device= out to compute where the model is, or use device='cpu'."
        raise bad("device", "explain", f"one that is here ({why})", repr(str(place)), advice) from None


@dataclass(frozen=True, eq=False, repr=False)
class TorchModel(OutputModel):
    """F of a torch module or function; made by `gralis.models.torch`.

    Every call, and a `session` around many of them, runs in eval mode with frozen parameters and restores all flags
    afterwards. It installs no hooks, writes no parameter `.grad`, draws no random numbers and does not modify the
    points.

    Attributes
    ----------
    module : torch.nn.Module or callable
        What is evaluated.
    target : Target, default=None
        What F reads off the outputs.
    points_device : torch.device or None, default=None
        Where points are evaluated; None takes the device of the parameters.
    points_dtype : torch.dtype or None, default=None
        The dtype that floating points are cast to; None takes that of the parameters.
    """

    module: Callable[..., Any]
    target: Target = None
    points_device: torch.device | None = None
    points_dtype: torch.dtype | None = None

    differentiable = True

    def values(self, points: Points, targets: Sequence[Target]) -> list[Tensor]:
        """F of every target, each (rows,), by one forward."""
        with self.session(), torch.inference_mode(False), torch.no_grad():
            outputs = self._outputs(self._copies(points))
            return [self._selected(outputs, target, points).detach() for target in targets]

    def outputs(self, points: Points) -> Any:
        """What the module returns for the points, without a graph."""
        with self.session(), torch.inference_mode(False), torch.no_grad():
            return self._outputs(self._copies(points))

    def values_and_gradients(self, points: Points, targets: Sequence[Target]) -> tuple[list[Tensor], list[Points]]:
        """F and dF/dpoint of every target: one forward, and one backward for each.

        Rows are independent, so the gradient of the sum over rows holds the gradient of each row.
        """
        require_floating(points)
        values, gradients = [], []
        with self.session(), torch.inference_mode(False), torch.enable_grad():
            inputs = [self._placed(leaf, copy=leaf.is_inference()) for leaf in leaves(points)]
            for leaf in inputs:
                leaf.requires_grad_(leaf.is_floating_point())
            # A leaf may not be written in place and still have a gradient; its clone may (first layer ReLU(inplace)).
            outputs = self._outputs(rebuild(points, [leaf.clone() for leaf in inputs]))
            for number, target in enumerate(targets, start=1):
                value = self._selected(outputs, target, points)
                gradients.append(self._backward(value, inputs, points, keep=number < len(targets)))
                values.append(value.detach())
        return values, gradients

    def _backward(self, value: Tensor, inputs: list[Tensor], points: Points, *, keep: bool) -> Points:
        """dvalue/dpoint; `keep` keeps the graph for the next target."""
        if not value.requires_grad or self._is_quantised():
            raise self._detached()
        with report_failure(f"The backward pass of {self.name}", points):
            moving = [leaf for leaf in inputs if leaf.requires_grad]  # integers jump
            gradients: tuple[Tensor | None, ...] = torch.autograd.grad(
                value, moving, torch.ones_like(value), allow_unused=True, retain_graph=keep
            )
        if all(gradient is None for gradient in gradients):
            raise self._detached()
        of_leaf = dict(zip(map(id, moving), gradients, strict=True))
        found = [(leaf, of_leaf.get(id(leaf))) for leaf in inputs]
        zero = [torch.zeros(leaf.shape, dtype=value.dtype, device=leaf.device) if g is None else g for leaf, g in found]
        return rebuild(points, zero)

    def session(self) -> AbstractContextManager[None]:
        """Eval mode and frozen parameters until the last open session of the module ends; warns if it was training."""
        return nullcontext() if self._owner is None else frozen(self._owner)

    @property
    def device(self) -> torch.device:
        """Where points are evaluated."""
        return self.points_device or self._parameter_device() or torch.device("cpu")

    @property
    def dtype(self) -> torch.dtype | None:
        """The dtype that floating points are cast to; None keeps theirs."""
        if self.points_dtype is not None or self._owner is None:
            return self.points_dtype
        return next((p.dtype for p in self._owner.parameters() if p.is_floating_point()), None)

    @property
    def name(self) -> str:
        """The class of the module, or the name of the function."""
        if isinstance(self.module, nn.Module):
            return class_of(self.module)
        return full_name(self.module)

    def fingerprint(self) -> str:
        """A sha256 of the structure and state of a module; for a function its full name with a hash of its code."""
        if self._owner is None:
            return of_function(self.module)
        whole = of_module(self._owner)
        return whole if self._owner is self.module else f"{whole} {self.name}"

    def __repr__(self) -> str:
        return f"TorchModel({self.name}, target={describe(self.target)})"

    @property
    def _owner(self) -> nn.Module | None:
        """The module whose state a call depends on: the module, or the one a bound method belongs to."""
        owner = self.module if isinstance(self.module, nn.Module) else getattr(self.module, "__self__", None)
        return owner if isinstance(owner, nn.Module) else None

    def _parameter_device(self) -> torch.device | None:
        return None if self._owner is None else input_device(self._owner)

    def _placed(self, leaf: Tensor, *, copy: bool) -> Tensor:
        """The leaf on the device and in the dtype of the model, outside any graph; integers keep their dtype."""
        dtype = (self.dtype or leaf.dtype) if leaf.is_floating_point() else leaf.dtype
        device = self.points_device or self._parameter_device() or leaf.device
        return leaf.detach().to(device=device, dtype=dtype, copy=copy)

    def _copies(self, points: Points) -> Points:
        """A copy of the points, because the module may work in place."""
        return rebuild(points, [self._placed(leaf, copy=True) for leaf in leaves(points)])

    def _outputs(self, points: Points) -> Any:
        adapters = "models.function or models.blackbox, one of JAX or Keras into models.jax or models.keras"
        advice = "" if self._owner is not None else f"(A NumPy function goes into {adapters}.)"
        with report_failure(f"The model {self.name}", points, advice):
            return call(self.module, points)

    def _selected(self, outputs: Any, target: Target, points: Points) -> Tensor:
        """The target of the outputs, checked to be one real floating number per row."""
        with report_failure(f"The target {describe(target)}", points):
            values = select(outputs, target)
        rows = leaves(points)[0].shape[0]
        if values.shape[0] != rows:
            raise ModelError(f"The model {self.name} returned {values.shape[0]} values for {rows} rows.")
        if values.is_complex():
            raise ModelError(f"The model {self.name} returned complex values; give a function as target.")
        return values if values.is_floating_point() else values.to(torch.get_default_dtype())

    def _is_quantised(self) -> bool:
        """Whether a part of the module computes with whole numbers; torch would return gradients that are wrong."""
        parts = () if self._owner is None else self._owner.modules()
        return any(".quantized." in f"{type(part).__module__}." for part in parts)

    def _detached(self) -> NoGradientError:
        return NoGradientError(
            f"The output of {self.name} is detached from its input (.detach(), argmax, NumPy, no_grad or quantised "
            'layers inside?), so there are no rays; plan="endpoint" and plan="values" need values only.'
        )
