"""From one partition to another by area: M[t, s] = the share of region s that lies in region t; columns sum to one.

Attributions that are mapped by M keep their sum. The partitions may have different resolutions, such as the cells of a
layer and the pixels of the input: both are stretched over the same plane.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, kron

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.features.features import Features
from gralis.features.labels import flat

__all__ = ["lengths", "overlap", "plane"]

_FEW_CHANNELS = 4


def overlap(source: Features, target: Features) -> Array:
    """M[t, s] = the share of feature s of `source` that lies in feature t of `target`.

    Parameters
    ----------
    source, target : Features
        Two partitions of the same input, perhaps at different resolutions.

    Returns
    -------
    array of shape (target.n_features, source.n_features)

    Examples
    --------
    >>> from gralis.features import grid
    >>> overlap(grid((1, 3), (1, 1)), grid((1, 2), (1, 1)))  # three cells over two
    array([[1. , 0.5, 0. ],
           [0. , 0.5, 1. ]])
    """
    source_cells, target_cells = _planes(source, target)
    area = csr_array(np.ones((1, 1)))
    for n_fine, n_coarse in zip(target_cells.shape, source_cells.shape, strict=True):
        area = csr_array(kron(area, lengths(n_fine, n_coarse), format="csr"))  # (target cells, source cells)
    shared = _members(target_cells, target.n_features).T @ area @ _members(source_cells, source.n_features)
    areas = np.asarray(shared.todense(), dtype=np.float64)
    return np.asarray(areas / areas.sum(0))


def _planes(source: Features, target: Features) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
    """The labels of both over the same axes: over all axes if the shapes agree, else without the channels."""
    if source.shapes == target.shapes:
        return flat(source.labels), flat(target.labels)
    planes = plane(source), plane(target)
    if planes[0].ndim != planes[1].ndim:
        raise GralisError(
            f"{source!r} and {target!r} cannot be mapped onto each other: one has {planes[0].ndim} spatial axes, the "
            f"other {planes[1].ndim}; give levels over the same axes, or a common partition with on=..."
        )
    return planes


def plane(features: Features) -> NDArray[np.integer]:
    """The labels without the channel axis, first or last, over which they must not vary: (channels, h, w) -> (h, w)."""
    labels = features.labels[0]
    if len(features.labels) > 1:
        raise GralisError(f"{features!r} cannot be mapped to common features: it covers {len(features.labels)} inputs.")
    if labels.ndim < 3:
        return labels
    spatial = features.kind != "channels"
    if spatial and (labels == labels[:1]).all():
        return np.asarray(labels[0])
    if spatial and labels.shape[-1] <= _FEW_CHANNELS and (labels == labels[..., :1]).all():
        return np.asarray(labels[..., 0])
    raise GralisError(
        f"{features!r} cannot be mapped to common features: its regions differ between channels, so they have no place "
        f"in the input; use spatial cells (features.grid) for that level."
    )


def lengths(n_fine: int, n_coarse: int) -> csr_array:
    """The lengths in which n_fine and n_coarse equal intervals of [0, 1] intersect: (n_fine, n_coarse)."""
    fine, coarse = np.arange(n_fine + 1) / n_fine, np.arange(n_coarse + 1) / n_coarse
    first = np.searchsorted(coarse, fine[:-1], side="right") - 1
    last = np.minimum(np.searchsorted(coarse, fine[1:], side="left") - 1, n_coarse - 1)
    count = last - first + 1
    row = np.repeat(np.arange(n_fine), count)
    column = np.concatenate([np.arange(a, b + 1) for a, b in zip(first, last, strict=True)])
    length = np.minimum(fine[row + 1], coarse[column + 1]) - np.maximum(fine[row], coarse[column])
    return csr_array(coo_array((np.maximum(length, 0.0), (row, column)), shape=(n_fine, n_coarse)))


def _members(labels: NDArray[np.integer], n_features: int) -> csr_array:
    """1 where a cell belongs to a feature, (cells, n_features)."""
    places = np.arange(labels.size)
    return csr_array((np.ones(labels.size), (places, labels.ravel())), shape=(labels.size, n_features))
