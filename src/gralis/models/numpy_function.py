"""Two NumPy functions, F and its gradient, as a gralis Model that computes in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gralis.errors import ModelError, bad
from gralis.models.failures import full_name, report_failure
from gralis.models.fingerprint import of_function
from gralis.models.points import leaves, rebuild, require_floating
from gralis.models.protocol import Points

__all__ = ["FunctionModel", "function"]


def function(value: Callable[[Any], Any], gradient: Callable[[Any], Any], *, name: str | None = None) -> FunctionModel:
    """F = value(points), (rows,), and dF/dpoint = gradient(points), shaped like the points; both on NumPy arrays.

    Parameters
    ----------
    value : callable
        F: float64 points (rows, *shape) -> (rows,). Several inputs arrive as a tuple or dict of arrays.
    gradient : callable
        dF/dpoint, shaped like the points; a tuple or dict of arrays if the points are one.
    name : str or None, default=None
        The name in error messages. None takes the full name of `value`.

    Returns
    -------
    FunctionModel

    Examples
    --------
    >>> model = function(lambda x: (x**2).sum(axis=1), lambda x: 2 * x)
    >>> model.value_and_gradient(torch.tensor([[1.0, 3.0]]))
    (tensor([10.], dtype=torch.float64), tensor([[2., 6.]], dtype=torch.float64))
    """
    for parameter, function in (("value", value), ("gradient", gradient)):
        if not callable(function):
            raise bad(parameter, "models.function", "a function of a NumPy array", f"a {type(function).__name__}")
    if name is not None and not isinstance(name, str):
        raise bad("name", "models.function", "a text or None", f"a {type(name).__name__}")
    return FunctionModel(value, gradient, name or full_name(value))


@dataclass(frozen=True, eq=False)
class FunctionModel:
    """F and its gradient as NumPy functions; made by `gralis.models.function`.

    Attributes
    ----------
    function : callable
        F.
    gradient : callable
        dF/dpoint.
    name : str
        The name in error messages.
    """

    function: Callable[[Any], Any]
    gradient: Callable[[Any], Any]
    name: str

    differentiable = True
    device = torch.device("cpu")
    dtype = torch.float64

    def value(self, points: Points) -> Tensor:
        """F at every row, (rows,), float64."""
        with report_failure(f"The function {self.name}", points):
            values = self.function(numpy_points(points))
        rows = leaves(points)[0].shape[0]
        return tensor_like(values, (rows,), f"The function {self.name}")

    def value_and_gradient(self, points: Points) -> tuple[Tensor, Points]:
        """F at every row and its gradient, by one call of each function."""
        require_floating(points)
        values = self.value(points)
        culprit = f"The gradient of {self.name}"
        with report_failure(culprit, points):
            gradient = self.gradient(numpy_points(points))
        if isinstance(points, Tensor):
            return values, tensor_like(gradient, tuple(points.shape), culprit)
        kind = tuple if isinstance(points, tuple) else dict
        same_keys = kind is tuple or (isinstance(gradient, dict) and set(gradient) == set(points))
        if not isinstance(gradient, kind) or not same_keys or len(gradient) != len(points):
            got = type(gradient).__name__
            raise ModelError(f"{culprit} must return a {kind.__name__} like the points. Got a {got}.")
        parts = list(gradient) if isinstance(gradient, tuple) else [gradient[key] for key in points]
        shaped = zip(parts, leaves(points), strict=True)
        return values, rebuild(points, [tensor_like(part, tuple(leaf.shape), culprit) for part, leaf in shaped])

    def fingerprint(self) -> str:
        """The full names of the two functions, with hashes of their code."""
        return f"{of_function(self.function)}, {of_function(self.gradient)}"


def numpy_points(points: Points) -> Any:
    """A copy of the points as NumPy arrays, floats in float64, in the same form (array, tuple or dict)."""
    arrays: list[Any] = [
        np.array(leaf.detach().cpu().double().numpy() if leaf.is_floating_point() else leaf.detach().cpu().numpy())
        for leaf in leaves(points)
    ]
    return rebuild(points, arrays)


def tensor_like(array: object, shape: tuple[int, ...], culprit: str) -> Tensor:
    """A float64 copy of the array, checked to have the shape."""
    try:
        copy = np.array(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{culprit} must return real numbers. Got a {type(array).__name__} of other things.") from None
    if copy.shape != shape:
        raise ModelError(f"{culprit} must return an array of shape {shape}. Got shape {copy.shape} instead.")
    return torch.from_numpy(copy)
