"""The picture of an image input: its pixels, the outline of every region, and where each of them lies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from gralis.arrays import Array, Shape, describe, to_numpy
from gralis.errors import GralisError, bad
from gralis.features.labels import Labels
from gralis.report.outline import outline
from gralis.report.png import data_url
from gralis.views import pixels as on_pixels

if TYPE_CHECKING:
    from gralis.results.explanation import Explanation

_MOST_REGIONS = 400
_FEWEST_PIXELS = 4  # per region, on average
_LEAST_SIDE = 8  # less is a table, not a picture
_FOR, _AGAINST = (214, 96, 77), (67, 147, 195)


def owners(e: Explanation) -> Labels | None:
    """Which features own each pixel, (n_channels, height, width); None where x is not a picture."""
    if e.features.kind in ("columns", "tokens", "windows"):  # however many axes x has
        return None
    try:
        found = on_pixels.owners(e)
    except GralisError:
        return None
    return found if min(found.shape[1:]) >= _LEAST_SIDE else None


def picture(e: Explanation, image: object, owned: Labels) -> dict[str, Any]:
    """What the page draws: regions that can be pointed at, or a heat map where there are too many or they overlap."""
    height, width = owned.shape[1:]
    pixels = _pixels(e.endpoints.x[0] if image is None else image, (height, width), "image")
    found: dict[str, Any] = {"width": width, "height": height, "pixels": data_url(pixels)}
    found["baseline"] = baseline_picture(e, (height, width))
    shared = bool((owned == owned[:1]).all())
    if shared and e.n_features <= _MOST_REGIONS and e.n_features * _FEWEST_PIXELS <= height * width:
        return {**found, "regions": [_region(owned[0] == i) for i in range(e.n_features)]}
    return {**found, "heat": data_url(_heat(on_pixels.on_grid(e.values, owned)))}


def baseline_picture(e: Explanation, shape: Shape) -> str:
    """x', averaged over the baselines, from black to white like x."""
    mean = np.tensordot(e.baseline_weights, e.endpoints.baselines[0].astype(np.float64), 1)
    return data_url(_pixels(mean, shape, "baseline", like=e.endpoints.x[0]))


def places(owned: Labels, n_features: int) -> list[dict[str, float]]:
    """For every region, in shares of the picture: middle, extent and area."""
    height, width = owned.shape[1:]
    found = []
    for i in range(n_features):
        rows, columns = np.nonzero((owned == i).any(0))
        found.append(
            {
                "row": float(rows.mean() + 0.5) / height,
                "column": float(columns.mean() + 0.5) / width,
                "height": float(np.ptp(rows) + 1) / height,
                "width": float(np.ptp(columns) + 1) / width,
                "area": len(rows) / (height * width),
            }
        )
    return found


def _region(inside: NDArray[np.bool_]) -> dict[str, Any]:
    """Its outline, and the pixel deepest inside, where a number or the end of a line can stand."""
    depth = distance_transform_edt(np.pad(inside, 1))
    row, column = np.unravel_index(np.argmax(depth), depth.shape)
    return {"path": outline(inside), "at": [float(column) - 0.5, float(row) - 0.5], "room": float(depth.max())}


def _pixels(image: object, shape: Shape, name: str, like: object = None) -> NDArray[np.uint8]:
    """(height, width, 3) bytes. Whole numbers up to 255 and numbers in [0, 1] are taken as they are, others stretched
    from their smallest to their largest (or those of `like`)."""
    array = _numbers(image, name)
    full = array.shape
    first = 0 if full[1:] == shape else 2
    array = np.moveaxis(array, first, -1) if array.ndim == 3 else array[..., None]
    if array.shape[:2] != shape:
        raise bad(name, "report", f"a picture of {shape[0]} x {shape[1]} pixels, as x has", f"shape {full}")
    low, high = _range(array if like is None else _numbers(like, name))
    array = np.clip((array - low) / (high - low), 0.0, 1.0)
    colours = array[..., :3] if array.shape[2] in (3, 4) else np.repeat(array.mean(2, keepdims=True), 3, axis=2)
    return np.asarray(np.round(255 * colours), dtype=np.uint8)


def _numbers(image: object, name: str) -> Array:
    try:
        array = to_numpy(image).astype(np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise bad(name, "report", "an array of real numbers", describe(image)) from error
    if not np.isfinite(array).all():
        raise bad(name, "report", "finite", "NaN or infinite pixels")
    if array.ndim not in (2, 3):
        raise bad(name, "report", "(height, width), (height, width, 3) or (channels, height, width)", describe(image))
    return array


def _range(array: Array) -> tuple[float, float]:
    """From black to white."""
    low, high = float(array.min()), float(array.max())
    if low >= 0 and high <= 1:
        return 0.0, 1.0
    if low >= 0 and high <= 255 and (array == np.round(array)).all():
        return 0.0, 255.0
    return low, high if high > low else low + 1.0


def _heat(values: Array) -> NDArray[np.uint8]:
    """Red for, blue against, the stronger the less one sees through it."""
    strength = np.abs(values) / (np.abs(values).max() or 1.0)
    colours = np.where((values > 0)[..., None], np.array(_FOR), np.array(_AGAINST))
    return np.concatenate([colours, np.round(230 * strength)[..., None]], axis=2).astype(np.uint8)
