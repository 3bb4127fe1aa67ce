"""The `features` argument of `explain`, in all its forms, as one value that fits x."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from gralis.arrays import Shape, describe
from gralis.errors import GralisError, bad
from gralis.features.features import Features
from gralis.features.labels import has_several_leaves
from gralis.features.partitions import groups, one_per_coordinate

__all__ = ["resolve"]


def resolve(features: object, shapes: Sequence[Shape], keys: Sequence[str] | None = None) -> Features:
    """The `features` argument of `explain` as Features over leaves of these shapes.

    Parameters
    ----------
    features : None, Features, array of int, or a tuple or dict of them
        None makes each coordinate a feature. Integer labels are shaped like x or its spatial part. For several leaves
        they are a tuple of label arrays, or a dict of them if x is a dict.
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
    if features is None:
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
            raise bad("features", "explain", over, features, "Most constructors take the shape of x.")
        return features
    if isinstance(features, Mapping) and keys is not None:
        if set(features) != set(keys):
            raise bad("features", "explain", f"a dict with the keys {list(keys)}", f"keys {list(features)}")
        features = tuple(features[key] for key in keys)
    if isinstance(features, np.ndarray | torch.Tensor | list | tuple):
        # For a single leaf, a tuple or list holds either the labels of that leaf or one array with them.
        bare = len(shapes) == 1 and not (has_several_leaves(features) and len(features) == 1)
        try:
            return groups((features,) if bare else features, shape=shapes)
        except GralisError as error:
            raise GralisError(f"The 'features' parameter of explain does not fit x: {error}") from error
    allowed = "None, an integer label array shaped like x (or a tuple of them), or a value from gralis.features"
    raise bad("features", "explain", allowed, describe(features))
