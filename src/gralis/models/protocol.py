"""What a model is to gralis: two functions on a batch of points, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
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


def session_of(model: Model) -> AbstractContextManager[None]:
    """Around all calls of one explanation: `model.session()`, or nothing for a model without one.

    A session prepares (eval mode, frozen parameters), and must restore every bit of state, also on error.
    """
    session = getattr(model, "session", None)
    return session() if callable(session) else nullcontext()  # an attribute of this name may be something else
