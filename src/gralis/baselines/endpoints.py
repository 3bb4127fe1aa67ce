"""The two ends of every ray, x and the baselines x', as arrays that need neither the model nor torch."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gralis.arrays import Array, to_numpy
from gralis.features import Features

__all__ = ["Endpoints", "Leaves"]

Leaves = tuple[NDArray[Any], ...]


@dataclass(frozen=True, eq=False)
class Endpoints:
    """x and the baselines x', leaf by leaf.

    Parameters
    ----------
    x : tuple of array
        The leaves of x.
    baselines : tuple of array
        The leaves of the baselines, (n_baselines, *leaf.shape) each.
    weights : array of shape (n_baselines,)
        The weights of the baselines, which sum to one.

    Examples
    --------
    >>> ends = Endpoints((np.array([1.0, 2.0]),), (np.array([[0.0, 4.0]]),), np.ones(1))
    >>> ends.displacement[0].tolist()
    [1.0, -2.0]
    """

    x: Leaves
    baselines: Leaves
    weights: Array

    @classmethod
    def of(cls, x: tuple[torch.Tensor, ...], baselines: tuple[torch.Tensor, ...], weights: Array) -> Endpoints:
        """The ends as copies in NumPy; bfloat16, which NumPy lacks, becomes float32."""
        arrays, starts = (tuple(np.array(to_numpy(leaf)) for leaf in leaves) for leaves in (x, baselines))
        return cls(arrays, starts, weights)

    @cached_property
    def digest(self) -> str:
        """sha256 of x, the baselines and their weights: equal for the ends of the same rays, also after loading."""
        digest = hashlib.sha256()
        for array in (*self.x, *self.baselines, self.weights):
            digest.update(f"{array.shape}|{array.dtype}|".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @property
    def displacement(self) -> Leaves:
        """x - x' on the coordinates of the input, averaged over the baselines."""
        pairs = zip(self.x, self.baselines, strict=True)
        return tuple(x.astype(np.float64) - np.tensordot(self.weights, base, 1) for x, base in pairs)

    def of_features(self, features: Features) -> Array:
        """The value of every feature in x: the mean over its coordinates, (n_features,)."""
        return np.asarray(features.collect([x.astype(np.float64) for x in self.x]) / features.sizes)

    def squared_distance(self, features: Features) -> Array:
        """sum over the coordinates p of a feature of (x_p - x'_p)^2, (n_baselines, n_features)."""
        return self._collected(features, np.square)

    def absolute_distance(self, features: Features) -> Array:
        """sum over the coordinates p of a feature of |x_p - x'_p|, (n_baselines, n_features)."""
        return self._collected(features, np.abs)

    def _collected(self, features: Features, of: Callable[[Array], Array]) -> Array:
        def row(number: int) -> Array:
            pairs = zip(self.x, self.baselines, strict=True)
            return features.collect([of(x.astype(np.float64) - base[number]) for x, base in pairs])

        with np.errstate(over="ignore"):  # the problem refuses distances that are not finite
            return np.stack([row(number) for number in range(len(self.weights))])
