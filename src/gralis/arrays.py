"""Types of arrays, and conversion of array-likes of any kind to NumPy arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from gralis.errors import GralisError, bad

__all__ = [
    "LARGEST_OUTPUT",
    "Array",
    "ChannelAxis",
    "Masks",
    "Shape",
    "describe",
    "length",
    "parts_of",
    "plain",
    "real_numbers",
    "to_numpy",
]

Array: TypeAlias = NDArray[np.float64]
Masks: TypeAlias = NDArray[np.bool_]  # (n_coalitions, n_features)
Shape: TypeAlias = tuple[int, ...]
LARGEST_OUTPUT = 1e150  # of an output or a gradient: errors are sums of squares, and those of larger numbers overflow
ChannelAxis: TypeAlias = int | Literal["auto"] | None  # the axis of the channels; None: there are no channels


def to_numpy(values: object) -> NDArray[Any]:
    """Any array-like, or a tensor of any device and dtype, as a NumPy array; bfloat16 becomes float32."""
    if isinstance(values, torch.Tensor):
        if values.is_meta:
            raise GralisError("A tensor on the device 'meta' has a shape but no numbers; load its values first.")
        values = (values if values.layout == torch.strided else values.to_dense()).detach().cpu()
        return np.asarray(values.float() if values.dtype == torch.bfloat16 else values)
    return np.asarray(values)


def plain(values: object) -> NDArray[Any]:
    """A copy that torch accepts: with forward strides, in native byte order, and no wider than float64."""
    array = np.array(to_numpy(values), order="C")
    wide = array.dtype.kind == "f" and array.dtype.itemsize > 8
    return array.astype(np.float64 if wide else array.dtype.newbyteorder("="), copy=False)


def parts_of(values: object) -> tuple[Any, ...]:
    """The parts of a tuple or a dict; anything else is its only part."""
    if isinstance(values, Mapping):
        return tuple(values.values())
    return values if isinstance(values, tuple) else (values,)


def length(value: object) -> int | None:
    """The number of entries of a list or an array; None for text and for everything that has no length."""
    try:
        return None if isinstance(value, str) else len(value)  # type: ignore[arg-type]
    except TypeError:  # an array without axes has the method, but no length
        return None


def describe(value: object) -> str:
    """A value as error messages show it: arrays by shape and dtype, anything else by a short repr."""
    if isinstance(value, np.ndarray | torch.Tensor):
        return f"an array of shape {tuple(value.shape)} and dtype {value.dtype}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def real_numbers(
    values: object, parameter: str, owner: str, allowed: str = "an array of real numbers", kinds: str = "biuf"
) -> NDArray[Any]:
    """The values as an array, if its dtype is one of these kinds; otherwise an error that says what is allowed.

    >>> real_numbers(["a"], "image", "slic")
    Traceback (most recent call last):
        ...
    gralis.errors.GralisError: The 'image' parameter of slic must be an array of real numbers. Got ['a'] (dtype <U1) \
instead.
    """
    try:
        array = to_numpy(values)
    except (TypeError, ValueError, RuntimeError) as error:  # torch refuses a list of tensors with a graph
        raise bad(parameter, owner, allowed, f"{describe(values)} ({error})") from error
    if array.dtype.kind not in kinds:
        dtype = "" if hasattr(values, "dtype") else f" (dtype {array.dtype})"
        raise bad(parameter, owner, allowed, f"{describe(values)}{dtype}")
    return array
