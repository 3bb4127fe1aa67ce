"""The `features` argument of `explain`, in all its forms, as one value that fits x."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from gralis.arrays import Shape, describe
from gralis.errors import GralisError, bad
from gralis.features.composition import compose
from gralis.features.features import Features
from gralis.features.labels import has_several_leaves
from gralis.features.partitions import groups, one_per_coordinate

__all__ = ["resolve"]


def resolve(features: object, shapes: Sequence[Shape], keys: Sequence[str] | None = None) -> Features:
    """The `features` argument of `explain` as Features over leaves of these shapes.

    Parameters
    ----------
    features : None, "pixels", Features, array of int, or a tuple or dict of them
        None and "pixels" make each coordinate a feature. Integer labels are shaped like x or its spatial part. For
        several leaves a tuple or, if x is a dict, a dict has one of these for every leaf. Label arrays of several
        leaves have one common numbering if all leaves have one.
    shapes : sequence of tuple of int
        The shape of every leaf of x.
    keys : sequence of str, optional
        The keys of the leaves if x is a dict.

    Returns
    -------
    Features

    Examples
    --------
    >>> resolve([0, 0, 1], [(3,)]), resolve(None, [(2,), (1,)], keys=["age", "dose"]).names[:]
    (Features(groups, 2 features over (3,)), ('age[0]', 'age[1]', 'dose[0]'))
    """
    shapes = tuple(tuple(shape) for shape in shapes)
    if features is None or _is_pixels(features):
        return one_per_coordinate(shapes, None, keys)
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
            batch = len(shapes) == 1 and shapes[0][:1] == (1,) and features.shapes[0] == shapes[0][1:]
            advice = "x has a batch axis of 1; give x[0]." if batch else "Most constructors take the shape of x."
            raise bad("features", "explain", over, features, advice)
        return features
    if isinstance(features, Mapping) and keys is not None:
        if set(features) != set(keys):
            raise bad("features", "explain", f"a dict with the keys {list(keys)}", f"keys {list(features)}")
        features = tuple(features[key] for key in keys)
    if isinstance(features, tuple | list) and any(_is_whole_partition(part) for part in features):
        return _composed(features, shapes, keys)
    if isinstance(features, np.ndarray | torch.Tensor | list | tuple):
        # For a single leaf, a tuple or list holds either the labels of that leaf or one array with them.
        bare = len(shapes) == 1 and not (has_several_leaves(features) and len(features) == 1)
        try:
            return groups((features,) if bare else features, shape=shapes)
        except GralisError as error:
            raise GralisError(f"The 'features' parameter of explain does not fit x: {error}") from error
    allowed = (
        "None, an integer label array shaped like x, 'pixels', a value from gralis.features, or a tuple or dict with "
        "one of them for every array of x"
    )
    raise bad("features", "explain", allowed, describe(features))


def _is_pixels(features: object) -> bool:
    return isinstance(features, str) and features == "pixels"


def _is_whole_partition(part: object) -> bool:
    """Whether an entry of a tuple divides an array of x by itself, as labels in a common numbering do not."""
    return part is None or isinstance(part, Features) or _is_pixels(part)


def _composed(parts: Sequence[object], shapes: tuple[Shape, ...], keys: Sequence[str] | None) -> Features:
    """The features of every leaf, resolved one by one and put together."""
    if len(parts) != len(shapes):
        allowed = f"one for every array of x, {len(shapes)} in all"
        raise bad("features", "explain", allowed, f"{len(parts)}", "None makes each coordinate a feature.")
    named = keys or (("x",) if len(shapes) == 1 else tuple(f"x{i}" for i in range(len(shapes))))
    each = [resolve(part, [shape], [key]) for part, shape, key in zip(parts, shapes, named, strict=True)]
    return compose(each, named)
