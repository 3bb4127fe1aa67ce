"""Several questions put to one model: K numbers per row, one forward for all of them, and one backward each."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gralis.errors import GralisError
from gralis.models.blackbox import BlackboxModel
from gralis.models.framework import ForeignModel
from gralis.models.protocol import Model, Points, session_of
from gralis.models.torch_module import TorchModel
from gralis.targets import OnTensors, Target, select

#: A model that reads its number off the outputs with a target, which can be exchanged.
Readable: TypeAlias = TorchModel | BlackboxModel | ForeignModel
READABLE = (TorchModel, BlackboxModel, ForeignModel)


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked of the model at a point: every target, or of each input its own.

    `targets` are asked of every row; `of_inputs` instead holds one target per input, for the rows of that input.
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

    def values(self, points: Points, inputs: NDArray[np.int64]) -> list[Tensor]:
        """F of every target, each (rows,); `inputs` says to which input a row belongs."""
        if len(self.targets) > 1:
            return readable(self.model).values(points, self.targets)
        return [self._at(inputs).value(points)]

    def values_and_gradients(self, points: Points, inputs: NDArray[np.int64]) -> tuple[list[Tensor], list[Points]]:
        """The same and dF/dpoint of every target."""
        if len(self.targets) > 1:
            return readable(self.model).values_and_gradients(points, self.targets)
        value, gradient = self._at(inputs).value_and_gradient(points)
        return [value], [gradient]

    def _at(self, inputs: NDArray[np.int64]) -> Model:
        if not self.of_inputs:
            return self.model
        return replace(readable(self.model), target=OfRows([self.of_inputs[i] for i in inputs]))


class OfRows(OnTensors):
    """outputs -> (rows,), where every row has a target of its own.

    >>> OfRows([0, 2])(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    tensor([1., 6.])
    """

    def __init__(self, targets: Sequence[Target]) -> None:
        self._distinct = list(dict.fromkeys(targets))
        self._place = torch.tensor([self._distinct.index(target) for target in targets])

    def __call__(self, outputs: Any) -> Tensor:
        columns = torch.stack([select(outputs, target) for target in self._distinct], dim=1)
        return columns.gather(1, self._place.to(columns.device)[:, None])[:, 0]


def every_target(model: Model, points: Points) -> tuple[int, ...]:
    """Every output of a classifier, by one forward."""
    logits = _logits(model, points)
    if logits is None or logits.ndim != 2:
        shape = "no tensor" if logits is None else tuple(logits.shape[1:])
        raise GralisError(
            f"target='all' needs outputs of shape (rows, classes). Got {shape} per row; list the targets."
        )
    return tuple(range(logits.shape[1]))


def predicted(model: Model, points: Points) -> int | None:
    """The class with the largest output of the first row; None where the model gives one number."""
    logits = _logits(model, points)
    if logits is None:
        raise GralisError("The model returns no tensor to find the predicted class in; choose a target.")
    if logits.ndim <= 1 or logits.shape[1:] == (1,):
        return None
    if logits.ndim > 2:
        shape = ", ".join(map(str, logits.shape[1:]))
        raise GralisError(f"The model returns ({shape}) numbers per input; choose one: target i,j,...")
    return int(logits[0].argmax())


def _logits(model: Model, points: Points) -> Tensor | None:
    outputs = readable(model).outputs(points)
    logits = getattr(outputs, "logits", outputs)
    return logits if isinstance(logits, Tensor) else None


def readable(model: Model) -> Readable:
    """The model, if its target can be chosen."""
    if not isinstance(model, READABLE):
        raise GralisError(
            f"Several targets need a model that reads them off its outputs; a {type(model).__name__} has one number of "
            f"its own, so explain it once per target."
        )
    return model
