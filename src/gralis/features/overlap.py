"""From one partition to another by area: M[t, s] = the share of region s that lies in region t; columns sum to one.

Attributions that are mapped by M keep their sum. The partitions may have different resolutions, such as the cells of a
layer and the pixels of the input: both are stretched over the same plane. Features without a place in the input, such
as channels, dense units, attention heads and class tokens, have columns of zeros; `carried` gives each its own row.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, kron

from gralis.arrays import Array, to_numpy
from gralis.errors import GralisError, bad
from gralis.features.features import Features
from gralis.features.labels import flat

__all__ = ["carried", "checked_shares", "lengths", "overlap", "plane"]

_FEW_CHANNELS = 4
_WITHOUT_PLACE = ("channels", "heads")
_SPATIAL = ("grid", "slic", "windows")
_ADVICE = (
    "say where it lies with features.patches (tokens of an image), features.tokens (positions of a text), "
    "features.grid (spatial cells), Features.at (other cells) or a matrix of shares"
)


def overlap(source: Features, target: Features, *, at_layer: bool = False) -> Array:
    """M[t, s] = the share of feature s of `source` that lies in feature t of `target`.

    Parameters
    ----------
    source, target : Features
        Two partitions of the same input, perhaps at different resolutions.
    at_layer : bool, default=False
        Whether `source` divides the output of a layer. Its coordinates are then not those of the input, even if their
        number is the same, and its features need a place: `patches`, `tokens`, `grid` or `Features.at` say which.

    Returns
    -------
    array of shape (target.n_features, source.n_features)
        Every column sums to one, or to zero if the feature has no place in the input.

    Examples
    --------
    >>> from gralis.features import grid
    >>> overlap(grid((1, 3), (1, 1)), grid((1, 2), (1, 1)))  # three cells over two
    array([[1. , 0.5, 0. ],
           [0. , 0.5, 1. ]])
    """
    if not at_layer and source.shapes == target.shapes:
        return _by_area(
            _members(flat(source.labels), source.n_features), _members(flat(target.labels), target.n_features)
        )
    if at_layer and _without_place(source):
        return np.zeros((target.n_features, source.n_features))
    members, sides = _cells(source)
    cells = _over_positions(plane(target), source.kind)
    if len(sides) != cells.ndim or (source.kind == "tokens" and sides != cells.shape):
        raise GralisError(
            f"{source!r} and {target!r} cannot be mapped onto each other: one has the spatial axes {sides}, the other "
            f"{cells.shape}; {_ADVICE}."
        )
    undeclared = "place" not in source.meta and source.kind not in ("tokens", "windows")
    if at_layer and undeclared and source.labels[0].ndim == 2 and (source.kind != "grid" or target.labels[0].ndim != 2):
        raise GralisError(f"{source!r} of a layer has no known place in {target!r}; {_ADVICE}.")
    area = csr_array(np.ones((1, 1)))
    for n_fine, n_coarse in zip(cells.shape, sides, strict=True):
        area = csr_array(kron(area, lengths(n_fine, n_coarse), format="csr"))  # (target cells, source cells)
    return _by_area(csr_array(area @ members), _members(cells, target.n_features))


def carried(
    source: Features, target: Features, *, at_layer: bool = False, shares: object = None
) -> tuple[Array, tuple[str, ...]]:
    """The matrix that brings values of `source` to `target`, and the names of the rows below those of `target`.

    Parameters
    ----------
    source, target, at_layer
        As for `overlap`.
    shares : array of shape (target.n_features, source.n_features), optional
        The shares themselves, in place of those by area.

    Returns
    -------
    rows : array of shape (target.n_features + n_own, source.n_features)
        Every column sums to one: features without a place have rows of their own at the end.
    own : tuple of str
        The names of the features without a place.

    Examples
    --------
    >>> from gralis.features import grid, patches
    >>> rows, own = carried(patches((3, 8), (1, 2), extra=1), grid((3, 4, 4), 4), at_layer=True)
    >>> rows.tolist(), own
    ([[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]], ('token 0',))
    """
    if shares is None:
        matrix = overlap(source, target, at_layer=at_layer)
    else:
        matrix = checked_shares(shares, target.n_features, source.n_features)
    without = np.flatnonzero(matrix.sum(0) == 0)
    own = np.zeros((len(without), source.n_features))
    own[np.arange(len(without)), without] = 1.0
    return np.concatenate([matrix, own]), tuple(source.names[int(i)] for i in without)


def checked_shares(shares: object, n_target: int, n_source: int) -> Array:
    """A user's matrix of shares: every column sums to one, or is zero for a feature without a place."""
    allowed = f"a matrix ({n_target}, {n_source}), regions by features, whose columns sum to 1, or to 0 without a place"
    try:
        matrix = to_numpy(shares).astype(np.float64)
    except (TypeError, ValueError, RuntimeError):
        raise bad("shares", "on", allowed, repr(shares)) from None
    if matrix.shape != (n_target, n_source):
        raise bad("shares", "on", allowed, f"shape {matrix.shape}")
    sums = matrix.sum(0)
    if not np.isfinite(matrix).all() or (matrix < 0).any() or not (np.isclose(sums, 1) | (sums == 0)).all():
        raise bad("shares", "on", allowed, f"columns with the sums {np.unique(sums.round(6))[:5].tolist()}")
    return matrix


def plane(features: Features) -> NDArray[np.integer]:
    """The labels without the channel axis, first or last, over which they must not vary: (channels, h, w) -> (h, w).

    Tokens and windows keep only the axis of the positions.
    """
    labels = features.labels[0]
    if len(features.labels) > 1:
        raise GralisError(f"{features!r} cannot be mapped to common features: it covers {len(features.labels)} inputs.")
    if features.kind == "tokens":
        return np.asarray(labels.reshape(len(labels), -1)[:, 0])
    if features.kind == "windows":
        return np.asarray(labels.reshape(-1, labels.shape[-1])[0])
    if labels.ndim < 3:
        return labels
    spatial = features.kind not in _WITHOUT_PLACE
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


def _over_positions(labels: NDArray[np.integer], kind: str) -> NDArray[np.integer]:
    """The labels of (length, dims) or (channels, length) over the length alone, for tokens and windows."""
    if labels.ndim == 2 and kind == "tokens" and (labels == labels[:, :1]).all():
        return np.asarray(labels[:, 0])
    if labels.ndim == 2 and kind == "windows" and (labels == labels[:1]).all():
        return np.asarray(labels[0])
    return labels


def _without_place(features: Features) -> bool:
    """Whether no feature of a layer lies anywhere in the input: channels, heads, and units of a dense layer."""
    if "place" in features.meta:
        return False
    dense = features.shapes[0][1:] == () and features.kind not in (*_SPATIAL, "tokens")
    return features.kind in _WITHOUT_PLACE or dense


def _cells(features: Features) -> tuple[csr_array, tuple[int, ...]]:
    """The cells of each feature, (cells, n_features), and the sides of the grid of cells."""
    place = features.meta.get("place")
    if not isinstance(place, dict):
        labels = plane(features)
        return _members(labels, features.n_features), labels.shape
    cells = np.array(place["cells"])
    somewhere = np.flatnonzero(cells >= 0)
    shape = (int(np.prod(place["grid"])), features.n_features)
    return csr_array((np.ones(len(somewhere)), (cells[somewhere], somewhere)), shape=shape), tuple(place["grid"])


def _by_area(source: csr_array, target: csr_array) -> Array:
    """The shares from what each cell of one plane has of each feature, (cells, n_features), on both sides."""
    areas = np.asarray((target.T @ source).todense(), dtype=np.float64)
    total = areas.sum(0)
    return np.asarray(np.divide(areas, total, out=np.zeros_like(areas), where=total > 0))


def _members(labels: NDArray[np.integer], n_features: int) -> csr_array:
    """1 where a cell belongs to a feature, (cells, n_features)."""
    places = np.arange(labels.size)
    return csr_array((np.ones(labels.size), (places, labels.ravel())), shape=(labels.size, n_features))
