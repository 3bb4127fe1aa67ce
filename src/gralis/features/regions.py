"""Features of an image: patches of a grid, superpixels, and ensembles of superpixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gralis.arrays import to_numpy
from gralis.checks import is_whole
from gralis.errors import bad
from gralis.features.features import Features
from gralis.features.labels import fit, shape_of
from gralis.features.superpixels import ChannelAxis, segment


def grid(shape: object, patch: int | Sequence[int]) -> Features:
    """Patches over the last axes, shared by the channel axes before them; patches at the far edge may be smaller.

    `patch`: an int (square, last two axes; last one of a 1-D x), or one int per axis: (h, w), (d, h, w), (t,).

    >>> quarters = grid((3, 4, 4), 2)
    >>> quarters.names, quarters.labels[0][0, 0].tolist()
    (('r0c0', 'r0c1', 'r1c0', 'r1c1'), [0, 0, 1, 1])
    """
    full = shape_of(shape, "grid")
    sides = tuple(patch) if isinstance(patch, Sequence) else (patch,) * min(2, len(full))
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
    """Superpixels: about `n_segments` connected regions of similar colour (scikit-image's SLIC), over all channels.

    `image`: array or tensor, HWC, CHW or grey HW; "auto" takes a first or last axis of size 1, 3 or 4 for the
    channels; None: no channels (grey, or a volume). Values are stretched from [min, max] to [0, 1]; RGB is compared
    in Lab, anything else on [0, 100], so that `compactness` means the same. `shape`: the shape of x when its layout
    differs from the image's. Regions are named from `start_label` on; labels always start at 0.

    >>> ramp = np.repeat(np.linspace(0, 1, 32)[None], 32, axis=0)
    >>> slic(ramp, n_segments=4, shape=(3, 32, 32))
    Features(slic, 4 features over (3, 32, 32))
    """
    if not is_whole(start_label, 0):
        raise bad("start_label", "slic", "an int >= 0", repr(start_label))
    regions, axis = segment(image, n_segments, compactness, sigma, channel_axis)
    if shape is not None:
        labels = fit(regions, shape_of(shape, "slic"), "slic")
    else:  # not `fit`, which would guess: the image itself says where its channels are
        once = regions if axis is None else np.expand_dims(regions, axis)
        labels = np.broadcast_to(once, to_numpy(image).shape)
    names = [f"region {i + start_label}" for i in range(int(regions.max()) + 1)]
    meta = {"n_segments": int(n_segments), "compactness": float(compactness), "sigma": float(sigma)}
    return Features((labels,), names, "slic", {**meta, "segments_shape": list(regions.shape)})


def slic_ensemble(
    image: object,
    n_segments: Sequence[int] = (20, 30, 45),
    compactness: float | Sequence[float] = 50,
    **options: Any,
) -> list[Features]:
    """Superpixels at several sizes (and compactnesses): levels for `gralis.multiscale`, which averages over them.

    The variance between them, on the result, says how much the choice of segmentation decides.

    >>> ramp = np.repeat(np.linspace(0, 1, 32)[None], 32, axis=0)
    >>> [one.n_features for one in slic_ensemble(ramp, (4, 16))]
    [4, 16]
    """
    sizes = list(n_segments) if isinstance(n_segments, Sequence) else [n_segments]
    tightness = list(compactness) if isinstance(compactness, Sequence) else [compactness]
    if len(sizes) * len(tightness) < 2:
        raise bad("n_segments", "slic_ensemble", "at least two numbers of regions", repr(n_segments))
    return [slic(image, size, tight, **options) for size in sizes for tight in tightness]
