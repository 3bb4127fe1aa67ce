"""Features of an image: patches of a grid, superpixels, and ensembles of superpixels."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Sequence

import numpy as np

from gralis.arrays import ChannelAxis, to_numpy
from gralis.checks import is_whole, whole
from gralis.errors import bad
from gralis.features.features import Features
from gralis.features.labels import fit, shape_of
from gralis.features.superpixels import segment

__all__ = ["grid", "slic", "slic_ensemble"]


def grid(shape: object, patch: int | Sequence[int]) -> Features:
    """Rectangular patches over the last axes of x, which span all axes before them (the channels).

    Patches at the far edge may be smaller.

    Parameters
    ----------
    shape : tuple of int or array
        The shape of x, or x itself.
    patch : int or sequence of int
        The side of a patch. An int makes squares on the last two axes of x, intervals if x has one axis, and cubes on
        the last three axes if x has four, as a volume with channels has. A sequence has one side for each of the last
        axes: (h, w), (d, h, w) or (t,).

    Returns
    -------
    Features

    Examples
    --------
    >>> quarters = grid((3, 4, 4), 2)
    >>> quarters.names, quarters.labels[0][0, 0].tolist()
    (('r0c0', 'r0c1', 'r1c0', 'r1c1'), [0, 0, 1, 1])
    """
    full = shape_of(shape, "grid")
    sides = tuple(patch) if isinstance(patch, Sequence) else (patch,) * min(3 if len(full) == 4 else 2, len(full))
    if not 0 < len(sides) <= min(3, len(full)) or not all(is_whole(side, 1) for side in sides):
        allowed = f"a positive int, or one per axis, for at most the last {min(3, len(full))} axes of {full}"
        raise bad("patch", "grid", allowed, repr(patch))
    spatial = full[len(full) - len(sides) :]
    sides = tuple(min(int(side), max(size, 1)) for side, size in zip(sides, spatial, strict=True))
    counts = tuple(-(-size // side) for size, side in zip(spatial, sides, strict=True))
    places = np.ix_(*(np.arange(size) // side for size, side in zip(spatial, sides, strict=True)))
    labels = np.broadcast_to(np.ravel_multi_index(places, counts), full)
    axes = "drc"[3 - len(sides) :]
    names = ["".join(f"{a}{i}" for a, i in zip(axes, place, strict=True)) for place in np.ndindex(counts)]
    return Features((labels,), names, "grid", {"patch": list(sides)})


def slic(
    image: object,
    n_segments: int = 30,
    compactness: float = 50,
    sigma: float = 0,
    channel_axis: ChannelAxis = "auto",
    start_label: int = 0,
    shape: object = None,
) -> Features:
    """Superpixels: connected regions of similar colour (scikit-image's SLIC), which span all channels.

    A volume is cut into supervoxels. A warning is given if there are far fewer regions than asked for.

    Pixels are stretched from [min, max] to [0, 1]. RGB is compared in Lab, anything else on [0, 100], so that
    `compactness` means the same for both. Needs scikit-image (`pip install gralis[image]`).

    Parameters
    ----------
    image : array or tensor
        The image, HWC, CHW or grey HW, or a volume.
    n_segments : int, default=30
        About how many regions there will be.
    compactness : float, default=50
        How much nearness counts beside similarity of colour. Large values make square regions.
    sigma : float, default=0
        The width, in pixels, of a Gaussian blur before the segmentation.
    channel_axis : int, 'auto' or None, default='auto'
        The axis of the channels. 'auto' takes the first or last axis if exactly one of them has size 1, 3 or 4; None
        means that there are no channels.
    start_label : int, default=0
        The number in the name of the first region. Labels always start at 0.
    shape : tuple of int or array, optional
        The shape of x, if its layout differs from that of the image.

    Returns
    -------
    Features

    Examples
    --------
    >>> ramp = np.repeat(np.linspace(0, 1, 32)[None], 32, axis=0)
    >>> slic(ramp, n_segments=4, shape=(3, 32, 32))
    Features(slic, 4 features over (3, 32, 32))
    """
    whole(start_label, "start_label", 0, "slic")
    regions, axis = segment(image, n_segments, compactness, sigma, channel_axis)
    if shape is not None:
        labels = fit(regions, shape_of(shape, "slic"), "slic")
    else:  # not `fit`, which would have to guess where the channels are
        flat = regions if axis is None else np.expand_dims(regions, axis)
        labels = np.broadcast_to(flat, to_numpy(image).shape)
    n_regions = int(regions.max()) + 1
    if 2 * n_regions < min(n_segments, regions.size):
        found = "1 region" if n_regions == 1 else f"{n_regions} regions"
        warnings.warn(
            f"slic found {found} where n_segments={n_segments} asked for more; a larger compactness or n_segments may "
            f"give more, and grid(x.shape, side) always cuts.",
            UserWarning,
            stacklevel=2,
        )
    names = [f"region {i + start_label}" for i in range(n_regions)]
    meta = {"n_segments": int(n_segments), "compactness": float(compactness), "sigma": float(sigma)}
    return Features((labels,), names, "slic", {**meta, "segments_shape": list(regions.shape)})


def slic_ensemble(
    image: object,
    n_segments: Sequence[int] = (20, 30, 45),
    compactness: float | Sequence[float] = 50,
    *,
    sigma: float = 0,
    channel_axis: ChannelAxis = "auto",
    start_label: int = 0,
    shape: object = None,
) -> list[Features]:
    """Superpixels of several sizes and compactnesses: levels for `gralis.multiscale`, which averages over them.

    The variance between the levels shows how much depends on the choice of the segmentation.

    Parameters
    ----------
    image : array or tensor
        As for `slic`.
    n_segments : sequence of int, default=(20, 30, 45)
        The numbers of regions.
    compactness : float or sequence of float, default=50
        One compactness or several; every one is combined with every number of regions.
    sigma, channel_axis, start_label, shape
        As for `slic`.

    Returns
    -------
    list of Features

    Examples
    --------
    >>> ramp = np.repeat(np.linspace(0, 1, 32)[None], 32, axis=0)
    >>> [level.n_features for level in slic_ensemble(ramp, (4, 16))]
    [4, 16]
    """
    sizes = list(n_segments) if isinstance(n_segments, Sequence) else [n_segments]
    compactnesses = list(compactness) if isinstance(compactness, Sequence) else [compactness]
    if len(sizes) * len(compactnesses) < 2:
        raise bad("n_segments", "slic_ensemble", "at least two numbers of regions", repr(n_segments))
    pairs = itertools.product(sizes, compactnesses)
    return [slic(image, *pair, sigma, channel_axis, start_label, shape) for pair in pairs]
