"""Which features jump because of their type: integers and booleans have no values between x' and x.

An explicit choice always wins: `columns(..., discrete=...)` and `Features.jumping(...)` say which features jump, and
`discrete=False` or `jumping([])` that none does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gralis.features.features import Features

__all__ = ["jumping_by_type"]


def jumping_by_type(features: Features, whole: Sequence[NDArray[np.bool_]]) -> Features:
    """The same features, of which those with a whole-number coordinate jump, unless the user has chosen.

    Parameters
    ----------
    features : Features
        The features.
    whole : sequence of array of bool
        Which coordinates are integers or booleans by type, one array per leaf, shaped like the leaf.

    Returns
    -------
    Features

    Examples
    --------
    >>> from gralis.features import columns
    >>> jumping_by_type(columns(["age", "city"]), [np.array([False, True])]).discrete.tolist()
    [False, True]
    """
    if not features.chosen and not any(by_type.any() for by_type in whole):
        return features
    owners = [labels[by_type] for labels, by_type in zip(features.labels, whole, strict=True)]
    chosen = features.meta.get("chosen_arrays")
    if chosen is None and features.chosen:
        return features
    # If the user has chosen for some arrays of x only, the types of the others decide.
    by_type = [own for array, own in enumerate(owners) if array not in (chosen or ())]  # type: ignore[operator]
    jumping = np.unique(np.concatenate([*by_type, np.flatnonzero(features.discrete)]))
    return features.jumping(jumping.tolist()) if len(jumping) or features.chosen else features
