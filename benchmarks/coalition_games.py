"""Coalition games for `shapley.py` whose Shapley values are known by enumeration or in closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import factorial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from zoo import attention, mlp

from gralis.games import Multilinear

Array = NDArray[np.float64]
Masks = NDArray[np.bool_]
Value = Callable[[Masks], Array]

SMALL, LARGE = 14, 30
_GRID = 0.1  # the weights of the grid network are multiples of this number


@dataclass(frozen=True, eq=False)
class Game:
    """F of every coalition (rows, n_features) -> (rows,), and the Shapley values of F - F(nobody)."""

    n_features: int
    value: Value
    shapley: Array


def game(name: str) -> Game:
    """The game of GAMES with this name. Every call returns the same game."""
    return GAMES[name]()


def enumerated(value: Value, n: int) -> Game:
    """sum over S without i of |S|! (n - |S| - 1)! / n! (v(S u i) - v(S)), over all 2^n coalitions."""
    return Game(n, value, _enumerate(value, n))


def network(activation: Any, seed: int, n: int = SMALL, width: int = 32) -> Value:
    """Two hidden layers with random weights. An absent feature is zero."""
    model = mlp(activation, seed, 1.0, n=n, width=width)
    return _at(model, np.random.default_rng(seed).standard_normal(n))


def head() -> Game:
    return enumerated(_at(attention(5, n=SMALL), np.random.default_rng(5).standard_normal(SMALL)), SMALL)


def trees(n: int, probability: bool = False) -> Game:
    """Gradient-boosted trees on the first n columns of breast_cancer: a malignant row relative to a benign row.

    The log-odds are a sum of trees, and the Shapley values of a tree follow from its leaves. For probabilities all
    coalitions are enumerated.
    """
    fitted, x, baseline = _boosted(n)

    def log_odds(masks: Masks) -> Array:
        return np.asarray(fitted.decision_function(np.where(masks, x, baseline)))

    if probability:
        return enumerated(lambda masks: 1 / (1 + np.exp(-log_odds(masks))), n)
    each = [of_tree(tree.tree_, x, baseline) for tree in fitted.estimators_[:, 0]]
    return Game(n, log_odds, fitted.learning_rate * np.sum(each, axis=0))


def of_tree(tree: Any, x: Array, baseline: Array) -> Array:
    """Exact Shapley values of one tree.

    A leaf is reached if its features `inside` are present and its features `outside` are absent. A leaf of value w with
    a features inside and b outside gives w (a - 1)! b! / (a + b)! to each feature inside and -w a! (b - 1)! / (a + b)!
    to each feature outside.
    """
    phi = np.zeros(len(x))

    def walk(node: int, inside: frozenset[int], outside: frozenset[int]) -> None:
        if tree.children_left[node] < 0:
            worth, a, b = float(tree.value[node].ravel()[0]), len(inside), len(outside)
            for i in inside:
                phi[i] += worth * factorial(a - 1) * factorial(b) / factorial(a + b)
            for i in outside:
                phi[i] -= worth * factorial(a) * factorial(b - 1) / factorial(a + b)
            return
        i, threshold = int(tree.feature[node]), tree.threshold[node]
        ways = (tree.children_right[node], tree.children_left[node])
        if_in, if_out = (int(ways[int(np.float32(z[i]) <= threshold)]) for z in (x, baseline))
        if if_in == if_out or i in inside:
            walk(if_in, inside, outside)
        elif i in outside:
            walk(if_out, inside, outside)
        else:
            walk(if_in, inside | {i}, outside)
            walk(if_out, inside, outside | {i})

    walk(0, frozenset(), frozenset())
    return phi


def sparse(n: int = LARGE, seed: int = 8) -> Game:
    """A polynomial with all single features, 60 random pairs, 30 triples and 10 sets of five."""
    rng = np.random.default_rng(seed)
    terms: dict[tuple[int, ...], float] = {(i,): float(rng.standard_normal()) for i in range(n)}
    for size, count in ((2, 60), (3, 30), (5, 10)):
        for _ in range(count):
            members = tuple(sorted(rng.choice(n, size, replace=False).tolist()))
            terms[members] = terms.get(members, 0.0) + 1.5 * float(rng.standard_normal())
    polynomial = Multilinear(terms, n)
    return Game(n, lambda masks: np.asarray(polynomial(masks.astype(np.float64))), polynomial.shapley().astype(float))


def sum_of_networks(n: int = LARGE, seed: int = 1, n_networks: int = 10, size: int = 8) -> Game:
    """Ten ReLU networks of eight random features each, so that each network can be enumerated."""
    rng, phi = np.random.default_rng(seed), np.zeros(n)
    parts: list[tuple[NDArray[np.int64], Value]] = []
    for k in range(n_networks):
        members = np.sort(rng.choice(n, size, replace=False))
        parts.append((members, network(torch.relu, 100 * seed + k, n=size, width=16)))
        phi[members] += _enumerate(parts[-1][1], size)
    return Game(n, lambda masks: np.sum([value(masks[:, members]) for members, value in parts], axis=0), phi)


def grid_network(activation: Callable[[Array], Array], seed: int, n: int = LARGE, width: int = 24) -> Game:
    """One hidden layer of all features with weights on a grid, so that coalitions can be counted by size and sum."""
    rng = np.random.default_rng(seed)
    weights = np.rint(2 * rng.standard_normal((width, n)) / np.sqrt(n) / _GRID).astype(np.int64)
    bias, last = rng.standard_normal(width) / 2, 2 * rng.standard_normal(width) / np.sqrt(width)
    units = [
        of_sum(row, lambda s, b=b, d=d: d * activation(s * _GRID + b))
        for row, b, d in zip(weights, bias, last, strict=True)
    ]
    return Game(n, lambda masks: activation(masks @ weights.T * _GRID + bias) @ last, np.sum(units, axis=0))


def voting(n: int, seed: int = 2) -> Game:
    """1 if the members have more than half of the votes. This game is a single jump, which is hard to sample."""
    votes = np.random.default_rng(seed).integers(1, 12, n)

    def passed(total: Array) -> Array:
        return (2 * total > votes.sum()).astype(np.float64)

    return Game(n, lambda masks: passed(masks @ votes), of_sum(votes, passed))


def of_sum(weights: NDArray[np.int64], function: Callable[[Array], Array]) -> Array:
    """Shapley values of v(T) = function(sum of the whole numbers weights_j over T).

    Coalitions of equal size and sum have the same value, and a table counts them.
    """
    n, least = len(weights), int(weights[weights < 0].sum())
    sums = np.arange(least, int(weights[weights > 0].sum()) + 1)
    worth = function(sums.astype(np.float64))
    share = np.array([factorial(s) * factorial(n - s - 1) / factorial(n) for s in range(n)])
    phi = np.zeros(n)
    for i in range(n):
        counts = np.zeros((n, len(sums)))  # coalitions without i, by size and sum
        counts[0, -least] = 1.0
        for j in np.delete(np.arange(n), i):
            counts[1:] += _shifted(counts[:-1], int(weights[j]))
        gain = _shifted(worth[None], -int(weights[i]))[0] - worth
        phi[i] = share @ (counts * gain).sum(1)
    return phi


def _shifted(rows: Array, by: int) -> Array:
    """Every row moved to the right and filled with zeros. Entries that leave the table are not reachable."""
    moved = np.zeros_like(rows)
    if by >= 0:
        moved[:, by:] = rows[:, : rows.shape[1] - by]
    else:
        moved[:, :by] = rows[:, -by:]
    return moved


def _enumerate(value: Value, n: int) -> Array:
    masks = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool)
    v, size = value(masks), masks.sum(1)
    share = np.array([factorial(s) * factorial(n - s - 1) / factorial(n) for s in range(n)] + [0.0])
    joined, absent = share[size - 1] * v, share[size] * v
    return np.array([joined[masks[:, i]].sum() - absent[~masks[:, i]].sum() for i in range(n)])


def _at(model: Callable[[torch.Tensor], torch.Tensor], x: Array) -> Value:
    def value(masks: Masks) -> Array:
        rows = torch.from_numpy(masks * x)
        return np.concatenate([model(part).detach().numpy() for part in rows.split(2048)])

    return value


@lru_cache
def _boosted(n: int) -> tuple[Any, Array, Array]:
    """The fitted trees, a malignant row and a benign row."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import GradientBoostingClassifier

    table, benign = load_breast_cancer(return_X_y=True)
    table = table[:, :n]
    fitted = GradientBoostingClassifier(max_depth=4, max_features=0.5, random_state=0).fit(table, benign)
    return fitted, table[np.flatnonzero(benign == 0)[0]], table[np.flatnonzero(benign == 1)[20]]


GAMES: dict[str, Callable[[], Game]] = {
    "relu, 14": lambda: enumerated(network(torch.relu, 3), SMALL),
    "tanh, 14": lambda: enumerated(network(torch.tanh, 2), SMALL),
    "attention, 14": head,
    "trees, 14": lambda: trees(SMALL),
    "tree probability, 14": lambda: trees(SMALL, probability=True),
    "voting, 14": lambda: voting(SMALL),
    "sparse polynomial, 30": sparse,
    "trees, 30": lambda: trees(LARGE),
    "sum of relu nets, 30": sum_of_networks,
    "grid relu, 30": lambda: grid_network(lambda a: np.maximum(a, 0.0), 3),
    "grid tanh, 30": lambda: grid_network(np.tanh, 4),
    "voting, 30": lambda: voting(LARGE),
}
