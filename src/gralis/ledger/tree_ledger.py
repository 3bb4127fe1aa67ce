"""The ledger of a tree ensemble. It keeps the trees, because all their jumps along all rays are finite sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks
from gralis.errors import GralisError
from gralis.kernels import Kernel, SizeKernel
from gralis.kernels.stored import TableOfSizes
from gralis.ledger.ledger import Ledger
from gralis.trees import TreeEnsemble, pairs_of_row, phi_of_rows, shapley_weight, singles_of_rows, sum_of_values
from gralis.trees.indices import IndexWeight

__all__ = ["TreeLedger"]


@dataclass(frozen=True, eq=False)
class TreeLedger:
    """Trees with one output, an input, and the baselines of its rays.

    Attributes
    ----------
    trees : TreeEnsemble
        The trees of the output that is explained.
    x : array of shape (n_columns,)
        The encoded input.
    baselines : array of shape (n_baselines, n_columns)
        The encoded baselines.
    weights : array of shape (n_baselines,)
        The weights of the baselines.
    known_shapley : array of shape (n_features,) or None, default=None
        The Shapley values, if they were computed together with those of other rows.
    """

    trees: TreeEnsemble
    x: Array
    baselines: Array
    weights: Array
    known_shapley: Array | None = None

    keeps_rows: ClassVar[bool] = False
    has_points: ClassVar[bool] = False
    has_values: ClassVar[bool] = True
    n_replicates: ClassVar[int] = 1

    kept_rows: ClassVar[None] = None

    @property
    def n_features(self) -> int:
        return self.trees.n_features

    def require_rows(self, purpose: str) -> Ledger:
        """Raise an error, because no single ray was evaluated."""
        raise GralisError(
            f"{purpose} needs the rows of sampled or enumerated rays, and on trees all rays were summed up in closed "
            f"form; explain with plan='values' or plan='endpoint' to sample coalitions instead."
        )

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The arrays of the trees, the input and the baselines, by name."""
        ends = {"x": self.x, "baselines": self.baselines, "weights": self.weights}
        return {**self.trees.arrays(), **{f"of_rays.{name}": array for name, array in ends.items()}}

    @staticmethod
    def stored(arrays: Mapping[str, Any], about: Mapping[str, Any]) -> TreeLedger:
        """The ledger with these arrays, as `arrays` and `TreeEnsemble.about` gave them."""
        ends = [np.array(arrays[f"of_rays.{name}"]) for name in ("x", "baselines", "weights")]
        nodes = {name: np.array(array) for name, array in arrays.items() if not name.startswith("of_rays.")}
        return TreeLedger(TreeEnsemble.stored(nodes, about), *ends)

    def phi(self, kernel: Kernel) -> Array:
        """phi_i = E_q[ray_i(T) | i in T] under this kernel, (n_features,)."""
        return np.asarray(phi_of_rows(self.trees, self.x[None], self.baselines, kernel, self.weights)[0, 0])

    def of_one_size(self, size: int) -> Array:
        """phi if only coalitions of this size counted: 1 for single features, n for integrated gradients."""
        weights = tuple(float(s == size - 1) for s in range(self.n_features))
        return self.phi(SizeKernel(TableOfSizes(weights)))

    def shapley(self) -> Array:
        """The Shapley values of the game, (n_features,)."""
        return self.singles(shapley_weight) if self.known_shapley is None else self.known_shapley

    def singles(self, weight: IndexWeight) -> Array:
        """The index with weights p(n, 1, s) of every feature, (n_features,)."""
        return np.asarray(singles_of_rows(self.trees, self.x[None], self.baselines, weight, self.weights)[0, 0])

    def pairs(self, weight: IndexWeight) -> Array:
        """The index with weights p(n, 2, s) of every pair, above the diagonal, (n_features, n_features)."""
        return np.asarray(pairs_of_row(self.trees, self.x, self.baselines, weight, self.weights)[0])

    def values_of(self, masks: Masks) -> Array:
        """v(T) = F(x_T) - F(x') of every coalition, averaged over the baselines, by running down the trees."""
        taken = masks[:, self.trees.groups]  # (n_coalitions, n_columns)
        values = np.zeros(len(masks))
        for baseline, weight in zip(self.baselines, self.weights, strict=True):
            nothing = self.trees.outputs(baseline[None])[0, 0]
            values += weight * (self.trees.outputs(np.where(taken, self.x, baseline))[:, 0] - nothing)
        return values

    @cached_property
    def sum_of_values(self) -> float:
        """sum_T v(T) / (|T| C(n, |T|)), averaged over the baselines."""
        return float(sum_of_values(self.trees, self.x, self.baselines, self.weights)[0])
