"""m(T) = sum over S in T of (-1)^(t - s) v(S), for all coalitions at once in n 2^n additions.

Every index follows from m. A coalition has a binary code in which feature j is bit j, so v[0] belongs to the empty
coalition.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import comb

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.explainers.indices import Index

Coalition = tuple[int, ...]


def moebius(v: Array) -> Array:
    """The Moebius coefficients of a whole game, (2^n,).

    >>> moebius(np.array([0.0, 2.0, 3.0, 9.0])).tolist()
    [0.0, 2.0, 3.0, 4.0]
    """
    m = np.array(v, dtype=np.float64)
    for bit in range(int(np.log2(len(v)))):
        pairs = m.reshape(-1, 2, 1 << bit)
        pairs[:, 1] -= pairs[:, 0]
    return m


def sizes(n_features: int) -> NDArray[np.int64]:
    """|T| of every code."""
    codes = np.arange(2**n_features)
    return np.asarray(sum((codes >> bit) & 1 for bit in range(n_features)))


def coalitions(n_features: int, order: int) -> tuple[Coalition, ...]:
    """All coalitions of 1 .. order features, smaller ones first.

    >>> coalitions(3, 2)
    ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))
    """
    return tuple(c for size in range(1, order + 1) for c in itertools.combinations(range(n_features), size))


def index_values(m: Array, index: Index, sets: Sequence[Coalition]) -> Array:
    """I(A) = sum over U containing A of w(a, u) m(U), for every A in `sets`."""
    n = int(np.log2(len(m)))
    size, codes = sizes(n), np.arange(len(m))
    values = np.empty(len(sets))
    weighted: dict[int, Array] = {}
    for row, members in enumerate(sets):
        a, code = len(members), sum(1 << j for j in members)
        if a not in weighted:
            share = np.array([index.share(a, u) if u >= a else 0.0 for u in range(n + 1)])
            weighted[a] = share[size] * m
        values[row] = weighted[a][(codes & code) == code].sum()
    return values


def faith(m: Array, order: int, sets: Sequence[Coalition]) -> Array:
    """Faith-Shap of this order: m(A) plus the best fit of all larger coalitions by terms up to this order.

    FSII(A) = m(A) + (-1)^(l - a) a / (l + a) C(l, a) sum_{U > A, u > l} C(u - 1, l) / C(u + l - 1, l + a) m(U)
    """
    n = int(np.log2(len(m)))
    size, codes = sizes(n), np.arange(len(m))
    values = np.empty(len(sets))
    for row, members in enumerate(sets):
        a, code = len(members), sum(1 << j for j in members)
        larger = range(order + 1, n + 1)
        above = np.array([0.0] * (order + 1) + [comb(u - 1, order) / comb(u + order - 1, order + a) for u in larger])
        inside = (codes & code) == code
        scale = (-1) ** (order - a) * a / (order + a) * comb(order, a)
        values[row] = m[code] + scale * (above[size[inside]] @ m[inside])
    return values
