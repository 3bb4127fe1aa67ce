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

from gralis.errors import bad
from gralis.games.anova import Anova
from gralis.games.exact import Coalition, Number, vector


@dataclass(frozen=True)
class SobolG(Anova):
    """F = prod_j (|4 z_j - 2| + a_j) / (1 + a_j), inputs uniform on [0, 1]; a_j >= 0, the smaller the more important.

    >>> SobolG((0, 1, 4.5, 9)).total().round(4)
    array([0.7874, 0.2423, 0.0343, 0.0105])
    >>> round(SobolG((0, 1, 4.5, 9)).variance(), 4)
    0.4652
    """

    a: Sequence[Any] = (0, 1, 4.5, 9, 99, 99, 99, 99)

    def __post_init__(self) -> None:
        if not isinstance(self.a, Sequence | np.ndarray) or isinstance(self.a, str) or not len(self.a):
            raise bad("a", "SobolG", "a sequence of at least one number >= 0", repr(self.a))
        a = tuple(float(value) for value in vector(self.a, len(self.a), "a", "SobolG"))
        if min(a) < 0:
            raise bad("a", "SobolG", "numbers >= 0", str(min(a)))
        object.__setattr__(self, "a", a)

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return len(self.a)

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """[0, 1] for every input."""
        return ((0.0, 1.0),) * self.n_features

    def __call__(self, z: Any) -> Any:
        z = z if isinstance(z, torch.Tensor) else np.asarray(z)
        if z.ndim != 2 or z.shape[1] != self.n_features:
            raise bad("z", "SobolG", f"points of shape (rows, {self.n_features})", f"shape {tuple(z.shape)}")
        a = torch.tensor(self.a, device=z.device, dtype=z.dtype) if isinstance(z, torch.Tensor) else np.array(self.a)
        return ((abs(4 * z - 2) + a) / (1 + a)).prod(1)

    def mean(self) -> float:
        """1, for every factor has mean 1."""
        return 1.0

    def parts(self) -> dict[Coalition, Number]:
        """Var f_T = prod_{j in T} V_j with V_j = 1 / (3 (1 + a_j)^2)."""
        if self.n_features > 20:
            raise bad("n_features", "SobolG.parts", "at most 20", str(self.n_features), "There are 2^n parts.")
        sets = (t for size in range(1, self.n_features + 1) for t in combinations(range(self.n_features), size))
        return {t: float(np.prod(self._spread[list(t)])) for t in sets}

    def hoeffding(self, x: object) -> dict[Coalition, Number]:
        """f_T(x) = prod_{j in T} (|4 x_j - 2| - 1) / (1 + a_j)."""
        at = [float(value) for value in vector(x, self.n_features, "x", "SobolG")]
        factor = [(abs(4 * value - 2) - 1) / (1 + a) for value, a in zip(at, self.a, strict=True)]
        return {t: prod(factor[j] for j in t) for t in self.parts()}

    def variance(self) -> float:
        """prod_j (1 + V_j) - 1."""
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
    def _spread(self) -> NDArray[np.float64]:
        """V_j, the variance of the factor of input j."""
        return np.asarray(1 / (3 * (1 + np.array(self.a)) ** 2))
