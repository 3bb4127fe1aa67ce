"""Coalition games with known Moebius coefficients: v(S) = sum over T within S of m(T), and what follows from m."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations
from typing import Any

import torch
from numpy.typing import NDArray

from gralis.arrays import Array, Masks, to_numpy
from gralis.checks import is_whole
from gralis.errors import bad
from gralis.games.exact import Coalition, Number, array, by_feature, coalition

__all__ = ["Game", "MaskGame"]


class Game(ABC):
    """A game v with v(empty) = 0, known by its Moebius coefficients; answers are exact if these are rational.

    A class that derives from it defines `n_features` and `moebius`.

    Attributes
    ----------
    n_features : int
        The number of features, which are the players of the game.
    """

    n_features: int

    @abstractmethod
    def moebius(self) -> dict[Coalition, Number]:
        """m(T) = sum over S within T of (-1)^(|T| - |S|) v(S).

        Returns
        -------
        dict from tuple of int to number
            The coefficients by sorted feature indices; a coalition that is not listed has m(T) = 0.
        """

    def value(self, members: object) -> Number:
        """v(S) = sum over T within S of m(T).

        Parameters
        ----------
        members : iterable of int
            The features in S.

        Returns
        -------
        Fraction or float
        """
        inside = set(coalition(members, self.n_features, "members", type(self).__name__))
        return sum((m for t, m in self.moebius().items() if inside.issuperset(t)), Fraction(0))

    def shapley(self) -> NDArray[Any]:
        """Sh_i = sum over T with i of m(T) / |T|, for every feature i."""
        return self._shared(lambda size: Fraction(1, size))

    def banzhaf(self) -> NDArray[Any]:
        """B_i = sum over T with i of m(T) / 2^(|T| - 1), for every feature i."""
        return self._shared(lambda size: Fraction(1, 2 ** (size - 1)))

    def interactions(self, order: int = 2) -> dict[Coalition, Number]:
        """SII(A) = sum over T with A inside of m(T) / (|T| - |A| + 1), for every A of this order.

        Parameters
        ----------
        order : int, default=2
            The number of features in A.

        Returns
        -------
        dict from tuple of int to number
            The Shapley interaction indices by sorted feature indices.
        """
        if not is_whole(order, 1, self.n_features):
            allowed = f"a whole number from 1 to the {self.n_features} features"
            raise bad("order", "interactions", allowed, repr(order))
        indices: dict[Coalition, Number] = {a: Fraction(0) for a in combinations(range(self.n_features), order)}
        for t, m in self.moebius().items():
            for a in combinations(t, order):
                indices[a] += m * Fraction(1, len(t) - order + 1)
        return indices

    def _shared(self, share: Callable[[int], Fraction]) -> NDArray[Any]:
        """sum over T with i of m(T) share(|T|), for every i."""
        entries = ((i, m * share(len(t))) for t, m in self.moebius().items() for i in t)
        return array(by_feature(entries, self.n_features))


class MaskGame(Game):
    """A game without a function behind it: callable on 0/1 masks (rows, n), that is with x = ones and baseline = 0."""

    def __call__(self, masks: Any) -> Any:
        """v of every row, (rows,).

        Parameters
        ----------
        masks : tensor or array of shape (rows, n_features)
            Rows of 0 and 1, where 1 marks a member.

        Returns
        -------
        tensor or array of shape (rows,)
            A tensor for a tensor, an array otherwise.
        """
        owner, allowed = type(self).__name__, f"0/1 rows of shape (rows, {self.n_features})"
        rows = to_numpy(masks)
        if rows.ndim != 2 or rows.shape[1] != self.n_features:
            raise bad("masks", owner, allowed, f"shape {rows.shape}")
        inside = rows == 1
        if not (inside | (rows == 0)).all():
            wrong = rows[~(inside | (rows == 0))].ravel()[0]
            advice = "Explain it from x = ones and baseline = 0 with a plan that needs values only."
            raise bad("masks", owner, allowed, f"the entry {wrong}", advice)
        values = self._values(inside)
        if not isinstance(masks, torch.Tensor):
            return values
        floating = masks.dtype if masks.dtype.is_floating_point else torch.get_default_dtype()
        return torch.from_numpy(values).to(device=masks.device, dtype=floating)

    @abstractmethod
    def _values(self, inside: Masks) -> Array:
        """v of every row of membership."""
