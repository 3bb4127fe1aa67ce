"""I(A) = sum over S without A of p(a, |S|) D_A v(S), D_A v(S) = sum over B in A of (-1)^(a - b) v(S u B).

Each index is its table p, and equivalently what it makes of a unanimity game: I(A) = w(a, u) for A inside U, |U| = u.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import comb

import numpy as np

from gralis.laws import Array


@dataclass(frozen=True)
class Index:
    """One interaction index of features 0 .. n - 1; a = |A|, s = |S|, u = |U|."""

    name: str
    weight: Callable[[int, int, int], float]  # p(n, a, s)
    share: Callable[[int, int], float]  # w(a, u), u >= a

    def weights(self, n: int, a: int) -> Array:
        """p(a, s) for s = 0 .. n - a."""
        return np.array([self.weight(n, a, s) for s in range(n - a + 1)])


def _sii(n: int, a: int, s: int) -> float:
    return 1 / ((n - a + 1) * comb(n - a, s))


def _stii(order: int) -> Callable[[int, int, int], float]:
    def weight(n: int, a: int, s: int) -> float:
        if a < order:
            return float(s == 0)
        return order / (n * comb(n - 1, s))

    return weight


SII = Index("SII", _sii, lambda a, u: 1 / (u - a + 1))
BANZHAF = Index("Banzhaf", lambda n, a, s: 2.0 ** (a - n), lambda a, u: 2.0 ** (a - u))
MOEBIUS = Index("Moebius", lambda n, a, s: float(s == 0), lambda a, u: float(a == u))


def stii(order: int) -> Index:
    """Shapley-Taylor of this order: Moebius below it, and at it every higher term shared evenly.

    >>> stii(2).weights(3, 2).round(12).tolist()
    [0.666666666667, 0.333333333333]
    """
    return Index("STII", _stii(order), lambda a, u: float(a == u) if a < order else 1 / comb(u, order))
