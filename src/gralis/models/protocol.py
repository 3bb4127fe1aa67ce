"""What gralis needs of a model: two functions on a batch of points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Protocol, Self, TypeAlias, TypeGuard, runtime_checkable

from torch import Tensor

from gralis.targets import Target

__all__ = ["Model", "OutputModel", "Points", "is_model", "is_output_model", "session_of"]

#: A batch of inputs: one tensor (rows, *x.shape), or a tuple or dict of them if x is one.
Points: TypeAlias = Tensor | tuple[Tensor, ...] | Mapping[str, Tensor]


@runtime_checkable
class Model(Protocol):
    """F on a batch of points: `value` returns (rows,), `value_and_gradient` also dF/dpoint, shaped like the points.

    Any object with these two methods can be explained. Rows must not influence each other. Points are torch tensors;
    an adapter for another framework converts them. A model may also have `device` and `dtype`, which say where and in
    which dtype points are built, `session()`, a context manager around all calls of one explanation, and
    `fingerprint()`, a text that tells it apart from other models.
    """

    def value(self, points: Points) -> Tensor:
        """F at every row, shape (rows,); no graph is kept."""

    def value_and_gradient(self, points: Points) -> tuple[Tensor, Points]:
        """F at every row and its gradient, by one forward and one backward."""


@runtime_checkable
class OutputModel(Model, Protocol):
    """A model whose F is read off its outputs with a target, which can be exchanged; several targets share a forward.

    All adapters but `gralis.models.function` make one. An adapter of your own derives from this class: it is a
    dataclass with a field `target`, and defines `outputs`, `values` and `values_and_gradients`.
    """

    @property
    def target(self) -> Target:
        """What F reads off the outputs."""

    def with_target(self, target: Target) -> Self:
        """The same model with another target."""
        return replace(self, target=target)  # type: ignore[type-var]

    def value(self, points: Points) -> Tensor:
        """F at every row, (rows,)."""
        return self.values(points, (self.target,))[0]

    def value_and_gradient(self, points: Points) -> tuple[Tensor, Points]:
        """F at every row and dF/dpoint: one forward, one backward."""
        (value,), (gradient,) = self.values_and_gradients(points, (self.target,))
        return value, gradient

    def outputs(self, points: Points) -> Any:
        """What the model returns at these points, its arrays as tensors."""

    def values(self, points: Points, targets: Sequence[Target]) -> list[Tensor]:
        """F of every target, each (rows,), by one forward."""

    def values_and_gradients(self, points: Points, targets: Sequence[Target]) -> tuple[list[Tensor], list[Points]]:
        """F and dF/dpoint of every target: one forward, and one backward for each."""


def is_model(value: object) -> TypeGuard[Model]:
    """isinstance(value, Model), but quicker: Python looks for every method of a protocol each time."""
    if OutputModel in type(value).__mro__:
        return True
    return hasattr(value, "value_and_gradient") and isinstance(value, Model)


def is_output_model(value: object) -> TypeGuard[OutputModel]:
    """isinstance(value, OutputModel), but quicker."""
    if OutputModel in type(value).__mro__:
        return True
    return hasattr(value, "values_and_gradients") and isinstance(value, OutputModel)


def session_of(model: Model) -> AbstractContextManager[None]:
    """Around all calls of one explanation: `model.session()`, or nothing for a model without one.

    A session prepares the model (eval mode, frozen parameters) and must restore its whole state, also after an error.
    """
    session = getattr(model, "session", None)
    return session() if callable(session) else nullcontext()  # an attribute of this name may be something else
