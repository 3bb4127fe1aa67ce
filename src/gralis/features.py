"""Features: which coordinates of x are switched together. Every coordinate belongs to exactly one feature.

x is a tuple of arrays ("leaves"); a feature may own coordinates of several leaves.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from gralis.errors import GralisError, bad
from gralis.labels import (
    Labels,
    Shape,
    count,
    describe,
    fit,
    integers,
    length,
    reasonable,
    renumber,
    several,
    shape_of,
    shapes_of,
    to_numpy,
    whole,
)
from gralis.names import CoordinateNames, checked
from gralis.superpixels import ChannelAxis, segment


@dataclass(frozen=True, eq=False, repr=False)
class Features:
    """`labels[leaf][coordinate]` = the feature that owns this coordinate, 0..n_features-1 without gaps.

    >>> two = Features((np.array([0, 0, 1]),), ("left", "right"), "groups")
    >>> two, two.sizes.tolist(), two.to_input(np.array([0.5, -2.0]))[0].tolist()
    (Features(groups, 2 features over (3,)), [2, 1], [0.5, 0.5, -2.0])
    """

    labels: tuple[Labels, ...]  # one per leaf, shaped like the leaf; copied and made read-only
    names: Sequence[str]  # (n_features,): a tuple, or CoordinateNames, which makes names on demand
    kind: str
    meta: Mapping[str, object] = field(default_factory=dict)  # what made them; plain JSON
    n_features: int = field(init=False)

    def __post_init__(self) -> None:
        given: object = self.labels
        if not isinstance(given, tuple) or not given:
            raise bad("labels", "Features", "a tuple with one integer array per leaf", describe(given))
        labels = tuple(integers(leaf, "Features") for leaf in given)
        for leaf in labels:
            leaf.flags.writeable = False
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "n_features", count(labels))
        object.__setattr__(self, "names", checked(self.names, self.n_features))
        try:
            object.__setattr__(self, "meta", json.loads(json.dumps(dict(self.meta))))
        except (TypeError, ValueError) as error:
            raise bad("meta", "Features", "a mapping that JSON can hold", f"{self.meta!r} ({error})") from error

    @property
    def shapes(self) -> tuple[Shape, ...]:
        """The shape of every leaf."""
        return tuple(leaf.shape for leaf in self.labels)

    @property
    def sizes(self) -> Labels:
        """Coordinates per feature, (n_features,), over all leaves."""
        return np.bincount(np.concatenate([leaf.ravel() for leaf in self.labels]))

    @property
    def discrete(self) -> NDArray[np.bool_]:
        """Which features jump from x' to x instead of moving along the ray, (n_features,)."""
        found = np.zeros(self.n_features, dtype=bool)
        found[self.meta.get("discrete", [])] = True  # type: ignore[call-overload]
        return found

    def jumping(self, which: Sequence[int | str]) -> Features:
        """The same features, of which these (numbers or names) are discrete: a category has no way between two values.

        >>> columns(["age", "city"]).jumping(["city"]).discrete.tolist()
        [False, True]
        """
        if isinstance(which, str) or not isinstance(which, Sequence):
            raise bad("discrete", "Features", "a list of feature numbers or names", repr(which))
        numbers = set()
        for one in which:
            known = list(self.names).index(one) if isinstance(one, str) and one in self.names else one
            if not whole(known, 0) or int(known) >= self.n_features:
                raise bad("discrete", "Features", f"numbers 0..{self.n_features - 1} or names of features", repr(one))
            numbers.add(int(known))
        return replace(self, meta={**self.meta, "discrete": sorted(numbers)})

    def to_input(self, values: ArrayLike) -> tuple[NDArray[Any], ...]:
        """values (n_features,) back on the leaves: each coordinate gets its feature's value."""
        array = to_numpy(values)
        if array.shape != (self.n_features,):
            raise bad("values", "Features.to_input", f"of shape ({self.n_features},)", f"shape {array.shape}")
        return tuple(array[leaf] for leaf in self.labels)

    def collect(self, leaves: Sequence[NDArray[Any]]) -> NDArray[np.float64]:
        """Input-shaped numbers summed up over each feature: (n_features,)."""
        total = np.zeros(self.n_features)
        for labels, leaf in zip(self.labels, leaves, strict=True):
            total += np.bincount(labels.ravel(), np.asarray(leaf, dtype=np.float64).ravel(), self.n_features)
        return total

    def fingerprint(self) -> str:
        """sha256 of the numbered partition (shapes and labels); names, kind and meta do not enter."""
        digest = hashlib.sha256(repr(self.shapes).encode())
        for leaf in self.labels:
            digest.update(np.ascontiguousarray(leaf, dtype="<i8").tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        plural = "feature" if self.n_features == 1 else "features"
        return f"Features({self.kind}, {self.n_features} {plural} over {' and '.join(map(str, self.shapes))})"


def coordinates(shape_or_x: object, names: Sequence[str] | None = None) -> Features:
    """Each coordinate is its own feature: labels = 0, 1, 2, ... in C order, leaf after leaf.

    Takes a shape, an array, or a tuple of either (several leaves, named "x0[...]", "x1[...]").

    >>> coordinates((2, 2)).names[3], coordinates(np.zeros(4)), coordinates(((2,), (3, 1))).names[2]
    ('x[1,1]', Features(coordinates, 4 features over (4,)), 'x1[0,0]')
    """
    return _coordinates(shapes_of(shape_or_x, "coordinates"), names, None)


def groups(
    labels: object, names: Sequence[str] | None = None, shape: object = None, *, relabel: bool = False
) -> Features:
    """Features from integer labels: coordinates with the same label are one feature.

    `shape`: the shape of x, when the labels have only its spatial part: they are repeated over the channel axes,
    first (3, 224, 224) or last (224, 224, 3). A tuple of arrays labels several leaves, in one common numbering.
    Labels with gaps raise, unless `relabel=True`, which renumbers them in increasing order.

    >>> groups([[0, 1], [0, 1]], names=["left", "right"], shape=(3, 2, 2)).sizes.tolist()
    [6, 6]
    >>> groups([10, 30, 30], relabel=True).labels[0].tolist()
    [0, 1, 1]
    """
    parts = labels if several(labels) else (labels,)
    leaves = tuple(integers(leaf, "groups") for leaf in parts)
    if shape is not None:
        shapes = shapes_of(shape, "groups")
        if len(shapes) != len(leaves):
            raise bad("labels", "groups", f"one array per leaf, {len(shapes)} in all", f"{len(leaves)}")
        leaves = tuple(fit(leaf, target) for leaf, target in zip(leaves, shapes, strict=True))
    if relabel:
        leaves = renumber(leaves)
    if names is None:
        names = [f"group {i}" for i in range(count(leaves))]
    return Features(leaves, names, "groups")


def columns(
    names: Sequence[str],
    groups: Mapping[str, Sequence[str]] | None = None,
    discrete: Sequence[int | str] = (),
) -> Features:
    """A table row (n,): one feature per column; `groups` merges columns (one-hot codes) into one feature.

    `discrete` features (categories, one-hot groups) jump from x' to x, all others move along the ray.

    >>> row = columns(["age", "red", "blue"], groups={"color": ["red", "blue"]})
    >>> row.names, row.labels[0].tolist()
    (('age', 'color'), [0, 1, 1])
    """
    if not length(names):
        raise bad("names", "columns", "a non-empty list of column names", repr(names))
    if groups is not None and not isinstance(groups, Mapping):
        raise bad("groups", "columns", "a mapping group -> non-empty list of columns", describe(groups))
    names = checked(names, len(names))
    owner: dict[str, str] = {}  # column -> its group
    for group, members in (groups or {}).items():
        if not length(members):
            raise bad("groups", "columns", "a mapping group -> non-empty list of columns", f"{group!r}: {members!r}")
        for column in map(str, members):
            if [str(name) for name in names].count(column) != 1:
                raise bad("groups", "columns", "made of columns that occur once in 'names'", repr(column))
            if column in owner:
                raise bad("groups", "columns", "such that no column is named twice", repr(column))
            owner[column] = str(group)
    # A feature stands where its first column stands; ungrouped columns stay apart even if they share a name.
    keys = [("group", owner[str(c)]) if str(c) in owner else (i, str(c)) for i, c in enumerate(names)]
    number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    found = Features((np.array([number[key] for key in keys]),), [name for _, name in number], "columns")
    return found if length(discrete) == 0 else found.jumping(discrete)


def grid(shape: object, patch: int | Sequence[int]) -> Features:
    """Patches over the last axes, shared by the channel axes before them; patches at the far edge may be smaller.

    `patch`: an int (square, last two axes; last one of a 1-D x), or one int per axis: (h, w), (d, h, w), (t,).

    >>> quarters = grid((3, 4, 4), 2)
    >>> quarters.names, quarters.labels[0][0, 0].tolist()
    (('r0c0', 'r0c1', 'r1c0', 'r1c1'), [0, 0, 1, 1])
    """
    full = shape_of(shape, "grid")
    sides = tuple(patch) if isinstance(patch, Sequence) else (patch,) * min(2, len(full))
    if not 0 < len(sides) <= min(3, len(full)) or not all(whole(side, 1) for side in sides):
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


def channels(shape: object, axis: int = 0, names: Sequence[str] | None = None) -> Features:
    """One feature per index of one axis.

    >>> channels((3, 8, 8), names=["red", "green", "blue"]).sizes.tolist()
    [64, 64, 64]
    """
    full = shape_of(shape, "channels")
    if not whole(axis, -len(full)) or axis >= len(full):
        raise bad("axis", "channels", f"an axis of a shape {full}", repr(axis))
    numbers = np.arange(full[axis]).reshape([-1 if i == axis % len(full) else 1 for i in range(len(full))])
    names = [f"channel {i}" for i in range(full[axis])] if names is None else names
    return Features((np.broadcast_to(numbers, full),), names, "channels", {"axis": int(axis)})


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
    if not whole(start_label, 0):
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


def tokens(ids: object, tokenizer: object = None, names: Sequence[str] | None = None) -> Features:
    """One feature per token of a sequence, whatever the width of its embedding: for `layer=` on an embedding layer.

    Names come from `names`, from `tokenizer.convert_ids_to_tokens(ids)` (transformers), or are the ids themselves.

    >>> tokens([101, 7592, 102], names=["[CLS]", "hello", "[SEP]"])
    Features(tokens, 3 features over (3,))
    """
    try:
        shape = to_numpy(ids).shape
    except (TypeError, ValueError, RuntimeError):
        shape = None  # sequences of different lengths
    if shape is None or len(shape) != 1:
        got = "sequences of different lengths" if shape is None else f"shape {shape}"
        raise bad("ids", "tokens", "one sequence of token ids, (length,)", got, "Several are explained one by one.")
    numbers = integers(ids, "tokens")
    if names is None:
        convert = getattr(tokenizer, "convert_ids_to_tokens", None)
        if tokenizer is not None and not callable(convert):
            raise bad("tokenizer", "tokens", "one with convert_ids_to_tokens, or names=", type(tokenizer).__name__)
        names = list(map(str, numbers.tolist())) if convert is None else list(convert(numbers.tolist()))
    return Features((np.arange(len(numbers)),), names, "tokens")


def windows(length: int, width: int, channels: int | None = None) -> Features:
    """A time series (length,), or (channels, length): one feature per window of `width` steps, over all channels.

    >>> windows(10, 4).names, windows(10, 4, channels=2).sizes.tolist()
    (('t0-3', 't4-7', 't8-9'), [8, 8, 4])
    """
    for value, name in ((length, "length"), (width, "width"), (1 if channels is None else channels, "channels")):
        if not whole(value, 1):
            raise bad(name, "windows", "an int >= 1", repr(value))
    reasonable((int(channels or 1), int(length)), "windows")
    width = min(width, length)
    steps = np.arange(length) // width
    labels = steps if channels is None else np.broadcast_to(steps, (channels, length))
    starts = range(0, length, width)
    names = [f"t{start}-{min(start + width, length) - 1}" for start in starts]
    return Features((labels,), names, "windows", {"width": int(width)})


def resolve(features: object, shapes: Sequence[Shape], keys: Sequence[str] | None = None) -> Features:
    """What `explain(features=...)` accepts, as Features over leaves of these shapes.

    None: each coordinate. Features: checked. Integer labels shaped like x or its spatial part: groups. For several
    leaves a tuple of label arrays, or a dict of them when x is one (`keys`: its keys in the order of the leaves).

    >>> resolve([0, 0, 1], [(3,)]), resolve(None, [(2,), (1,)], keys=["age", "dose"]).names[:]
    (Features(groups, 2 features over (3,)), ('age[0]', 'age[1]', 'dose[0]'))
    """
    shapes = tuple(tuple(shape) for shape in shapes)
    if features is None:
        return _coordinates(shapes, None, keys)
    if isinstance(features, Features):
        if features.kind == "tokens" and len(shapes) == 1 and features.shapes[0] == shapes[0][:1]:
            wide = np.broadcast_to(features.labels[0].reshape(-1, *[1] * (len(shapes[0]) - 1)), shapes[0])
            return Features((wide,), features.names, "tokens", features.meta)
        if features.kind == "tokens" and len(shapes) == 1 and features.shapes != shapes:
            allowed = f"one token for each of the {shapes[0][0]} positions of x, of shape {shapes[0]}"
            advice = "Tokenise and explain the same ids, padding and special tokens included."
            raise bad("features", "explain", allowed, f"{features.n_features} tokens", advice)
        if features.shapes != shapes:
            over = f"over x of shape {' and '.join(map(str, shapes))}"
            raise bad("features", "explain", over, features, "Most constructors take the shape of x.")
        return features
    if isinstance(features, Mapping) and keys is not None:
        if set(features) != set(keys):
            raise bad("features", "explain", f"a dict with the keys {list(keys)}", f"keys {list(features)}")
        features = tuple(features[key] for key in keys)
    if isinstance(features, np.ndarray | torch.Tensor | list | tuple):
        # For a single leaf, a tuple or list is either that leaf's labels or a tuple of one such array.
        one = len(shapes) == 1 and not (several(features) and len(features) == 1)
        try:
            return groups((features,) if one else features, shape=shapes)
        except GralisError as error:
            raise GralisError(f"The 'features' parameter of explain does not fit x: {error}") from error
    allowed = "None, an integer label array shaped like x (or a tuple of them), or a value from gralis.features"
    raise bad("features", "explain", allowed, describe(features))


def _coordinates(shapes: tuple[Shape, ...], names: Sequence[str] | None, keys: Sequence[str] | None) -> Features:
    prefixes = tuple(keys or (("x",) if len(shapes) == 1 else (f"x{i}" for i in range(len(shapes)))))
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    labels = tuple(np.arange(e - math.prod(s), e).reshape(s) for e, s in zip(ends, shapes, strict=True))
    return Features(labels, CoordinateNames(prefixes, shapes) if names is None else names, "coordinates")
