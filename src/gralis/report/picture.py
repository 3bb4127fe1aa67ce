"""The picture of an image input: its pixels, and the outline and the place of every region."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from gralis.arrays import Array, Shape
from gralis.errors import GralisError
from gralis.features.labels import Labels
from gralis.report.outline import outline
from gralis.report.png import data_url
from gralis.results.explanation import Explanation
from gralis.views import pixels as on_pixels
from gralis.views.colours import AGAINST, FOR, red_green_blue

__all__ = ["baseline_picture", "input_pixels", "owners", "picture", "places"]

_MOST_REGIONS = 400
_FEWEST_PIXELS = 4  # per region, on average
_LEAST_SIDE = 8  # pixels; a smaller x is a table, not a picture


def owners(e: Explanation) -> Labels | None:
    """Which features own each pixel, (n_channels, height, width); None if x is not a picture."""
    if e.features.kind in ("columns", "tokens", "windows"):
        return None
    try:
        owned = on_pixels.owners(e.features)
    except GralisError:
        return None
    return owned if min(owned.shape[1:]) >= _LEAST_SIDE else None


def picture(e: Explanation, image: object, owned: Labels) -> dict[str, Any]:
    """What the page draws: regions to point at, or a heat map if there are too many regions or they overlap."""
    height, width = owned.shape[1:]
    pixels = _pixels(e.endpoints.x[0] if image is None else image, (height, width), "image")
    drawn: dict[str, Any] = {"width": width, "height": height, "pixels": data_url(pixels)}
    drawn["baseline"] = baseline_picture(e, (height, width))
    shared = bool((owned == owned[:1]).all())
    if shared and e.n_features <= _MOST_REGIONS and e.n_features * _FEWEST_PIXELS <= height * width:
        return {**drawn, "regions": [_region(owned[0] == i) for i in range(e.n_features)]}
    return {**drawn, "heat": data_url(_heat(on_pixels.on_grid(e.values, owned)))}


def input_pixels(e: Explanation, image: object) -> NDArray[np.uint8] | None:
    """The picture that stands for x, (height, width, 3); None if x is not a picture."""
    owned = owners(e)
    if owned is None:
        return None
    return _pixels(e.endpoints.x[0] if image is None else image, owned.shape[1:], "image")


def baseline_picture(e: Explanation, shape: Shape) -> str:
    """x', averaged over the baselines, with the same black and white as x."""
    mean = np.tensordot(e.baseline_weights, e.endpoints.baselines[0].astype(np.float64), 1)
    return data_url(_pixels(mean, shape, "baseline", like=e.endpoints.x[0].astype(np.float64)))


def places(owned: Labels, n_features: int) -> list[dict[str, float]]:
    """The middle, the extent and the area of every region, in shares of the picture."""
    height, width = owned.shape[1:]
    listed = []
    for i in range(n_features):
        rows, columns = np.nonzero((owned == i).any(0))
        listed.append(
            {
                "row": float(rows.mean() + 0.5) / height,
                "column": float(columns.mean() + 0.5) / width,
                "height": float(np.ptp(rows) + 1) / height,
                "width": float(np.ptp(columns) + 1) / width,
                "area": len(rows) / (height * width),
            }
        )
    return listed


def _region(inside: NDArray[np.bool_]) -> dict[str, Any]:
    """The outline of a region, and its innermost pixel, where a number or the end of a line can stand."""
    depth = distance_transform_edt(np.pad(inside, 1))
    row, column = np.unravel_index(np.argmax(depth), depth.shape)
    return {"path": outline(inside), "at": [float(column) - 0.5, float(row) - 0.5], "room": float(depth.max())}


def _pixels(image: object, shape: Shape, name: str, like: Array | None = None) -> NDArray[np.uint8]:
    """(height, width, 3) bytes, with the range of `image` itself or of `like` from black to white."""
    array = on_pixels.channels_last(image, shape, name, "report")
    low, high = _range(array if like is None else like)
    array = np.clip((array - low) / (high - low), 0.0, 1.0)
    colours = array[..., :3] if array.shape[2] in (3, 4) else np.repeat(array.mean(2, keepdims=True), 3, axis=2)
    return np.asarray(np.round(255 * colours), dtype=np.uint8)


def _range(array: Array) -> tuple[float, float]:
    """The numbers that are shown as black and as white.

    They are 0 and 1 if all numbers lie between, 0 and 255 for whole numbers between, else the least and the largest.
    """
    low, high = float(array.min()), float(array.max())
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if low >= 0 and high <= 255 and (array == np.round(array)).all():
        return 0.0, 255.0
    return low, high if high > low else low + 1.0


def _heat(values: Array) -> NDArray[np.uint8]:
    """Red for, blue against; the larger a value, the more opaque its colour."""
    strength = np.abs(values) / (np.abs(values).max() or 1.0)
    colours = np.where((values > 0)[..., None], np.array(red_green_blue(FOR)), np.array(red_green_blue(AGAINST)))
    return np.concatenate([colours, np.round(230 * strength)[..., None]], axis=2).astype(np.uint8)
