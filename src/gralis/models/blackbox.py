"""A NumPy function without a gradient (scikit-learn's predict_proba) as a gralis Model: values only, no rays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from gralis.errors import GralisError, ModelError, bad
from gralis.models.failures import full_name, kind, report_failure
from gralis.models.fingerprint import of_function
from gralis.models.function import arrays
from gralis.models.points import leaves
from gralis.models.protocol import Points
from gralis.targets import Target, check, describe, select


def blackbox(fn: Callable[[Any], Any], target: Target = None) -> BlackboxModel:
    """F(point) = target(fn(point)), for a NumPy function (rows, *shape) -> (rows,) or (rows, classes).

    >>> model = blackbox(lambda x: np.stack([x.sum(axis=1), x.prod(axis=1)], axis=1), target=1)
    >>> model.value(torch.tensor([[2.0, 3.0]]))
    tensor([6.], dtype=torch.float64)
    """
    if isinstance(fn, type) or not callable(fn):
        advice = "Of a scikit-learn estimator give the method: blackbox(estimator.predict_proba, target=k)."
        raise bad("fn", "models.blackbox", "a function of a NumPy array", kind(fn), advice)
    return BlackboxModel(fn, check(target, "models.blackbox"))


@dataclass(frozen=True, eq=False, repr=False)
class BlackboxModel:
    """Values without gradients; made by `gralis.models.blackbox`. Targets see the outputs as float64 tensors."""

    fn: Callable[[Any], Any]
    target: Target = None

    differentiable = False
    device = torch.device("cpu")
    dtype = torch.float64

    def value(self, points: Points) -> Tensor:
        """F at every row, (rows,), float64."""
        return self.values(points, (self.target,))[0]

    def values(self, points: Points, targets: Sequence[Target]) -> list[Tensor]:
        """F of every target, each (rows,), float64, by one call."""
        outputs, found = self.outputs(points), []
        rows = leaves(points)[0].shape[0]
        for target in targets:
            with report_failure(f"The target {describe(target)}", points):
                values = select(outputs, target)
            if values.shape[0] != rows:
                raise ModelError(f"The black box {self.name} returned {values.shape[0]} values for {rows} rows.")
            found.append(values.detach())
        return found

    def outputs(self, points: Points) -> Any:
        """What the function returns, as float64 tensors."""
        with report_failure(f"The black box {self.name}", points):
            return self._tensors(self.fn(arrays(points)))

    def value_and_gradient(self, points: Points) -> NoReturn:
        """Always raises: there is no gradient."""
        self.values_and_gradients(points, (self.target,))

    def values_and_gradients(self, points: Points, targets: Sequence[Target]) -> NoReturn:
        """Always raises: there is no gradient."""
        raise GralisError(
            f'The black box {self.name} has no gradient, so there are no rays; use plan="endpoint" or plan="values".'
        )

    @property
    def name(self) -> str:
        """The full name of the function."""
        return full_name(self.fn)

    def fingerprint(self) -> str:
        """The full name of the function, with a hash of its code; what an object behind a method holds is not seen."""
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
                f"The black box {self.name} must return real numbers. Got a {type(outputs).__name__} that is not; "
                "of a classifier explain predict_proba, not predict."
            ) from None
