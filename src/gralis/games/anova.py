"""Functions whose Hoeffding decomposition is known: F = mean + sum over T of f_T, and the Sobol indices that follow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from fractions import Fraction
from itertools import combinations
from typing import Any

from numpy.typing import NDArray

from gralis.games.exact import Coalition, Number, array, by_feature

__all__ = ["Anova"]


class Anova(ABC):
    """Var F = sum over T of Var f_T, for independent inputs that are uniform on `bounds`.

    A class that derives from it defines `n_features`, `mean`, `parts` and `hoeffding`.

    Attributes
    ----------
    n_features : int
        The number of inputs of F.
    """

    n_features: int

    @abstractmethod
    def mean(self) -> Number:
        """E F."""

    @abstractmethod
    def parts(self) -> dict[Coalition, Number]:
        """Var f_T for every T; a T that is not listed has f_T = 0."""

    @abstractmethod
    def hoeffding(self, x: object) -> dict[Coalition, Number]:
        """f_T(x) for every T; a T that is not listed has f_T = 0.

        Parameters
        ----------
        x : sequence of numbers
            One point.

        Returns
        -------
        dict from tuple of int to number
        """

    def variance(self) -> Number:
        """Var F = sum over T of Var f_T."""
        return sum(self.parts().values(), Fraction(0))

    def first_order(self) -> NDArray[Any]:
        """S_i = Var f_i / Var F, for every input i."""
        return self._index((t[0], var) for t, var in self.parts().items() if len(t) == 1)

    def total(self) -> NDArray[Any]:
        """S^tot_i = sum over T with i of Var f_T / Var F, for every input i."""
        return self._index((i, var) for t, var in self.parts().items() for i in t)

    def shapley_effects(self) -> NDArray[Any]:
        """Sh_i = sum over T with i of Var f_T / |T| / Var F, for every input i; they sum to one."""
        return self._index((i, var * Fraction(1, len(t))) for t, var in self.parts().items() for i in t)

    def pairs(self) -> dict[Coalition, Number]:
        """S_ij = Var f_ij / Var F, the interaction of each pair alone."""
        parts, variance = self.parts(), self.variance()
        return {pair: parts.get(pair, Fraction(0)) / variance for pair in combinations(range(self.n_features), 2)}

    def closed(self) -> dict[Coalition, Number]:
        """S^closed_ij = S_i + S_j + S_ij, what the two inputs of each pair explain together."""
        first = self.first_order()
        return {(i, j): first[i] + first[j] + index for (i, j), index in self.pairs().items()}

    def _index(self, entries: Iterable[tuple[int, Number]]) -> NDArray[Any]:
        """The entries added up by feature, as shares of the variance."""
        variance = self.variance()
        return array(value / variance for value in by_feature(entries, self.n_features))
