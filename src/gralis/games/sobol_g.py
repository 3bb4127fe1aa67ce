"""Sobol's G function: a product of one factor per input, so that every index is known for any number of inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.games.anova import Anova
from gralis.games.exact import Coalition, Number, coalitions, non_negatives, points, vector

__all__ = ["SobolG"]


@dataclass(frozen=True)
class SobolG(Anova):
    """F = prod_j (|4 z_j - 2| + a_j) / (1 + a_j), inputs uniform on [0, 1].

    Parameters
    ----------
    a : sequence of numbers, default=(0, 1, 4.5, 9, 99, 99, 99, 99)
        One number a_j >= 0 per input; the smaller it is, the more important is the input.

    Examples
    --------
    >>> SobolG((0, 1, 4.5, 9)).total().round(4)
    array([0.7874, 0.2423, 0.0343, 0.0105])
    >>> round(SobolG((0, 1, 4.5, 9)).variance(), 4)
    0.4652
    """

    a: Sequence[Any] = (0, 1, 4.5, 9, 99, 99, 99, 99)

    def __post_init__(self) -> None:
        a = tuple(float(value) for value in non_negatives(self.a, "a", "SobolG"))
        object.__setattr__(self, "a", a)

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """The number of inputs."""
        return len(self.a)

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """[0, 1] for every input."""
        return ((0.0, 1.0),) * self.n_features

    def __call__(self, z: Any) -> Any:
        """F of every row of z.

        Parameters
        ----------
        z : tensor or array of shape (rows, n_features)
            The points.

        Returns
        -------
        tensor or array of shape (rows,)
            A differentiable tensor for a tensor, an array otherwise.
        """
        z = points(z, self.n_features, "SobolG")
        a = torch.tensor(self.a, device=z.device, dtype=z.dtype) if isinstance(z, torch.Tensor) else np.array(self.a)
        return ((abs(4 * z - 2) + a) / (1 + a)).prod(1)

    def mean(self) -> float:
        """E F = 1, because every factor has mean 1."""
        return 1.0

    def parts(self) -> dict[Coalition, Number]:
        """Var f_T = prod_{j in T} V_j with V_j = 1 / (3 (1 + a_j)^2)."""
        return {t: float(np.prod(self._spread[list(t)])) for t in coalitions(self.n_features, "SobolG.parts")}

    def hoeffding(self, x: object) -> dict[Coalition, Number]:
        """f_T(x) = prod_{j in T} (|4 x_j - 2| - 1) / (1 + a_j).

        Parameters
        ----------
        x : sequence of numbers
            One point.

        Returns
        -------
        dict from tuple of int to float
        """
        at = [float(value) for value in vector(x, self.n_features, "x", "SobolG")]
        factor = [(abs(4 * value - 2) - 1) / (1 + a) for value, a in zip(at, self.a, strict=True)]
        return {t: prod(factor[j] for j in t) for t in self.parts()}

    def variance(self) -> float:
        """Var F = prod_j (1 + V_j) - 1."""
        return float(np.expm1(np.log1p(self._spread).sum()))

    def first_order(self) -> NDArray[Any]:
        """S_i = V_i / Var F."""
        return np.asarray(self._spread / self.variance())

    def total(self) -> NDArray[Any]:
        """S^tot_i = V_i prod_{j != i} (1 + V_j) / Var F."""
        return np.asarray(self._spread * np.prod(1 + self._spread) / (1 + self._spread) / self.variance())

    def shapley_effects(self) -> NDArray[Any]:
        """Sh_i = V_i / Var F times the integral over u in [0, 1] of prod_{j != i} (1 + u V_j)."""
        node, weight = np.polynomial.legendre.leggauss(self.n_features // 2 + 1)  # exact for a polynomial of u
        factor = 1 + (node[:, None] + 1) / 2 * self._spread
        others = factor.prod(1, keepdims=True) / factor  # (n_nodes, n_features)
        return np.asarray(self._spread * (weight / 2 @ others) / self.variance())

    def pairs(self) -> dict[Coalition, Number]:
        """S_ij = V_i V_j / Var F."""
        spread, variance = self._spread, self.variance()
        return {(i, j): float(spread[i] * spread[j]) / variance for i, j in combinations(range(self.n_features), 2)}

    @property
    def _spread(self) -> Array:
        """V_j, the variance of the factor of input j."""
        return np.asarray(1 / (3 * (1 + np.array(self.a)) ** 2))
