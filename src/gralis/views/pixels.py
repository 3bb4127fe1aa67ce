"""Features on the pixels of a picture: which feature owns which pixel, and the values of the features there."""

from __future__ import annotations

import numpy as np

from gralis.arrays import Array, Shape, real_numbers
from gralis.errors import bad
from gralis.features import Features
from gralis.features.labels import Labels

__all__ = ["on_grid", "owners"]


def owners(features: Features) -> Labels:
    """Which features own each pixel, (n_channels, height, width)."""
    shapes = features.shapes
    if len(shapes) == 1 and len(shapes[0]) == 2:
        return features.labels[0][None]
    axis = _channel_axis(shapes[0], features.labels[0]) if len(shapes) == 1 and len(shapes[0]) == 3 else None
    if axis is None:
        allowed = "'bars' unless x is one image (height, width), (channels, height, width) or (height, width, channels)"
        raise bad("kind", "plot", allowed, f"'heatmap' for x of shape {' and '.join(map(str, shapes))}")
    return np.moveaxis(features.labels[0], axis, 0)


def _channel_axis(shape: Shape, labels: Labels) -> int | None:
    """The first or last axis if its size is 1, 3 or 4; if both qualify, the one along which features do not change."""
    ends = [axis for axis in (0, 2) if shape[axis] in (1, 3, 4)]
    if len(ends) == 1:
        return ends[0]
    shared = [axis for axis in (0, 2) if (labels == labels.take([0], axis)).all()]
    return next(iter(shared or ends), None)


def channels_last(image: object, shape: Shape, parameter: str, owner: str) -> Array:
    """A picture of these rows and columns that the user gave, checked: (height, width, channels)."""
    pixels = real_numbers(image, parameter, owner).astype(np.float64)
    full = pixels.shape
    if pixels.ndim == 2:
        pixels = pixels[..., None]
    elif full[1:] == shape:
        pixels = np.moveaxis(pixels, 0, -1)
    if pixels.ndim != 3 or pixels.shape[:2] != shape:
        raise bad(parameter, owner, f"a picture of {shape[0]} x {shape[1]} pixels, as x has", f"shape {full}")
    if not np.isfinite(pixels).all():
        raise bad(parameter, owner, "finite", "NaN or infinite pixels")
    return pixels


def on_grid(values: Array, owned: Labels) -> Array:
    """The sum over the features that own each pixel, in any of its channels; each feature counts once."""
    owned = np.sort(owned, axis=0)
    new = np.concatenate([np.ones_like(owned[:1], dtype=bool), np.diff(owned, axis=0) != 0])
    return np.asarray(np.where(new, values[owned], 0.0).sum(0))
