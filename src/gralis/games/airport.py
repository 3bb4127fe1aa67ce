"""The airport game: a runway that is long enough for the largest aircraft serves all; who pays how much?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks
from gralis.games.exact import Coalition, Number, array, coalitions, non_negatives
from gralis.games.game import MaskGame

__all__ = ["Airport"]


@dataclass(frozen=True)
class Airport(MaskGame):
    """v(S) = max of c_i over S: the cost of the longest runway that the members of S need, c_i >= 0.

    Parameters
    ----------
    costs : sequence of numbers
        The cost c_i of the runway that each aircraft needs.

    Examples
    --------
    >>> Airport([1, 2, 4]).shapley()
    array([Fraction(1, 3), Fraction(5, 6), Fraction(17, 6)], dtype=object)
    """

    costs: Sequence[Number]

    def __post_init__(self) -> None:
        object.__setattr__(self, "costs", non_negatives(self.costs, "costs", "Airport"))

    @property
    def n_features(self) -> int:  # type: ignore[override]
        """The number of aircraft."""
        return len(self.costs)

    def moebius(self) -> dict[Coalition, Number]:
        """m(T) = (-1)^(|T| + 1) min of c_i over T: a maximum in terms of minima, by inclusion and exclusion."""
        sets = coalitions(self.n_features, "Airport.moebius")
        coefficients = {t: (-1) ** (len(t) + 1) * min(self.costs[i] for i in t) for t in sets}
        return {t: m for t, m in coefficients.items() if m}

    def shapley(self) -> NDArray[Any]:
        """Each stretch of runway, from one cost to the next larger one, is shared equally by those that need it."""
        order = sorted(range(self.n_features), key=lambda i: self.costs[i])
        paid: list[Number] = [Fraction(0)] * self.n_features
        so_far: Number = Fraction(0)
        below: Number = Fraction(0)
        for rank, i in enumerate(order):
            so_far += (self.costs[i] - below) * Fraction(1, self.n_features - rank)
            below = self.costs[i]
            paid[i] = so_far
        return array(paid)

    def _values(self, inside: Masks) -> Array:
        costs = np.array([float(cost) for cost in self.costs])
        return np.asarray(np.where(inside, costs, 0.0).max(1))
