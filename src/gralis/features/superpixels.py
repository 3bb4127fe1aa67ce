"""Superpixels: an image cut into connected regions of similar colour (SLIC of scikit-image)."""

from __future__ import annotations

import numpy as np

from gralis.arrays import ChannelAxis, Shape, real_numbers
from gralis.checks import is_whole, non_negative, positive, whole
from gralis.errors import GralisError, bad
from gralis.features.labels import Labels

__all__ = ["segment"]


def segment(
    image: object, n_segments: int, compactness: float, sigma: float, channel_axis: ChannelAxis
) -> tuple[Labels, int | None]:
    """The region of every pixel, numbered 0, 1, 2, ... and shaped like the spatial axes, and the channel axis.

    >>> black_and_white = np.repeat([[0, 0, 0, 0, 1, 1, 1, 1]], 4, axis=0)
    >>> segment(black_and_white, 2, 1.0, 0.0, "auto")[0][0].tolist()
    [0, 0, 0, 0, 1, 1, 1, 1]
    """
    whole(n_segments, "n_segments", 1, "slic")
    positive(compactness, "compactness", "slic")
    non_negative(sigma, "sigma", "slic")
    pixels = real_numbers(image, "image", "slic")
    axis = _channel_axis(pixels.shape, channel_axis)
    spatial = tuple(size for i, size in enumerate(pixels.shape) if i != axis)
    if len(spatial) not in (2, 3) or not pixels.size:
        raise bad("image", "slic", "an image with two (or three) spatial axes", f"shape {pixels.shape}")
    if not np.isfinite(pixels).all():
        raise bad("image", "slic", "finite", "NaN or infinite pixels")
    try:
        from skimage.segmentation import slic  # here, because scikit-image is an extra
    except ImportError as error:
        raise GralisError("slic needs scikit-image: pip install gralis[image].") from error
    # Stretched in float64, as newer versions of scikit-image do, so that regions depend on neither dtype nor version.
    pixels = pixels.astype(np.float64)
    pixels = (pixels - pixels.min()) / (np.ptp(pixels) or 1.0)
    pixels = pixels[..., None] if axis is None else np.moveaxis(pixels, axis, -1)
    # Lab runs to 100 and grey to 1: without the scale the default compactness would cut a grey image into squares.
    scale = 1 if pixels.shape[-1] == 3 else 100
    regions = slic(pixels, n_segments, compactness / scale, sigma=sigma, start_label=0, channel_axis=-1)
    return np.unique(regions, return_inverse=True)[1].reshape(spatial), axis


def _channel_axis(shape: Shape, axis: ChannelAxis) -> int | None:
    if axis is None or (isinstance(axis, str) and axis == "auto" and len(shape) <= 2):
        return None
    if isinstance(axis, str) and axis == "auto":
        ends = [i for i in (0, len(shape) - 1) if shape[i] in (1, 3, 4)]
        if len(ends) == 1:
            return ends[0]
        allowed = "given unless exactly one of the first and last axes has size 1, 3 or 4"
        raise bad("channel_axis", "slic", allowed, f"'auto' for shape {shape}", "None means no channels.")
    if not is_whole(axis, -len(shape), len(shape) - 1):
        raise bad("channel_axis", "slic", f"'auto', None or an axis of shape {shape}", repr(axis))
    return axis % len(shape)
