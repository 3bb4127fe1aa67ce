"""The definitions in rational arithmetic, by enumeration: rays, games, Definition 1, Shapley values, interactions.

The code follows the definitions letter by letter and shares nothing with the estimators that it checks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from math import comb, prod
from typing import Any, TypeAlias

import numpy as np
from torch import Tensor

Coalition: TypeAlias = frozenset[int]
RationalPoint: TypeAlias = Sequence[Fraction]
RationalGame: TypeAlias = Mapping[Coalition, Fraction]
RationalKernel: TypeAlias = Callable[[Coalition], Fraction]

_ZERO, _ONE = Fraction(0), Fraction(1)


def subsets(members: Iterable[int]) -> list[Coalition]:
    """Every subset, small ones first.

    >>> [sorted(s) for s in subsets({0, 1})]
    [[], [0], [1], [0, 1]]
    """
    listed = sorted(members)
    return [frozenset(s) for size in range(len(listed) + 1) for s in combinations(listed, size)]


def without(n: int, *left_out: int) -> list[Coalition]:
    """The coalitions of n features that contain none of these features."""
    return subsets(set(range(n)) - set(left_out))


def largest(numbers: Iterable[Fraction]) -> Fraction:
    """The largest magnitude, which is zero only if all numbers are zero.

    >>> largest([Fraction(-2), Fraction(1)])
    Fraction(2, 1)
    """
    return max((abs(Fraction(number)) for number in numbers), default=_ZERO)


def uniform(s: Coalition) -> Fraction:
    """pi(S) = 1."""
    return _ONE


@dataclass(frozen=True)
class Polynomial:
    """F(z) = sum over e of c_e prod_j z_j^e_j, keyed by the exponents e.

    >>> F = Polynomial({(2, 1): Fraction(3)})
    >>> F((2, 5)), F.derivative(0).terms
    (Fraction(60, 1), {(1, 1): Fraction(6, 1)})
    """

    terms: Mapping[tuple[int, ...], Fraction]

    @staticmethod
    def multilinear(n: int, coefficients: Mapping[tuple[int, ...], int]) -> Polynomial:
        """c_T prod_{j in T} z_j, keyed by the features of T."""
        return Polynomial({tuple(int(j in t) for j in range(n)): Fraction(c) for t, c in coefficients.items()})

    @staticmethod
    def collected(terms: Iterable[tuple[tuple[int, ...], Fraction]]) -> Polynomial:
        """The sum of terms, in which the same exponents may occur several times."""
        total: dict[tuple[int, ...], Fraction] = {}
        for powers, c in terms:
            total[powers] = total.get(powers, _ZERO) + c
        return Polynomial(total)

    @staticmethod
    def random(rng: np.random.Generator, n: int, degree: int = 3, n_terms: int = 7) -> Polynomial:
        """Small integer coefficients on random products in which no feature has a power above `degree`."""
        exponents = [tuple(int(e) for e in rng.integers(0, degree + 1, n)) for _ in range(n_terms)]
        return Polynomial({e: Fraction(int(rng.integers(1, 6)) * (-1) ** k) for k, e in enumerate(exponents)})

    @property
    def n_features(self) -> int:
        return len(next(iter(self.terms)))

    def __call__(self, z: Sequence[Any]) -> Fraction:
        total = (c * prod((Fraction(z[j]) ** e for j, e in enumerate(powers)), start=_ONE) for powers, c in self)
        return sum(total, _ZERO)

    def __iter__(self) -> Any:
        return iter(self.terms.items())

    def of_rows(self, z: Tensor) -> Tensor:
        """The same function on rows of a tensor, for `explain`."""
        total = z[:, 0] * 0.0
        for powers, c in self:
            total = total + float(c) * (z ** z.new_tensor(powers)).prod(1)
        return total

    def plus(self, other: Polynomial, scale: Fraction = _ONE) -> Polynomial:
        """F + scale G."""
        return Polynomial.collected([*self, *((powers, scale * c) for powers, c in other)])

    def times(self, other: Polynomial) -> Polynomial:
        """F G."""
        pairs = ((a, b, c * d) for a, c in self for b, d in other)
        return Polynomial.collected((tuple(p + q for p, q in zip(a, b, strict=True)), c) for a, b, c in pairs)

    def derivative(self, i: int) -> Polynomial:
        """dF/dz_i."""
        lower = {(*e[:i], e[i] - 1, *e[i + 1 :]): c * e[i] for e, c in self if e[i]}
        return Polynomial(lower or {(0,) * self.n_features: _ZERO})

    def averaged(self, features: Iterable[int]) -> Polynomial:
        """The mean of F over these features, each uniform on [0, 1]: z^e becomes 1 / (e + 1)."""
        out = set(features)
        return Polynomial.collected(
            (tuple(0 if j in out else e for j, e in enumerate(powers)), c / prod(powers[j] + 1 for j in out))
            for powers, c in self
        )

    def mean(self) -> Fraction:
        """E F for features that are uniform on [0, 1]."""
        return self.averaged(range(self.n_features))((0,) * self.n_features)

    def integral(self, start: RationalPoint, step: RationalPoint) -> Fraction:
        """integral over a in [0, 1] of F(start + a step), term by term."""
        total = _ZERO
        for powers, c in self:
            along = [c]  # coefficients of 1, a, a^2, ...
            for j, power in enumerate(powers):
                for _ in range(power):
                    moved = [_ZERO, *(step[j] * d for d in along)]
                    along = [start[j] * d + m for d, m in zip([*along, _ZERO], moved, strict=True)]
            total += sum((d / (k + 1) for k, d in enumerate(along)), _ZERO)
        return total

    def ray(self, x: RationalPoint, base: RationalPoint, t: Coalition) -> list[Fraction]:
        """ray_i(T) = (x_i - x'_i) times the integral of dF/dz_i on the straight line from x' to x_T; 0 outside T."""
        step = [x[j] - base[j] if j in t else _ZERO for j in range(len(x))]
        return [step[i] * self.derivative(i).integral(base, step) if i in t else _ZERO for i in range(len(x))]

    def game(self, x: RationalPoint, base: RationalPoint) -> RationalGame:
        """v(T) = F(x_T) - F(x') for every T."""
        corners = {t: [x[j] if j in t else base[j] for j in range(len(x))] for t in subsets(range(len(x)))}
        return {t: self(corner) - self(base) for t, corner in corners.items()}


def shapley_weight(n: int, size: int) -> Fraction:
    """|S|! (n - |S| - 1)! / n!."""
    return Fraction(1, n * comb(n - 1, size))


def gralis(F: Polynomial, x: RationalPoint, base: RationalPoint, kernel: RationalKernel = uniform) -> list[Fraction]:
    """Definition 1: (1 / Z_i) sum over S without i of w(S) pi(S) ray_i(S u i)."""
    rays = {t: F.ray(x, base, t) for t in subsets(range(len(x)))}
    return _means(len(x), kernel, lambda s, i: rays[s | {i}][i])


def endpoint(v: RationalGame, n: int, kernel: RationalKernel = uniform) -> list[Fraction]:
    """(1 / Z_i) sum over S without i of w(S) pi(S) (v(S u i) - v(S)); the Shapley value for the uniform kernel."""
    return _means(n, kernel, lambda s, i: v[s | {i}] - v[s])


def _means(n: int, kernel: RationalKernel, term: Callable[[Coalition, int], Fraction]) -> list[Fraction]:
    """The mean of term(S, i) over S without i under the weights w(S) pi(S), for every i."""
    means = []
    for i in range(n):
        weight = {s: shapley_weight(n, len(s)) * kernel(s) for s in without(n, i)}
        means.append(sum((w * term(s, i) for s, w in weight.items()), _ZERO) / sum(weight.values(), _ZERO))
    return means


def moebius(v: RationalGame) -> dict[Coalition, Fraction]:
    """m(T) = sum over S within T of (-1)^(|T| - |S|) v(S)."""
    return {t: sum(((-1) ** (len(t) - len(s)) * v[s] for s in subsets(t)), _ZERO) for t in v}


def interaction(v: RationalGame, n: int, i: int, j: int) -> Fraction:
    """Grabisch and Roubens' index: sum over S of |S|! (n - |S| - 2)! / (n - 1)! times the second difference of v."""
    total = _ZERO
    for s in without(n, i, j):
        total += shapley_weight(n - 1, len(s)) * (v[s | {i, j}] - v[s | {i}] - v[s | {j}] + v[s])
    return total
