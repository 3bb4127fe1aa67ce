"""A batch of points as a flat list of tensors, and back: one tensor, a tuple or a dict are the same to a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from torch import Tensor

from gralis.errors import GralisError, bad
from gralis.models.protocol import Points


def leaves(points: Points) -> list[Tensor]:
    """The tensors of the points, in order."""
    found: list[object]
    if isinstance(points, Mapping):
        found = list(points.values())
    elif isinstance(points, tuple):
        found = list(points)
    else:
        found = [points]
    tensors = [leaf for leaf in found if isinstance(leaf, Tensor)]
    if not found or len(tensors) < len(found):
        kinds = ", ".join(type(leaf).__name__ for leaf in found) or "nothing"
        raise bad("points", "a model", "a tensor, or a tuple or dict of tensors", kinds)
    return tensors


def rebuild(points: Points, tensors: Sequence[Tensor]) -> Points:
    """The given tensors in the form of `points`: rebuild(p, leaves(p)) is p."""
    if isinstance(points, Mapping):
        return dict(zip(points, tensors, strict=True))
    return tuple(tensors) if isinstance(points, tuple) else tensors[0]


def shapes(points: Points) -> str:
    """The shapes in words, for error sentences: '(8, 3)', or '(8, 3), (8, 5)', or 'a (8, 3), b (8, 5)'."""
    names = [f"{name} " for name in points] if isinstance(points, Mapping) else [""] * len(leaves(points))
    return ", ".join(f"{name}{tuple(leaf.shape)}" for name, leaf in zip(names, leaves(points), strict=True))


def require_floating(points: Points) -> None:
    """A ray is a straight line between two inputs: every leaf must be able to move."""
    for leaf in leaves(points):
        if not leaf.is_floating_point():
            raise GralisError(
                f"An input of dtype {leaf.dtype} cannot move along a ray, so it has no gradient; explain from its "
                "embedding with layer=..., or close over it in a function if it stays constant."
            )
