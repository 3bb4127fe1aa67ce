"""Pictures and volumes that are given without features: they are cut into regions, because nobody means each pixel."""

from __future__ import annotations

import importlib.util
import math
import warnings
from collections.abc import Sequence

import torch
from torch import Tensor

from gralis.arrays import Shape
from gralis.features.composition import compose
from gralis.features.features import Features
from gralis.features.labels import fit
from gralis.features.partitions import one_per_coordinate
from gralis.features.regions import grid, slic

__all__ = ["cut_pictures", "picture_axes"]

N_REGIONS = 30
_CHANNELS = (1, 3, 4)
_READABLE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_LEAST_SIDE = {2: 20, 3: 8}  # of an image, and of a volume


def picture_axes(shape: Shape) -> tuple[int, ...] | None:
    """The spatial axes if the shape is surely that of an image or a volume with channels; otherwise None.

    One end of the shape is a channel axis of size 1, 3 or 4, and the other axes are long. Leading axes of size 1 that
    leave a picture are skipped.

    >>> picture_axes((3, 224, 224)), picture_axes((28, 28, 1)), picture_axes((1, 64, 64, 64))
    ((1, 2), (0, 1), (1, 2, 3))
    >>> picture_axes((1, 3, 32, 32)), picture_axes((12, 64, 64)), picture_axes((5, 7))
    ((2, 3), None, None)
    """
    n = len(shape)
    if n in (3, 4):
        ends = [i for i in (0, n - 1) if shape[i] in _CHANNELS]
        spatial = tuple(i for i in range(n) if i not in ends)
        if len(ends) == 1 and min(shape[i] for i in spatial) >= _LEAST_SIDE[n - 1]:
            return spatial
    if n > 3 and shape[0] == 1:
        inner = picture_axes(shape[1:])
        return None if inner is None else tuple(i + 1 for i in inner)
    return None


def cut_pictures(leaves: Sequence[Tensor], keys: Sequence[str] | None) -> tuple[Features, tuple[str, ...]] | None:
    """Regions of every array of x that is a picture, coordinates of the others, and a sentence on each picture.

    Parameters
    ----------
    leaves : sequence of tensor
        The arrays of x.
    keys : sequence of str, optional
        Their names if x is a dict.

    Returns
    -------
    tuple of Features and tuple of str, or None
        None if no array is a picture.
    """
    cuts = [_axes_of(leaf) for leaf in leaves]
    if not any(cuts):
        return None
    named = keys or (["x"] if len(leaves) == 1 else [f"x{i}" for i in range(len(leaves))])
    parts, sentences = [], []
    for leaf, key, axes in zip(leaves, named, cuts, strict=True):
        shape = tuple(leaf.shape)
        if axes is None:
            parts.append(one_per_coordinate((shape,), None, [key]))
            continue
        regions, how = _regions(leaf, shape, axes)
        what = "an image" if len(axes) == 2 else "a volume"
        parts.append(regions)
        sentences.append(
            f"{key} is {what} of shape {shape}, so it was cut into {regions.n_features} {how}; choose others with "
            f"features=, or features='pixels' for each number by itself"
        )
    return compose(parts, named), tuple(sentences)


def _axes_of(leaf: Tensor) -> tuple[int, ...] | None:
    """The spatial axes of an array of x; None if it is no picture, or holds what a picture does not."""
    axes = picture_axes(tuple(leaf.shape))
    return axes if axes and leaf.dtype in _READABLE and bool(torch.isfinite(leaf).all()) else None


def _regions(leaf: Tensor, shape: Shape, axes: tuple[int, ...]) -> tuple[Features, str]:
    """Superpixels, or patches if scikit-image is missing or finds too few regions."""
    sides = tuple(shape[i] for i in axes)
    if importlib.util.find_spec("skimage") is not None:
        picture = leaf.reshape(shape[len(shape) - len(axes) - 1 :])  # without leading axes of size 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # too few regions: patches take their place
            cut = slic(picture, N_REGIONS)
        if cut.n_features >= N_REGIONS // 2:
            whole = Features((cut.labels[0].reshape(shape),), cut.names, "slic", cut.meta)
            return whole, "superpixels" if len(axes) == 2 else "supervoxels"
        why = "patches, because superpixels found too few regions"
    else:
        why = "patches, because superpixels need scikit-image (pip install gralis[image])"
    side = max(1, math.ceil((math.prod(sides) / N_REGIONS) ** (1 / len(sides))))
    patches = grid(sides, [side] * len(sides))
    # `fit` cannot tell the first axes from the last ones, so the axes without patches have size 1.
    flat = patches.labels[0].reshape([size if i in axes else 1 for i, size in enumerate(shape)])
    return Features((fit(flat, shape),), patches.names, "grid", patches.meta), why
