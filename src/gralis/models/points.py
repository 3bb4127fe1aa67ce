"""A batch of points as a flat list of tensors, and back: points are one tensor, or a tuple or dict of tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Tensor

from gralis.arrays import parts_of
from gralis.errors import GralisError, ModelError, bad
from gralis.models.protocol import Points

__all__ = ["call", "leaves", "rebuild", "require_floating", "require_like", "shapes"]


def leaves(points: Points) -> list[Tensor]:
    """The tensors of the points, in order."""
    parts: Sequence[object] = parts_of(points)
    tensors = [part for part in parts if isinstance(part, Tensor)]
    if not parts or len(tensors) < len(parts):
        kinds = ", ".join(type(part).__name__ for part in parts) or "nothing"
        raise bad("points", "a model", "a tensor, or a tuple or dict of tensors", kinds)
    return tensors


def rebuild(points: Points, tensors: Sequence[Tensor]) -> Points:
    """These tensors in the form of `points`: rebuild(p, leaves(p)) is p."""
    if isinstance(points, Mapping):
        return dict(zip(points, tensors, strict=True))
    return tuple(tensors) if isinstance(points, tuple) else tensors[0]


def shapes(points: Points) -> str:
    """The shapes in words, for error sentences: '(8, 3)', or '(8, 3), (8, 5)', or 'a (8, 3), b (8, 5)'."""
    names = [f"{name} " for name in points] if isinstance(points, Mapping) else [""] * len(leaves(points))
    return ", ".join(f"{name}{tuple(leaf.shape)}" for name, leaf in zip(names, leaves(points), strict=True))


def call(function: Callable[..., Any], points: Any) -> Any:
    """The function at the points: a tuple becomes its positional arguments, a dict its keyword arguments."""
    if isinstance(points, Mapping):
        return function(**points)
    return function(*points) if isinstance(points, tuple) else function(points)


def require_like(gradients: Points, points: Points) -> None:
    """The gradients of a model must have the shapes of the points."""
    if [leaf.shape for leaf in leaves(gradients)] != [leaf.shape for leaf in leaves(points)]:
        raise ModelError(
            f"The model's gradient must be shaped like the points, {shapes(points)}. Got {shapes(gradients)} instead."
        )


def require_floating(points: Points) -> None:
    """A leaf must be floating point to have a gradient; beside such a leaf there may be integers, which jump."""
    if not any(leaf.is_floating_point() for leaf in leaves(points)):
        dtype = leaves(points)[0].dtype
        raise GralisError(
            f"An input of dtype {dtype} cannot move along a ray, so it has no gradient; explain from its embedding "
            "with layer=..., or close over it in a function if it stays constant."
        )
