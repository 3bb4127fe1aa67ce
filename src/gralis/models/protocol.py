"""What a model is to gralis: two functions on a batch of points, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Protocol, TypeAlias, runtime_checkable

from torch import Tensor

#: A batch of inputs: one tensor (rows, *x.shape), or a tuple / dict of them when x is one.
Points: TypeAlias = Tensor | tuple[Tensor, ...] | Mapping[str, Tensor]


@runtime_checkable
class Model(Protocol):
    """F on a batch: `value` gives (rows,), `value_and_gradient` also dF/dpoint, shaped like the points.

    Rows must not influence each other. Points are torch tensors; an adapter for another framework converts.
    """

    def value(self, points: Points) -> Tensor:
        """F at every row, shape (rows,); no graph is kept."""
        ...

    def value_and_gradient(self, points: Points) -> tuple[Tensor, Points]:
        """F at every row and its gradient, one forward and one backward."""
        ...


@runtime_checkable
class Guarded(Protocol):
    """A model that wants to prepare (eval mode, frozen parameters) and be restored around a whole run."""

    def session(self) -> AbstractContextManager[None]:
        """Entered once around all calls of one explanation; must restore every bit of state, also on error."""
        ...
