"""A map over the cells of a layer, and its two ways back to the input; both keep the sum of the map."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gralis.arrays import Array, Shape
from gralis.errors import bad
from gralis.features import resolve
from gralis.features.overlap import lengths

__all__ = ["Map", "overlap", "spread"]


@dataclass(frozen=True, eq=False)
class Map:
    """One number per cell of an h x w grid that covers the last two axes of x.

    Parameters
    ----------
    values : array of shape (h, w)
        The number of each cell.
    shape : tuple of int
        The shape of x. Its last two axes are rows and columns.
    layer : str, default=""
        The name of the layer that the map comes from.
    method : str, default=""
        The name of the method that made the map.

    Examples
    --------
    >>> Map(np.array([[1.0, 3.0]]), shape=(3, 2, 4), layer="conv").on(np.array([[0, 0, 0, 1], [0, 0, 0, 1]])).tolist()
    [2.5, 1.5]
    """

    values: Array
    shape: Shape
    layer: str = ""
    method: str = ""

    def __post_init__(self) -> None:
        if self.values.ndim != 2:
            raise bad("values", "Map", "of shape (h, w)", f"shape {self.values.shape}")
        if len(self.shape) < 2:
            raise bad("x", "a map", "an image whose last two axes are rows and columns", f"shape {self.shape}")

    def to_input(self) -> Array:
        """The map as a picture: every cell is spread over the pixels by its bilinear weights.

        The weights of each cell sum to one, so the pixels have the sum of the map. If every cell covers a whole
        number of pixels, this is bilinear upsampling divided by the number of pixels per cell.

        Returns
        -------
        array of shape (H, W)
        """
        rows, columns = (spread(*sizes) for sizes in zip(self.values.shape, self.shape[-2:], strict=True))
        return np.asarray(rows.T @ self.values @ columns)

    def on(self, features: object = None) -> Array:
        """The map on features: each cell gives a feature the share of its area that lies in the feature.

        The features have the sum of the map. Where the channels of a pixel belong to different features, each channel
        gets the same share of the pixel.

        Parameters
        ----------
        features : Features, array of int or None, default=None
            A `Features` value, or labels shaped like x or like its last two axes. None means every coordinate.

        Returns
        -------
        array of shape (n_features,)
        """
        resolved = resolve(features, [self.shape])
        rows, columns = (overlap(*sizes) for sizes in zip(self.values.shape, self.shape[-2:], strict=True))
        pixels = rows.T @ self.values @ columns
        n_channels = int(np.prod(self.shape[:-2]))
        return resolved.collect([np.broadcast_to(pixels / n_channels, self.shape)])

    def __repr__(self) -> str:
        h, w = self.values.shape
        name = f"{self.method or 'map'}{' at ' + self.layer if self.layer else ''}"
        return f"{name}, {h} x {w} cells from {self.values.min():.4g} to {self.values.max():.4g} for x {self.shape}"


def overlap(n_cells: int, n_pixels: int) -> Array:
    """The share of each cell's length that lies in each pixel, (n_cells, n_pixels): rows sum to one.

    >>> overlap(2, 3).round(3).tolist()
    [[0.667, 0.333, 0.0], [0.0, 0.333, 0.667]]
    """
    length = lengths(n_pixels, n_cells).toarray().T
    return np.asarray(length / length.sum(1, keepdims=True))


def spread(n_cells: int, n_pixels: int) -> Array:
    """The share of each cell in each pixel by linear interpolation between cell centres; rows sum to one.

    Beyond the outer centres the interpolation is constant.

    >>> spread(2, 4).tolist()
    [[0.5, 0.375, 0.125, 0.0], [0.0, 0.125, 0.375, 0.5]]
    """
    if n_cells >= n_pixels:  # interpolation would skip cells
        return overlap(n_cells, n_pixels)
    centres = np.clip((np.arange(n_pixels) + 0.5) * n_cells / n_pixels - 0.5, 0, n_cells - 1)
    weights = np.maximum(1 - np.abs(centres - np.arange(n_cells)[:, None]), 0.0)
    return np.asarray(weights / weights.sum(1, keepdims=True))
