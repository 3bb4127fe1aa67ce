"""The glove game: only a left glove and a right glove together are worth something."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.errors import bad
from gralis.games.exact import Coalition, Number, array
from gralis.games.game import MaskGame


@dataclass(frozen=True)
class Glove(MaskGame):
    """v(S) = min(left gloves in S, right gloves in S); the first n_left features hold a left glove each.

    >>> Glove(1, 2).shapley()
    array([Fraction(2, 3), Fraction(1, 6), Fraction(1, 6)], dtype=object)
    """

    n_left: int
    n_right: int

    def __post_init__(self) -> None:
        for parameter, count in (("n_left", self.n_left), ("n_right", self.n_right)):
            if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
                raise bad(parameter, "Glove", "an int >= 1", repr(count))

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return int(self.n_left + self.n_right)

    def moebius(self) -> dict[Coalition, Number]:
        """m(T) = (-1)^|T| C(|T| - 2, l - 1) for a T with l left and at least one right glove, l >= 1."""
        self._require_few("moebius")
        found: dict[Coalition, Number] = {}
        for size in range(2, self.n_features + 1):
            for t in combinations(range(self.n_features), size):
                left = sum(i < self.n_left for i in t)
                if 0 < left < size:
                    found[t] = Fraction((-1) ** size * comb(size - 2, left - 1))
        return found

    def shapley(self) -> NDArray[Any]:
        """Sh_i = P(who arrived before i holds more gloves of the other hand), all orders equally likely."""
        left, right = self._wanted(self.n_left, self.n_right), self._wanted(self.n_right, self.n_left)
        return array([left] * self.n_left + [right] * self.n_right)

    def _wanted(self, n_same: int, n_other: int) -> Fraction:
        """P(more of the other hand than of the same one among the predecessors of one player)."""
        others = self.n_features - 1
        total = Fraction(0)
        for before in range(others + 1):  # the number of predecessors is uniform on 0 .. n - 1
            ways = sum(comb(n_same - 1, a) * comb(n_other, before - a) for a in range((before + 1) // 2))
            total += Fraction(ways, comb(others, before))
        return total / self.n_features

    def _values(self, inside: NDArray[np.bool_]) -> NDArray[np.float64]:
        left, right = inside[:, : self.n_left].sum(1), inside[:, self.n_left :].sum(1)
        return np.asarray(np.minimum(left, right), dtype=np.float64)
