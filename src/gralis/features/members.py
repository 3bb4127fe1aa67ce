"""Groups by their members: from a mapping of names to masks or indices to labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Shape, describe, to_numpy
from gralis.errors import bad
from gralis.features.labels import Labels, fit

__all__ = ["REST", "by_members"]

REST = "the rest"
_ALLOWED = "a boolean mask shaped like x or its spatial part or, for an x with one axis, a list of its indices"


def by_members(groups: Mapping[Any, object], shape: Shape | None) -> tuple[Labels, list[str]]:
    """The label of every coordinate and the names of the features; the coordinates in no group come last.

    >>> by_members({"left": np.array([True, False, False])}, None)
    (array([0, 1, 1]), ['left', 'the rest'])
    """
    if not groups:
        raise bad("labels", "groups", "a mapping with at least one group", "an empty one")
    masks = [(str(name), _mask(name, members, shape)) for name, members in groups.items()]
    labels = np.full(masks[0][1].shape, len(masks))
    for number, (name, mask) in enumerate(masks):
        if mask.shape != labels.shape:
            raise bad("labels", "groups", "masks of one shape", f"{mask.shape} for {name!r} and {labels.shape}")
        taken = labels[mask]
        if (taken < len(masks)).any():
            other = masks[int(taken.min())][0]
            raise bad("labels", "groups", "groups without common members", f"{name!r} and {other!r}, which overlap")
        labels[mask] = number
    names = [name for name, _ in masks]
    return labels, names if labels.max() < len(masks) else [*names, REST]


def _mask(name: object, members: object, shape: Shape | None) -> NDArray[np.bool_]:
    """Which coordinates belong to a group."""
    try:
        array = to_numpy(members)
    except (TypeError, ValueError, RuntimeError):
        raise bad("labels", "groups", f"for group {name!r} {_ALLOWED}", describe(members)) from None
    if array.dtype == bool and array.any():
        return array if shape is None else np.array(fit(array.astype(np.int64), shape)) > 0
    if array.dtype.kind not in "iu" or array.ndim != 1 or not array.size:
        raise bad("labels", "groups", f"for group {name!r} {_ALLOWED}", describe(members))
    if shape is None or len(shape) != 1:
        got = "no shape" if shape is None else f"shape {shape}"
        raise bad("shape", "groups", "that of an x with one axis if a group is a list of indices", got)
    if not (-shape[0] <= array.min() and array.max() < shape[0]):
        raise bad("labels", "groups", f"indices from 0 to {shape[0] - 1}", f"{describe(members)} for group {name!r}")
    mask = np.zeros(shape, dtype=bool)
    mask[array] = True
    return mask
