"""Label arrays: integers that say which feature owns each coordinate. They are read, checked and fitted to x here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import TypeAlias, TypeGuard

import numpy as np
import torch
from numpy.typing import NDArray

from gralis.arrays import Shape, describe, real_numbers
from gralis.checks import is_whole
from gralis.errors import GralisError, bad

__all__ = [
    "Labels",
    "as_labels",
    "check_size",
    "count_features",
    "fit",
    "flat",
    "has_several_leaves",
    "renumber",
    "shape_of",
    "shapes_of",
]

Labels: TypeAlias = NDArray[np.int64]

_MOST_COORDINATES = 2**28
_MOST_AXES = 32


def as_labels(labels: object, owner: str) -> Labels:
    """The labels of one leaf as a new int64 array that is not empty and has no negative numbers."""
    allowed = "integers >= 0, shaped like x"
    array = real_numbers(labels, "labels", owner, allowed, kinds="iu").astype(np.int64)
    if array.size == 0:
        raise bad("labels", owner, allowed, f"no labels (shape {array.shape})")
    if (array < 0).any():
        place = tuple(int(i) for i in np.argwhere(array < 0)[0])
        raise bad("labels", owner, allowed, f"{array[place]} at index {place}")
    return array


def count_features(leaves: tuple[Labels, ...]) -> int:
    """n_features = the largest label + 1, provided that no label below it is missing.

    >>> count_features((np.array([0, 3]), np.array([2])))
    Traceback (most recent call last):
        ...
    gralis.errors.GralisError: Label 1 is missing: labels must be 0..3 without gaps; renumber with \
gralis.features.groups(labels, relabel=True).
    """
    present = np.unique(flat(leaves))
    gaps = np.flatnonzero(present != np.arange(present.size))
    if gaps.size:
        advice = "renumber with gralis.features.groups(labels, relabel=True)"
        raise GralisError(f"Label {gaps[0]} is missing: labels must be 0..{present[-1]} without gaps; {advice}.")
    return int(present.size)


def flat(leaves: tuple[Labels, ...]) -> Labels:
    """All labels in one row, leaf after leaf."""
    return np.concatenate([leaf.ravel() for leaf in leaves])


def renumber(leaves: tuple[Labels, ...]) -> tuple[Labels, ...]:
    """The same partition with labels 0, 1, 2, ... in the order of the old ones.

    >>> [leaf.tolist() for leaf in renumber((np.array([7, 2]), np.array([9])))]
    [[1, 0], [2]]
    """
    inverse = np.unique(flat(leaves), return_inverse=True)[1]
    parts = np.split(inverse, np.cumsum([leaf.size for leaf in leaves])[:-1])
    return tuple(part.reshape(leaf.shape) for part, leaf in zip(parts, leaves, strict=True))


def fit(labels: Labels, shape: Shape, owner: str = "groups") -> Labels:
    """The labels repeated over x: they have the shape of x (axes of size 1 repeat), or of its last or first axes only.

    >>> fit(np.array([0, 1]), (3, 2)).tolist()
    [[0, 1], [0, 1], [0, 1]]
    """
    n_axes = labels.ndim
    full = n_axes == len(shape) and all(a in (1, b) for a, b in zip(labels.shape, shape, strict=True))
    partial = 0 < n_axes < len(shape)
    last = partial and labels.shape == shape[-n_axes:]
    first = partial and labels.shape == shape[:n_axes]
    if last and first:
        advice = "They fit its first axes as well as its last: give them in x's full shape."
        raise bad("labels", owner, f"unambiguous for x of shape {shape}", f"labels of shape {labels.shape}", advice)
    if full or last:
        return np.broadcast_to(labels, shape)
    if first:
        return np.broadcast_to(labels.reshape(labels.shape + (1,) * (len(shape) - n_axes)), shape)
    allowed = f"shaped like x, {shape}, or like its spatial part"
    raise bad("labels", owner, allowed, f"labels of shape {labels.shape}")


def has_several_leaves(labels: object) -> TypeGuard[Sequence[object]]:
    """Whether the labels are those of several leaves: a tuple that holds an array or a list, or a list of arrays."""
    if isinstance(labels, tuple):
        return any(getattr(leaf, "ndim", int(isinstance(leaf, tuple | list))) > 0 for leaf in labels)
    arrays = (np.ndarray, torch.Tensor)
    return isinstance(labels, list) and bool(labels) and all(isinstance(a, arrays) and a.ndim > 0 for a in labels)


def shapes_of(shape_or_x: object, owner: str) -> tuple[Shape, ...]:
    """The shape of every leaf, from a shape, an int, an array, or a tuple of these.

    >>> shapes_of((2, 3), "grid"), shapes_of(((2,), np.zeros((3, 1))), "grid"), shapes_of(5, "grid")
    (((2, 3),), ((2,), (3, 1)), ((5,),))
    """
    if isinstance(shape_or_x, np.ndarray | torch.Tensor):
        return (tuple(shape_or_x.shape),)
    if is_whole(shape_or_x, 1):
        shape_or_x = (shape_or_x,)
    if isinstance(shape_or_x, tuple | list):
        if all(is_whole(size, 1) for size in shape_or_x):
            return (check_size(tuple(int(size) for size in shape_or_x), owner),)
        if not any(isinstance(part, Integral) for part in shape_or_x):
            return tuple(shape for part in shape_or_x for shape in shapes_of(part, owner))
    raise bad("shape", owner, "a shape with sizes >= 1, an array, or a tuple of these", describe(shape_or_x))


def check_size(shape: Shape, owner: str) -> Shape:
    """The shape, unless it is so large that it must be a typing error, which would fill the memory."""
    if math.prod(shape) > _MOST_COORDINATES or len(shape) > _MOST_AXES:
        raise bad("shape", owner, f"of at most {_MOST_COORDINATES} numbers on {_MOST_AXES} axes", describe(shape))
    return shape


def shape_of(shape_or_x: object, owner: str) -> Shape:
    """The shape of x, which must be one array with at least one axis."""
    shapes = shapes_of(shape_or_x, owner)
    if len(shapes) != 1 or not shapes[0]:
        raise bad("shape", owner, "the shape of one array with at least one axis", describe(shape_or_x))
    return shapes[0]
