"""One or several targets of one model: one forward for all of them, and one backward for each."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gralis.errors import GralisError
from gralis.models.protocol import Model, OutputModel, Points, is_output_model, session_of
from gralis.targets import OnTensors, Target, select
from gralis.targets.outputs import logits_of


@dataclass(frozen=True, eq=False)
class TargetedModel:
    """A model together with the targets that are read off its outputs.

    `targets` are read at every row. Instead, `of_inputs` holds one target per input, for the rows of that input.
    """

    model: Model
    targets: tuple[Target, ...] = ()
    of_inputs: tuple[Target, ...] = ()

    @property
    def n_targets(self) -> int:
        return max(len(self.targets), 1)

    def session(self) -> AbstractContextManager[None]:
        """Around all calls of one explanation: the model prepares once, and is restored once."""
        return session_of(self.model)

    def values(self, points: Points, inputs: NDArray[np.int64] | None) -> list[Tensor]:
        """F of every target, each (rows,); `inputs` holds the input that every row belongs to."""
        if len(self.targets) > 1:
            return with_outputs(self.model).values(points, self.targets)
        return [self._at(inputs).value(points)]

    def values_and_gradients(
        self, points: Points, inputs: NDArray[np.int64] | None
    ) -> tuple[list[Tensor], list[Points]]:
        """F and dF/dpoint of every target."""
        if len(self.targets) > 1:
            return with_outputs(self.model).values_and_gradients(points, self.targets)
        value, gradient = self._at(inputs).value_and_gradient(points)
        return [value], [gradient]

    def _at(self, inputs: NDArray[np.int64] | None) -> Model:
        if not self.of_inputs or inputs is None:
            return self.model
        return with_outputs(self.model).with_target(TargetOfRows([self.of_inputs[i] for i in inputs]))


class TargetOfRows(OnTensors):
    """outputs -> (rows,), with one target for every row.

    >>> TargetOfRows([0, 2])(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    tensor([1., 6.])
    """

    def __init__(self, targets: Sequence[Target]) -> None:
        self._distinct = list(dict.fromkeys(targets))
        self._place = torch.tensor([self._distinct.index(target) for target in targets])

    def __call__(self, outputs: Any) -> Tensor:
        columns = torch.stack([select(outputs, target) for target in self._distinct], dim=1)
        return columns.gather(1, self._place.to(columns.device)[:, None])[:, 0]


def every_target(model: Model, points: Points) -> tuple[int, ...]:
    """The number of every output of a classifier, by one forward."""
    logits = _logits(model, points)
    if logits is None or logits.ndim != 2:
        shape = "no tensor" if logits is None else tuple(logits.shape[1:])
        raise GralisError(
            f"target='all' needs outputs of shape (rows, classes). Got {shape} per row; list the targets."
        )
    return tuple(range(logits.shape[1]))


def predicted(model: Model, points: Points) -> int | None:
    """The class with the largest output in the first row; None if the model returns one number per row."""
    logits = _logits(model, points)
    if logits is None:
        raise GralisError("The model returns no tensor to read the predicted class from; choose a target.")
    if logits.ndim <= 1 or logits.shape[1:] == (1,):
        return None
    if logits.ndim > 2:
        shape = ", ".join(map(str, logits.shape[1:]))
        raise GralisError(f"The model returns ({shape}) numbers per input; choose one: target i,j,...")
    return int(logits[0].argmax())


def _logits(model: Model, points: Points) -> Tensor | None:
    outputs = with_outputs(model).outputs(points)
    logits = logits_of(outputs)
    return logits if isinstance(logits, Tensor) else None


def with_outputs(model: Model) -> OutputModel:
    """The model itself, if its target can be chosen; otherwise an error."""
    if not is_output_model(model):
        raise GralisError(
            f"Several targets need a model that reads them off its outputs; a {type(model).__name__} returns a single "
            f"number per row, so explain it once per target."
        )
    return model
