"""Array types, and array-likes of any kind as NumPy arrays."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Masks: TypeAlias = NDArray[np.bool_]  # (n_coalitions, n_features)
Shape: TypeAlias = tuple[int, ...]


def to_numpy(values: object) -> NDArray[Any]:
    """Any array-like as a NumPy array, a tensor of any device or dtype included."""
    if isinstance(values, torch.Tensor):
        values = values.detach().cpu()
        return np.asarray(values.float() if values.dtype == torch.bfloat16 else values)
    return np.asarray(values)


def plain(values: object) -> NDArray[Any]:
    """A copy that torch can take as it is: forward strides, native byte order, no wider than float64."""
    array = np.array(to_numpy(values), order="C")
    wide = array.dtype.kind == "f" and array.dtype.itemsize > 8
    return array.astype(np.float64 if wide else array.dtype.newbyteorder("="), copy=False)


def length(value: object) -> int | None:
    """How many entries a list or an array has; None for text and whatever has no length."""
    try:
        return None if isinstance(value, str) else len(value)  # type: ignore[arg-type]
    except TypeError:  # arrays without axes have the method, but no length
        return None


def describe(value: object) -> str:
    """A value in an error sentence: arrays by shape and dtype, the rest by a short repr."""
    if isinstance(value, np.ndarray | torch.Tensor):
        return f"an array of shape {tuple(value.shape)} and dtype {value.dtype}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
