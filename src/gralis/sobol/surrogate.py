"""A polynomial of the quantile levels with known Sobol indices, used as a control variate.

M(u) = c_0 + sum_i sum_k c_ik P_k(u_i) + sum_{i<j} sum_{k,m} c_ijkm P_k(u_i) P_m(u_j),   P_k orthonormal Legendre,

so the variance of its term T is the sum of the squared coefficients of T. The polynomial is fitted by least squares to
one half of the replicates and used on the other half, so it biases no estimate. Its degrees are those with which each
half predicts the other best. Without a useful prediction there is no surrogate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.sobol.design import PickFreezeDesign

_DEGREES = (1, 2, 3, 4, 6, 8, 12)  # of the terms of one input
_PAIR_DEGREES = (0, 2, 3, 4, 6, 8, 10)  # k + m of the terms of two inputs
_MOST_TERMS = 256
_MOST_LINEAR = 1024  # terms, if there are only linear ones
_BLOCK = 8192
_MOST_EQUATIONS = 2**14  # of each half; this is enough for the coefficients at any budget
_EQUATIONS_PER_TERM = 8


@dataclass(frozen=True, eq=False)
class Basis:
    """The terms of the polynomial in this order: the constant, all P_k(u_i), all P_k(u_i) P_m(u_j)."""

    n: int
    degree: int
    pair_degree: int

    @property
    def _powers(self) -> list[tuple[int, int]]:
        return [(k, d - k) for d in range(2, self.pair_degree + 1) for k in range(1, d)]

    @property
    def n_terms(self) -> int:
        """The number of coefficients."""
        return 1 + self.n * self.degree + len(self._pairs) * len(self._powers)

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return list(combinations(range(self.n), 2)) if self.pair_degree else []

    def at(self, u: Array) -> Array:
        """Every term at the levels (rows, n), an array (rows, n_terms)."""
        highest = max(self.degree, self.pair_degree - 1)
        scale = np.sqrt(2 * np.arange(highest + 1) + 1)
        p = np.polynomial.legendre.legvander(2 * u - 1, highest) * scale  # (rows, n, highest + 1)
        columns = [np.ones((len(u), 1)), p[:, :, 1 : self.degree + 1].reshape(len(u), -1)]
        if self._pairs:
            i, j = np.array(self._pairs).T
            columns += [p[:, i, k] * p[:, j, m] for k, m in self._powers]
        return np.concatenate(columns, axis=1)

    def within(self, other: Basis) -> NDArray[np.int64]:
        """The places of the terms of this basis among those of a larger basis."""
        single = 1 + np.arange(self.n)[:, None] * other.degree + np.arange(self.degree)
        start = 1 + self.n * other.degree
        pairs = start + np.arange(len(self._pairs) * len(self._powers))  # in the order of their degree
        return np.concatenate([[0], single.ravel(), pairs]).astype(np.int64)

    def parts(self, coefficients: Array) -> tuple[Array, Array]:
        """The variances of the terms of single inputs, (n,), and of pairs, (n, n) and symmetric."""
        squares = coefficients**2
        single = squares[1 : 1 + self.n * self.degree].reshape(self.n, self.degree).sum(1)
        pair = np.zeros((self.n, self.n))
        if self._pairs:
            i, j = np.array(self._pairs).T
            pair[i, j] = squares[1 + self.n * self.degree :].reshape(len(self._powers), -1).sum(0)
        return single, pair + pair.T


@dataclass(frozen=True, eq=False)
class LegendreSurrogate:
    """The polynomial M: a basis and its coefficients."""

    basis: Basis
    coefficients: Array

    def at(self, u: Array) -> Array:
        """M at the levels (rows, n), computed in blocks because the basis has many columns."""
        blocks = np.array_split(u, -(-len(u) // _BLOCK))
        return np.concatenate([self.basis.at(block) @ self.coefficients for block in blocks])


def fit(
    designs: Sequence[PickFreezeDesign], values: Sequence[Array]
) -> tuple[LegendreSurrogate, LegendreSurrogate] | None:
    """The surrogate of the even and of the odd replicates, each fitted to the other half; None if it does not help."""
    n, n_points = designs[0].place.shape[1], designs[0].n_points
    per_replicate = min(n_points, max(1, _MOST_EQUATIONS // (len(designs) // 2 or 1)))
    most = max(_MOST_TERMS, min(n + 1, _MOST_LINEAR))
    allowed = min(most, per_replicate * (len(designs) // 2) // _EQUATIONS_PER_TERM)
    candidates = [
        basis
        for basis in (Basis(n, p, q) for p, q in product(_DEGREES, _PAIR_DEGREES))
        if basis.n_terms <= allowed and (n > 1 or not basis.pair_degree)
    ]
    if not candidates:
        return None
    full = Basis(n, max(b.degree for b in candidates), max(b.pair_degree for b in candidates))
    halves = [_normal(full, designs[half::2], values[half::2], per_replicate) for half in (0, 1)]
    best, error = None, (halves[0].spread + halves[1].spread) * (1 - 1e-3)
    for basis in candidates:
        where = basis.within(full)
        solved = [half.solve(where) for half in halves]
        left = halves[0].left(where, solved[1]) + halves[1].left(where, solved[0])
        if left < error:
            best, error = (LegendreSurrogate(basis, solved[1]), LegendreSurrogate(basis, solved[0])), left
    return best


@dataclass(frozen=True, eq=False)
class _Normal:
    """The normal equations of one half of the replicates, divided by the number of equations."""

    gram: Array
    right: Array
    square: float

    @property
    def spread(self) -> float:
        """The variance of the values."""
        return self.square - float(self.right[0]) ** 2

    def solve(self, where: NDArray[np.int64]) -> Array:
        """The coefficients of the terms at these places."""
        gram = self.gram[np.ix_(where, where)]
        return np.asarray(np.linalg.solve(gram + 1e-9 * np.eye(len(where)), self.right[where]), dtype=np.float64)

    def left(self, where: NDArray[np.int64], coefficients: Array) -> float:
        """The mean square of the residuals of these coefficients on this half."""
        gram = self.gram[np.ix_(where, where)]
        return float(self.square - 2 * coefficients @ self.right[where] + coefficients @ gram @ coefficients)


def _normal(basis: Basis, designs: Sequence[PickFreezeDesign], values: Sequence[Array], per_replicate: int) -> _Normal:
    gram, right, square = np.zeros((basis.n_terms,) * 2), np.zeros(basis.n_terms), 0.0
    for design, replicate in zip(designs, values, strict=True):
        kept = np.linspace(0, design.n_points - 1, per_replicate).astype(np.int64)
        terms = basis.at(design.levels(slice(0, design.n_points))[kept])
        gram += terms.T @ terms
        right += terms.T @ replicate[kept]
        square += float(replicate[kept] @ replicate[kept])
    n = per_replicate * len(designs)
    return _Normal(gram / n, right / n, square / n)
