"""I(A) = sum over S without A of p(a, |S|) D_A v(S), D_A v(S) = sum over B in A of (-1)^(a - b) v(S u B).

An index is given by its table p. Equivalently, it is given by its value for unanimity games: for the game of U with
|U| = u, I(A) = w(a, u) if A lies inside U.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np

from gralis.arrays import Array


@dataclass(frozen=True)
class Index:
    """One interaction index of features 0 .. n - 1, with a = |A|, s = |S| and u = |U|.

    Attributes
    ----------
    name : str
        The name of the index.
    weight : callable
        p(n, a, s): the weight of D_A v(S) among n features.
    share : callable
        w(a, u): the value of A in the unanimity game of U, for u >= a.
    """

    name: str
    weight: Callable[[int, int, int], Fraction]
    share: Callable[[int, int], float]

    def weights(self, n: int, a: int) -> Array:
        """p(a, s) C(n, s + b) in row b = 0 .. a and column s = 0 .. n - a: the weight of all coalitions of one size.

        >>> SII.weights(2, 1).tolist()
        [[0.5, 1.0], [1.0, 0.5]]
        """
        p = [self.weight(n, a, s) for s in range(n - a + 1)]
        return np.array([[float(weight * comb(n, s + b)) for s, weight in enumerate(p)] for b in range(a + 1)])


def _sii(n: int, a: int, s: int) -> Fraction:
    return Fraction(1, (n - a + 1) * comb(n - a, s))


SII = Index("SII", _sii, lambda a, u: 1 / (u - a + 1))
BANZHAF = Index("Banzhaf", lambda n, a, s: Fraction(1, 2 ** (n - a)), lambda a, u: 2.0 ** (a - u))


def stii(order: int) -> Index:
    """The Shapley-Taylor index of this order.

    Below the order it is the Moebius coefficient. At the order it also shares every higher term evenly.

    >>> print(stii(2).weight(3, 2, 0), stii(2).weight(3, 2, 1))
    2/3 1/3
    """

    def weight(n: int, a: int, s: int) -> Fraction:
        return Fraction(s == 0) if a < order else Fraction(order, n * comb(n - 1, s))

    return Index("STII", weight, lambda a, u: float(a == u) if a < order else 1 / comb(u, order))


def k_sii(order: int) -> Index:
    """k-SII(A) = sum over the supersets B of A, |B| <= order, of Bernoulli(b - a) SII(B). It is efficient.

    >>> [k_sii(2).share(1, u) for u in (1, 2, 3)]  # with the pairs' 1/2 each: 3 singles and 3 pairs of 3 features
    [1.0, 0.0, -0.16666666666666666]
    """
    bernoulli = _bernoulli(order)

    def weight(n: int, a: int, s: int) -> Fraction:
        """D_B v is a signed sum of D_A v. Of the j features of B outside A, e lie in S and j - e do not."""
        total = Fraction(0)
        for j in range(order - a + 1):
            for e in range(max(0, j - (n - a - s)), min(j, s) + 1):
                ways = (-1) ** (j - e) * comb(s, e) * comb(n - a - s, j - e)
                total += bernoulli[j] * ways * _sii(n, a + j, s - e)
        return total

    def share(a: int, u: int) -> float:
        beside = range(min(order, u) - a + 1)
        return float(sum(bernoulli[j] * Fraction(comb(u - a, j), u - a - j + 1) for j in beside))

    return Index("k-SII", weight, share)


def _bernoulli(order: int) -> list[Fraction]:
    """B_0 .. B_order with B_1 = -1/2: sum over j <= m of C(m + 1, j) B_j = 0."""
    numbers = [Fraction(1)]
    for m in range(1, order + 1):
        numbers.append(-sum((comb(m + 1, j) * b for j, b in enumerate(numbers)), Fraction(0)) / (m + 1))
    return numbers
