"""The glove game: only a left glove and a right glove together are worth something."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks
from gralis.checks import whole
from gralis.games.exact import Coalition, Number, array, coalitions
from gralis.games.game import MaskGame

__all__ = ["Glove"]


@dataclass(frozen=True)
class Glove(MaskGame):
    """v(S) = min(left gloves in S, right gloves in S).

    Parameters
    ----------
    n_left : int
        The number of features that hold a left glove each. They come first.
    n_right : int
        The number of features that hold a right glove each.

    Examples
    --------
    >>> Glove(1, 2).shapley()
    array([Fraction(2, 3), Fraction(1, 6), Fraction(1, 6)], dtype=object)
    """

    n_left: int
    n_right: int

    def __post_init__(self) -> None:
        whole(self.n_left, "n_left", 1, "Glove")
        whole(self.n_right, "n_right", 1, "Glove")

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """The number of gloves."""
        return int(self.n_left + self.n_right)

    def moebius(self) -> dict[Coalition, Number]:
        """m(T) = (-1)^|T| C(|T| - 2, l - 1) for a T with l >= 1 left gloves and at least one right glove."""
        coefficients: dict[Coalition, Number] = {}
        for t in coalitions(self.n_features, "Glove.moebius"):
            left = sum(i < self.n_left for i in t)
            if 0 < left < len(t):
                coefficients[t] = Fraction((-1) ** len(t) * comb(len(t) - 2, left - 1))
        return coefficients

    def shapley(self) -> NDArray[Any]:
        """Sh_i = P(the features before i hold more gloves of the other hand), all orders equally likely."""
        left, right = self._wanted(self.n_left, self.n_right), self._wanted(self.n_right, self.n_left)
        return array([left] * self.n_left + [right] * self.n_right)

    def _wanted(self, n_same: int, n_other: int) -> Fraction:
        """P(more of the other hand than of the same hand among the predecessors of one player)."""
        others = self.n_features - 1
        total = Fraction(0)
        for before in range(others + 1):  # the number of predecessors is uniform on 0 .. n - 1
            ways = sum(comb(n_same - 1, a) * comb(n_other, before - a) for a in range((before + 1) // 2))
            total += Fraction(ways, comb(others, before))
        return total / self.n_features

    def _values(self, inside: Masks) -> Array:
        left, right = inside[:, : self.n_left].sum(1), inside[:, self.n_left :].sum(1)
        return np.asarray(np.minimum(left, right), dtype=np.float64)
