"""A NumPy function without a gradient (scikit-learn's predict_proba) as a gralis Model: values only, no rays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from gralis.errors import ModelError, NoGradientError, bad
from gralis.models.failures import full_name, kind, report_failure
from gralis.models.fingerprint import of_function
from gralis.models.numpy_function import numpy_points
from gralis.models.points import leaves
from gralis.models.protocol import OutputModel, Points
from gralis.targets import Target, check, describe, select

__all__ = ["BlackboxModel", "blackbox"]


def blackbox(fn: Callable[[Any], Any], target: Target = None) -> BlackboxModel:
    """F(point) = target(fn(point)), for a NumPy function (rows, *shape) -> (rows,) or (rows, classes).

    A black box has no gradient, so there are no rays: use plan="values" or plan="endpoint".

    Parameters
    ----------
    fn : callable
        A function of a NumPy array in float64, such as `estimator.predict_proba`; several inputs arrive as a tuple or
        dict of arrays.
    target : int, tuple of int, callable or None, default=None
        What F reads off the outputs: None if fn returns one number per row, otherwise an index, a readout from
        `gralis.targets`, or a function that receives the outputs as float64 tensors.

    Returns
    -------
    BlackboxModel

    Examples
    --------
    >>> model = blackbox(lambda x: np.stack([x.sum(axis=1), x.prod(axis=1)], axis=1), target=1)
    >>> model.value(torch.tensor([[2.0, 3.0]]))
    tensor([6.], dtype=torch.float64)
    """
    if isinstance(fn, type) or not callable(fn):
        advice = "For a scikit-learn estimator pass the method: blackbox(estimator.predict_proba, target=k)."
        raise bad("fn", "models.blackbox", "a function of a NumPy array", kind(fn), advice)
    return BlackboxModel(fn, check(target, "models.blackbox"))


@dataclass(frozen=True, eq=False, repr=False)
class BlackboxModel(OutputModel):
    """F without a gradient; made by `gralis.models.blackbox`.

    Attributes
    ----------
    fn : callable
        The NumPy function.
    target : Target, default=None
        What F reads off the outputs, which it receives as float64 tensors.
    """

    fn: Callable[[Any], Any]
    target: Target = None

    differentiable = False
    device = torch.device("cpu")
    dtype = torch.float64

    def values(self, points: Points, targets: Sequence[Target]) -> list[Tensor]:
        """F of every target, each (rows,), float64, by one call."""
        outputs, values = self.outputs(points), []
        rows = leaves(points)[0].shape[0]
        for target in targets:
            with report_failure(f"The target {describe(target)}", points):
                value = select(outputs, target)
            if value.shape[0] != rows:
                raise ModelError(f"The black box {self.name} returned {value.shape[0]} values for {rows} rows.")
            values.append(value.detach())
        return values

    def outputs(self, points: Points) -> Any:
        """What the function returns, as float64 tensors."""
        with report_failure(f"The black box {self.name}", points):
            return self._tensors(self.fn(numpy_points(points)))

    def values_and_gradients(self, points: Points, targets: Sequence[Target]) -> NoReturn:
        """Always raises: there is no gradient."""
        raise NoGradientError(
            f'The black box {self.name} has no gradient, so there are no rays; use plan="endpoint" or plan="values".'
        )

    @property
    def name(self) -> str:
        """The full name of the function."""
        return full_name(self.fn)

    def fingerprint(self) -> str:
        """The full name of the function, with a hash of its code; the state of an object behind it is not seen."""
        return of_function(self.fn)

    def __repr__(self) -> str:
        return f"BlackboxModel({self.name}, target={describe(self.target)})"

    def _tensors(self, outputs: Any) -> Any:
        """Arrays and lists of numbers as float64 tensors, also inside a list, tuple or dict (multi-output trees)."""
        if isinstance(outputs, Mapping):
            return {key: self._tensors(part) for key, part in outputs.items()}
        if isinstance(outputs, tuple | list) and not all(isinstance(part, Real) for part in outputs):
            return [self._tensors(part) for part in outputs]
        if isinstance(outputs, Tensor):
            return outputs.detach().cpu().double()
        try:
            return torch.from_numpy(np.array(outputs, dtype=np.float64))
        except (TypeError, ValueError):
            raise ModelError(
                f"The black box {self.name} must return real numbers. Got a {type(outputs).__name__} of other things; "
                "for a classifier explain predict_proba, not predict."
            ) from None
