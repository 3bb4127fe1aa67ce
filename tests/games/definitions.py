"""Definitions of the answers of a game, letter by letter."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from fractions import Fraction

from gralis.games import Game, Multilinear
from reference import (
    coalitions,
    shapley_weight,
    subsets,
    without,
)

Value = Callable[[frozenset[int]], Fraction]


def moebius(value: Value, n: int) -> dict[tuple[int, ...], Fraction]:
    """sum over S within T of (-1)^(|T| - |S|) v(S)."""
    return {
        tuple(sorted(t)): sum(((-1) ** (len(t) - len(s)) * value(s) for s in subsets(t)), Fraction(0))
        for t in coalitions(n)
    }


def shapley(value: Value, n: int) -> list[Fraction]:
    """The mean marginal contribution, with Shapley's weights."""
    return [
        sum((shapley_weight(n, len(s)) * (value(s | {i}) - value(s)) for s in without(n, i)), Fraction(0))
        for i in range(n)
    ]


def interaction(value: Value, n: int, a: tuple[int, ...]) -> Fraction:
    """Grabisch and Roubens: the weighted mean over S outside A of the discrete derivative of v in A."""
    total = Fraction(0)
    for s in subsets(set(range(n)) - set(a)):
        derivative = sum((-1) ** (len(a) - len(b)) * value(s | b) for b in subsets(a))
        weight = Fraction(math.factorial(len(s)) * math.factorial(n - len(s) - len(a)), math.factorial(n - len(a) + 1))
        total += weight * derivative
    return total


def complete(coefficients: Mapping[tuple[int, ...], Fraction], n: int) -> dict[tuple[int, ...], Fraction]:
    """All coefficients, with the zeros that are left out."""
    return {tuple(sorted(t)): coefficients.get(tuple(sorted(t)), Fraction(0)) for t in coalitions(n)}


def check_game(game: Game, value: Value) -> None:
    """Every answer of a game against the definition."""
    n = game.n_features
    assert complete(game.moebius(), n) == moebius(value, n)
    assert all(game.value(s) == value(s) for s in subsets(range(n)))
    assert game.shapley().tolist() == shapley(value, n)
    banzhaf = [sum(value(s | {i}) - value(s) for s in without(n, i)) / 2 ** (n - 1) for i in range(n)]
    assert game.banzhaf().tolist() == banzhaf
    for order in range(1, n + 1):
        expected = {a: interaction(value, n, a) for a in itertools.combinations(range(n), order)}
        assert game.interactions(order) == expected


def as_reference(f: Multilinear) -> dict[frozenset[int], Fraction]:
    return {frozenset(t): c for t, c in f.coefficients.items()}
