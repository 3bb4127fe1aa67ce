"""The two ends of every ray: x, and the baselines x' with their weights; arrays, so that they outlive the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.features import Features

Leaves = tuple[NDArray[Any], ...]


@dataclass(frozen=True, eq=False)
class Endpoints:
    """x leaf by leaf, and x' likewise with a row per baseline; weights (n_baselines,) sum to one.

    >>> ends = Endpoints((np.array([1.0, 2.0]),), (np.array([[0.0, 4.0]]),), np.ones(1))
    >>> ends.displacement[0].tolist()
    [1.0, -2.0]
    """

    x: Leaves
    baselines: Leaves  # (n_baselines, *leaf.shape)
    weights: Array

    @classmethod
    def of(cls, x: tuple[torch.Tensor, ...], baselines: tuple[torch.Tensor, ...], weights: Array) -> Endpoints:
        """Detached copies in NumPy; bfloat16, which NumPy lacks, becomes float32."""
        return cls(tuple(map(_array, x)), tuple(map(_array, baselines)), weights)

    @property
    def displacement(self) -> Leaves:
        """x - x' on the input's own coordinates, averaged over the baselines."""
        pairs = zip(self.x, self.baselines, strict=True)
        return tuple(x.astype(np.float64) - np.tensordot(self.weights, base, 1) for x, base in pairs)

    def of_features(self, features: Features) -> Array:
        """x of every feature: its value, or the mean over its coordinates."""
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


def _array(tensor: torch.Tensor) -> NDArray[Any]:
    tensor = tensor.detach().cpu()
    return np.array((tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy())
