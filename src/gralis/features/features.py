"""A partition of the coordinates of x into features.

x is a tuple of arrays, its leaves; a feature may own coordinates of several leaves.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gralis.arrays import Array, Shape, describe, length, to_numpy
from gralis.checks import is_whole
from gralis.errors import bad
from gralis.features.coordinate_names import checked_names
from gralis.features.labels import Labels, as_labels, count_features, flat

__all__ = ["Features"]


@dataclass(frozen=True, eq=False, repr=False)
class Features:
    """labels[leaf][coordinate] = the feature that owns this coordinate, 0 .. n_features - 1 without gaps.

    The functions of `gralis.features` make partitions of many kinds; the constructor is for those that they lack.

    Parameters
    ----------
    labels : tuple of array of int
        One array per leaf of x, shaped like the leaf. The arrays are copied and made read-only.
    names : sequence of str
        One name per feature.
    kind : str
        What the features are, in one word: "groups", "grid", "slic", ...
    meta : mapping, optional
        How the features were made, in values that JSON can hold.

    Attributes
    ----------
    n_features : int
        The number of features.

    Examples
    --------
    >>> two = Features((np.array([0, 0, 1]),), ("left", "right"), "groups")
    >>> two, two.sizes.tolist(), two.to_input(np.array([0.5, -2.0]))[0].tolist()
    (Features(groups, 2 features over (3,)), [2, 1], [0.5, 0.5, -2.0])
    """

    labels: tuple[Labels, ...]
    names: Sequence[str]
    kind: str
    meta: Mapping[str, object] = field(default_factory=dict)
    n_features: int = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.labels, tuple) or not self.labels:
            raise bad("labels", "Features", "a tuple with one integer array per leaf", describe(self.labels))
        labels = tuple(as_labels(leaf, "Features") for leaf in self.labels)
        for leaf in labels:
            leaf.flags.writeable = False
        object.__setattr__(self, "labels", labels)
        object.__setattr__(self, "n_features", count_features(labels))
        object.__setattr__(self, "names", checked_names(self.names, self.n_features))
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
        """The number of coordinates of every feature, over all leaves: (n_features,)."""
        return np.bincount(flat(self.labels))

    @cached_property
    def discrete(self) -> NDArray[np.bool_]:
        """Which features jump from x' to x instead of moving along the ray, (n_features,), read-only."""
        jumps = np.zeros(self.n_features, dtype=bool)
        jumps[self.meta.get("discrete", [])] = True  # type: ignore[call-overload]
        jumps.flags.writeable = False
        return jumps

    @property
    def chosen(self) -> bool:
        """Whether the user has said which features are discrete; if not, those of an integer or boolean x are."""
        return "discrete" in self.meta

    def jumping(self, which: Sequence[int | str]) -> Features:
        """The same features, some of which are discrete: a category has no values between x' and x.

        No other feature is, even if x is made of integers; `jumping([])` lets all of them move.

        Parameters
        ----------
        which : sequence of int or str
            The numbers or names of the discrete features.

        Returns
        -------
        Features

        Examples
        --------
        >>> from gralis.features import columns
        >>> columns(["age", "city"]).jumping(["city"]).discrete.tolist()
        [False, True]
        """
        if isinstance(which, str) or not isinstance(which, Sequence):
            raise bad("discrete", "Features", "a list of feature numbers or names", repr(which))
        numbers = set()
        for feature in which:
            known = isinstance(feature, str) and feature in self.names
            number = list(self.names).index(str(feature)) if known else feature
            if not is_whole(number, 0, self.n_features - 1):
                allowed = f"numbers 0..{self.n_features - 1} or names of features"
                raise bad("discrete", "Features", allowed, repr(feature))
            numbers.add(int(number))
        return replace(self, meta={**self.meta, "discrete": sorted(numbers)})

    def at(self, grid: Sequence[int], cells: Sequence[int]) -> Features:
        """The same features, each in one cell of a grid that covers the input; -1 means without a place.

        It says where parts of a layer's output lie, so that `Explanation.on` and `multiscale` can bring them to the
        input. `patches`, `tokens` and `heads` say it for the usual layers.

        Parameters
        ----------
        grid : sequence of int
            The sides of the grid: (h, w) for an image, (length,) for a sequence. Its cells have equal sizes and cover
            the input.
        cells : sequence of int
            The number of the cell of every feature, row by row. Several features may share a cell.

        Returns
        -------
        Features

        Examples
        --------
        >>> from gralis.features import channels
        >>> channels((5, 8), axis=0).at((2, 2), [-1, 0, 1, 2, 3]).meta["place"]["grid"]
        [2, 2]
        """
        if not length(grid) or not all(is_whole(side, 1) for side in grid):
            raise bad("grid", "Features.at", "the sides of the grid, whole numbers >= 1", repr(grid))
        n_cells = math.prod(int(side) for side in grid)
        if length(cells) != self.n_features or not all(is_whole(cell, -1, n_cells - 1) for cell in cells):
            allowed = f"{self.n_features} whole numbers from -1 to {n_cells - 1}, one per feature"
            raise bad("cells", "Features.at", allowed, repr(cells))
        place = {"grid": [int(side) for side in grid], "cells": [int(cell) for cell in cells]}
        return replace(self, meta={**self.meta, "place": place})

    def to_input(self, values: ArrayLike) -> tuple[NDArray[Any], ...]:
        """The values of the features on the coordinates of x: each coordinate gets the value of its feature.

        Parameters
        ----------
        values : array of shape (n_features,)
            One number per feature.

        Returns
        -------
        tuple of array
            One array per leaf, shaped like the leaf.
        """
        array = to_numpy(values)
        if array.shape != (self.n_features,):
            raise bad("values", "Features.to_input", f"of shape ({self.n_features},)", f"shape {array.shape}")
        return tuple(array[leaf] for leaf in self.labels)

    def collect(self, leaves: Sequence[NDArray[Any]]) -> Array:
        """The sums of numbers over the coordinates of each feature.

        Parameters
        ----------
        leaves : sequence of array
            Numbers for every coordinate of x, one array per leaf.

        Returns
        -------
        array of shape (n_features,)
        """
        total = np.zeros(self.n_features)
        for labels, leaf in zip(self.labels, leaves, strict=True):
            total += np.bincount(labels.ravel(), np.asarray(leaf, dtype=np.float64).ravel(), self.n_features)
        return total

    def fingerprint(self) -> str:
        """sha256 of the shapes and labels; names, kind and meta do not count."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.sha256(repr(self.shapes).encode())
        for leaf in self.labels:
            digest.update(np.ascontiguousarray(leaf, dtype="<i8").tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        plural = "feature" if self.n_features == 1 else "features"
        return f"Features({self.kind}, {self.n_features} {plural} over {' and '.join(map(str, self.shapes))})"
