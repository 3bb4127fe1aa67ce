"""I(A) from sampled coalitions: the index of a surrogate game, plus the mean over replicates of sum c_A(T) (v - g)(T).

c_A(T) = (-1)^(a - b) p(a, t - b) with b = |A n T| is the weight of v(T) in I(A). The surrogate is g(T) = sum over U in
T of beta(U), where each U has few features, and its index has a closed form. The estimate is unbiased for every
surrogate, because each replicate uses a surrogate that was fitted without it. Among several surrogates the estimator
uses the one whose replicates agree best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks
from gralis.errors import GralisError
from gralis.estimators import Estimate
from gralis.estimators.one_thread import one_thread
from gralis.estimators.steadiest import Steadiest, n_folds
from gralis.explainers.coalition_values import CoalitionValues, log_class_size
from gralis.explainers.indices import Index
from gralis.explainers.transform import Coalition, coalitions

_MOST_TERMS = 1200
_RIDGE = 1e-6


@one_thread()
def index_estimate(game: CoalitionValues, index: Index, sets: Sequence[Coalition]) -> Estimate:
    """The index of every A in `sets`, with one departure per replicate."""
    if game.n_replicates < 2:
        raise GralisError("Errors need at least two replicates of the plan; explain with replicates=2 or more.")
    counts = coefficients(game, index, sets)
    tried = (_with_surrogate(game, counts, index, sets, order) for order in _orders(game))
    estimate = Steadiest.of(tried).unknown_where(np.full(len(sets), game.silent))
    return _at_least_typical(estimate, np.array([len(members) for members in sets])) if game.chained else estimate


def _at_least_typical(estimate: Estimate, order: NDArray[np.int64]) -> Estimate:
    """The estimate with no error below the root mean square of the errors of the same order.

    A permutation treats all sets of one order in the same way, but only a few of its nested rows inform any given set.
    If the informative rows of a set were not drawn, its replicates agree and its error would look too small.
    """
    errors = estimate.stderr
    typical = np.sqrt([np.mean(errors[order == own] ** 2) for own in order])
    factor = np.divide(typical, errors, out=np.ones_like(errors), where=errors > 0)
    return replace(estimate, departures=estimate.departures * np.maximum(factor, 1.0))


def coefficients(game: CoalitionValues, index: Index, sets: Sequence[Coalition]) -> Array:
    """c_A(T) times the number of coalitions that T stands for, for every row and every A, (n_rows, n_sets)."""
    masks, n, size = game.masks, game.n_features, game.masks.sum(1)
    stands_for = np.exp(game.log_count - log_class_size(n)[size])  # as a share of all coalitions of its size
    table = np.empty((len(masks), len(sets)))
    by_order: dict[int, Array] = {}
    for column, members in enumerate(sets):
        a = len(members)
        if a not in by_order:
            by_order[a] = index.weights(n, a)
        inside = masks[:, members].sum(1)
        rest = size - inside  # |S|, the number of features of T outside A
        table[:, column] = (-1.0) ** (a - inside) * by_order[a][inside, rest] * stands_for
    return table


def _orders(game: CoalitionValues) -> Iterator[int]:
    """The orders of the surrogates to try, as far as there are enough different coalitions to fit them.

    Order 0 is no surrogate. A surrogate with a term for nearly every evaluated coalition would make the replicates
    agree, whatever the values of the other coalitions are.
    """
    yield 0
    for order in range(1, 4):
        n_terms = len(coalitions(game.n_features, order)) if game.n_features <= 200 or order == 1 else _MOST_TERMS + 1
        if n_terms > min(_MOST_TERMS, game.n_distinct / 2):
            return
        yield order


def _with_surrogate(
    game: CoalitionValues, counts: Array, index: Index, sets: Sequence[Coalition], order: int
) -> Estimate:
    method = index.name if order == 0 else f"{index.name} (surrogate of order {order})"
    terms = coalitions(game.n_features, order)
    inside = contained(game.masks, terms)
    shares = _shares(terms, index, sets)
    trust = (counts**2).sum(1)  # these weights minimise the variance of the part that the surrogate leaves
    known = game.replicate < 0
    count = n_folds(game.n_replicates)
    folds = np.where(known, -1, game.replicate % count)
    estimates = np.zeros((game.n_replicates, len(sets)))
    parts = np.zeros(counts.shape)
    for fold in range(count):
        beta = _fit(inside, game.value, trust, folds != fold)
        left = (game.value - inside @ beta)[:, None] * counts
        parts[folds == fold] = left[folds == fold]
        estimates[fold::count] = shares @ beta + left[known].sum(0)
    np.add.at(estimates, game.replicate[~known], parts[~known])
    estimate = Estimate.mean(estimates, method, rays=parts[~known])
    # As in `estimators.adjusted`: the fits share most of their rows, so the replicates agree a little too well.
    return estimate.widened(float(np.sqrt(1 + 2 * len(terms) / game.n_distinct)))


def contained(masks: Masks, terms: Sequence[Coalition]) -> Array:
    """1 where U lies in T, (n_rows, n_terms)."""
    if not terms:
        return np.zeros((len(masks), 0))
    return np.stack([masks[:, members].all(1) for members in terms], axis=1).astype(np.float64)


def _shares(terms: Sequence[Coalition], index: Index, sets: Sequence[Coalition]) -> Array:
    """The index of A in the unanimity game of U, (n_sets, n_terms)."""
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
