"""Interaction indices of a game by their definitions, in rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from math import comb

import numpy as np

from gralis.arrays import Array
from gralis.paper.rational import Coalition, RationalGame, subsets, without

_BERNOULLI = (Fraction(1), Fraction(-1, 2), Fraction(1, 6))


def difference(v: RationalGame, a: Coalition, s: Coalition) -> Fraction:
    """D_A v(S) = sum over B within A of (-1)^(|A| - |B|) v(S u B)."""
    return sum((v[s | b] * Fraction(-1) ** (len(a) - len(b)) for b in subsets(a)), Fraction(0))


def sii(v: RationalGame, n: int, a: Coalition) -> Fraction:
    """The Shapley interaction index: the mean of D_A v(S) over sizes, and over the S of each size."""
    total = Fraction(0)
    for s in without(n, *a):
        total += Fraction(1, (n - len(a) + 1) * comb(n - len(a), len(s))) * difference(v, a, s)
    return total


def bii(v: RationalGame, n: int, a: Coalition) -> Fraction:
    """The Banzhaf interaction index: the plain mean of D_A v(S)."""
    return sum((difference(v, a, s) for s in without(n, *a)), Fraction(0)) * Fraction(1, 2) ** (n - len(a))


def stii(v: RationalGame, n: int, a: Coalition, order: int) -> Fraction:
    """Shapley-Taylor: over all orders, D_A v at those who come before all of A; below the order D_A v(empty)."""
    if len(a) < order:
        return difference(v, a, frozenset())
    parts = []
    for arrival in permutations(range(n)):
        first = min(arrival.index(i) for i in a)
        parts.append(difference(v, a, frozenset(arrival[:first])))
    return sum(parts, Fraction(0)) / len(parts)


def k_sii(v: RationalGame, n: int, a: Coalition, order: int) -> Fraction:
    """sum over B containing A, |B| <= order, of Bernoulli(|B| - |A|) SII(B)."""
    larger = (a | b for b in without(n, *a) if len(a | b) <= order)
    return sum((_BERNOULLI[len(b) - len(a)] * sii(v, n, b) for b in larger), Fraction(0))


def faithful(v: RationalGame, n: int, order: int) -> Array:
    """Faith-Shap: least squares over all coalitions with Shapley's kernel, exact at the empty and the full one."""
    terms = [t for t in subsets(range(n)) if 1 <= len(t) <= order]
    inner = [t for t in subsets(range(n)) if 0 < len(t) < n]
    weight = np.sqrt([(n - 1) / (comb(n, len(t)) * len(t) * (n - len(t))) for t in inner])
    table = np.array([[float(u <= t) for u in terms] for t in inner])
    values = np.array([float(v[t]) for t in inner])
    # Eliminate the last coefficient, so that the sum of all of them is v of everyone.
    total = float(v[frozenset(range(n))])
    reduced, right = table[:, :-1] - table[:, -1:], values - table[:, -1] * total
    free = np.linalg.lstsq(reduced * weight[:, None], right * weight, rcond=None)[0]
    return np.append(free, total - free.sum())
