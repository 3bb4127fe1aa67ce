"""Small pictures of inputs, for the list."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gralis.files.images import Preprocessing
from gralis.report.picture import input_pixels
from gralis.report.png import png
from gralis.results.explanation import Explanation

__all__ = ["shown_image", "thumbnail"]

_SIDE = 72  # pixels


def shown_image(e: Explanation) -> object:
    """The picture behind a normalised input, if the explanation says how it was normalised; else None."""
    preprocessing = Preprocessing.of(e)
    return None if preprocessing is None else preprocessing.shown(e.endpoints.x[0])


def thumbnail(e: Explanation) -> bytes | None:
    """The input as a small PNG, or None if it is not a picture."""
    pixels = input_pixels(e, shown_image(e))
    return None if pixels is None else png(_shrunk(pixels))


def _shrunk(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """At most 72 pixels on each side: the mean over squares."""
    step = max(-(-max(pixels.shape[:2]) // _SIDE), 1)
    height, width = (side // step * step for side in pixels.shape[:2])
    if step == 1 or not height or not width:
        return pixels
    squares = pixels[:height, :width].reshape(height // step, step, width // step, step, 3)
    return np.asarray(np.round(squares.mean((1, 3))), dtype=np.uint8)
