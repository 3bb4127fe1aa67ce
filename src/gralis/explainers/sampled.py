"""I(A) from sampled coalitions: the index of a surrogate game, plus the mean over replicates of sum c_A(T) (v - g)(T).

c_A(T) = (-1)^(a - b) p(a, t - b), b = |A n T|, is what v(T) counts in I(A). The surrogate g(T) = sum over U in T of
beta(U) has few features in each U and a closed-form index. Unbiased whatever the surrogate, because a replicate only
meets one that was fitted without it; the surrogate whose replicates agree best is used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks
from gralis.errors import GralisError
from gralis.estimators import Estimate
from gralis.estimators.adjusted import Steadiest
from gralis.explainers.coalition_values import Game, log_class_size
from gralis.explainers.indices import Index
from gralis.explainers.transform import Coalition, coalitions

_MOST_FOLDS = 5
_MOST_TERMS = 1200
_RIDGE = 1e-6


def index_estimate(game: Game, index: Index, sets: Sequence[Coalition]) -> Estimate:
    """The index of every A in sets, with one departure per replicate."""
    if game.n_replicates < 2:
        raise GralisError("Errors need at least two replicates of the plan; explain with replicates=2 or more.")
    counts = coefficients(game, index, sets)
    tried = (_with_surrogate(game, counts, index, sets, order) for order in _orders(game))
    found = Steadiest.of(tried)
    return _at_least_typical(found, np.array([len(members) for members in sets])) if game.chained else found


def _at_least_typical(found: Estimate, order: NDArray[np.int64]) -> Estimate:
    """No error below the root mean square of those of its order.

    A permutation treats sets of one order alike, but few of its nested rows decide about each, and a set whose telling
    rows were not drawn looks certain.
    """
    errors = found.stderr
    typical = np.sqrt([np.mean(errors[order == own] ** 2) for own in order])
    factor = np.divide(typical, errors, out=np.ones_like(errors), where=errors > 0)
    return replace(found, departures=found.departures * np.maximum(factor, 1.0))


def coefficients(game: Game, index: Index, sets: Sequence[Coalition]) -> Array:
    """c_A(T), times how many coalitions T stands for, for every row and every A: (n_rows, n_sets)."""
    masks, n, size = game.masks, game.n_features, game.masks.sum(1)
    stands_for = np.exp(game.log_count - log_class_size(n)[size])  # as a part of all coalitions of its size
    table = np.empty((len(masks), len(sets)))
    by_order: dict[int, Array] = {}
    for column, members in enumerate(sets):
        a = len(members)
        if a not in by_order:
            by_order[a] = index.weights(n, a)
        inside = masks[:, members].sum(1)
        rest = size - inside  # |S|: the features of T outside A
        table[:, column] = (-1.0) ** (a - inside) * by_order[a][inside, rest] * stands_for
    return table


def _orders(game: Game) -> Iterator[int]:
    """Surrogates from none to rich, as far as there are different coalitions to support them.

    One with a term for nearly every coalition seen would agree with itself, whatever those not seen are worth.
    """
    yield 0
    for order in range(1, 4):
        n_terms = len(coalitions(game.n_features, order)) if game.n_features <= 200 or order == 1 else _MOST_TERMS + 1
        if n_terms > min(_MOST_TERMS, game.n_distinct / 2):
            return
        yield order


def _with_surrogate(game: Game, counts: Array, index: Index, sets: Sequence[Coalition], order: int) -> Estimate:
    method = index.name if order == 0 else f"{index.name} (surrogate of order {order})"
    terms = coalitions(game.n_features, order)
    inside = contained(game.masks, terms)
    shares = _shares(terms, index, sets)
    trust = (counts**2).sum(1)  # least squares with these weights is the least variance of what is left
    known = game.replicate < 0
    n_folds = min(_MOST_FOLDS, game.n_replicates)
    folds = np.where(known, -1, game.replicate % n_folds)
    estimates = np.zeros((game.n_replicates, len(sets)))
    parts = np.zeros(counts.shape)
    for fold in range(n_folds):
        beta = _fit(inside, game.value, trust, folds != fold)
        left = (game.value - inside @ beta)[:, None] * counts
        parts[folds == fold] = left[folds == fold]
        estimates[fold::n_folds] = shares @ beta + left[known].sum(0)
    np.add.at(estimates, game.replicate[~known], parts[~known])
    found = Estimate.mean(estimates, method, rays=parts[~known])
    return found.widened(float(np.sqrt(1 + 2 * len(terms) / game.n_distinct)))  # as for rays: they share teachers


def contained(masks: Masks, terms: Sequence[Coalition]) -> Array:
    """1 where U lies in T, (n_rows, n_terms)."""
    if not terms:
        return np.zeros((len(masks), 0))
    return np.stack([masks[:, members].all(1) for members in terms], axis=1).astype(np.float64)


def _shares(terms: Sequence[Coalition], index: Index, sets: Sequence[Coalition]) -> Array:
    """What A gets of the unanimity game of U, (n_sets, n_terms)."""
    table = np.zeros((len(sets), len(terms)))
    for column, members in enumerate(terms):
        inside = set(members)
        for row, chosen in enumerate(sets):
            if inside.issuperset(chosen):
                table[row, column] = index.share(len(chosen), len(members))
    return table


def _fit(inside: Array, value: Array, trust: Array, rows: NDArray[np.bool_]) -> Array:
    design, weight = inside[rows], trust[rows]
    if design.shape[1] == 0:
        return np.zeros(0)
    normal = (design * weight[:, None]).T @ design
    scale = np.sqrt(np.diag(normal))
    seen = scale > 0
    scale = np.where(seen, scale, 1.0)
    system = normal / scale[:, None] / scale + np.diag(np.where(seen, _RIDGE, 1.0))
    right = design.T @ (weight * value[rows]) / scale
    return np.asarray(np.linalg.solve(system, right) / scale)
