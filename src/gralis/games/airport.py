"""The airport game: a runway long enough for the largest aircraft serves all, and who pays what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.errors import bad
from gralis.games.exact import Coalition, Number, array, vector
from gralis.games.game import MaskGame


@dataclass(frozen=True)
class Airport(MaskGame):
    """v(S) = max of c_i over S: the cost of the longest runway that the members of S need, c_i >= 0.

    >>> Airport([1, 2, 4]).shapley()
    array([Fraction(1, 3), Fraction(5, 6), Fraction(17, 6)], dtype=object)
    """

    costs: Sequence[Number]

    def __post_init__(self) -> None:
        if not isinstance(self.costs, Sequence | np.ndarray) or isinstance(self.costs, str) or not len(self.costs):
            raise bad("costs", "Airport", "a sequence of at least one number >= 0", repr(self.costs))
        costs = vector(self.costs, len(self.costs), "costs", "Airport")
        if min(costs) < 0:
            raise bad("costs", "Airport", "numbers >= 0", str(min(costs)))
        object.__setattr__(self, "costs", costs)

    @property
    def n_features(self) -> int:  # type: ignore[override]
        return len(self.costs)

    def moebius(self) -> dict[Coalition, Number]:
        """m(T) = (-1)^(|T| + 1) min of c_i over T: maximum by minima, inclusion and exclusion."""
        self._require_few("moebius")
        sets = (t for size in range(1, self.n_features + 1) for t in combinations(range(self.n_features), size))
        found = {t: (-1) ** (len(t) + 1) * min(self.costs[i] for i in t) for t in sets}
        return {t: m for t, m in found.items() if m}

    def shapley(self) -> NDArray[Any]:
        """Each stretch of runway, from one cost to the next larger one, is shared by those who need it."""
        order = sorted(range(self.n_features), key=lambda i: self.costs[i])
        paid: list[Number] = [Fraction(0)] * self.n_features
        so_far: Number = Fraction(0)
        below: Number = Fraction(0)
        for rank, i in enumerate(order):
            so_far += (self.costs[i] - below) * Fraction(1, self.n_features - rank)
            below = self.costs[i]
            paid[i] = so_far
        return array(paid)

    def _values(self, inside: NDArray[np.bool_]) -> NDArray[np.float64]:
        costs = np.array([float(cost) for cost in self.costs])
        return np.asarray(np.where(inside, costs, 0.0).max(1))
