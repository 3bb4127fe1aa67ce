"""The shared plan's estimate: phi_hat = phi(surrogate) + mean over replicates of sum W (ray - surrogate's ray).

Unbiased whatever the surrogate, because a replicate is only ever compared with one that was fitted without it
(cross-fitting). Lemma A then removes node noise: c(T) = sum_i ray_i - v(T) has mean zero over the nodes, so a
multiple of it, again learnt without the replicate, is taken off each member. Among a few surrogates the one whose
replicates agree best is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from gralis.estimators.plain import per_replicate
from gralis.estimators.result import Estimate
from gralis.estimators.surrogates import Drift, Lesson, Potential, Surrogate, n_monomials
from gralis.estimators.weights import importance
from gralis.laws import Array, Law
from gralis.ledger import Ledger
from gralis.sheet import CENSUS

_MOST_FOLDS = 5
_MOST_MONOMIALS = 1200  # a fit must stay cheap beside the model
_CLEARLY = 0.95  # a richer surrogate must lower the variance by this factor
_PATIENCE = 2  # so many richer surrogates in a row without gain end the search
_LADDER = ((2, 2), (4, 3), (3, 3, 3), (6, 4, 3), (8, 5))


def estimate(ledger: Ledger, laws: Sequence[Law], baseline_weights: Array) -> Estimate:
    """The adjusted estimate of phi for these laws, with the surrogate whose replicates agree best."""
    weights = importance(ledger, laws, baseline_weights)
    rays, folds = _by_lemma_a(ledger), _folds(ledger)
    tried = (
        _mean(ledger, _cross_fitted(ledger, rays, weights, surrogate, folds), f"adjusted rays ({name})").widened(factor)
        for name, surrogate, factor in _surrogates(ledger, laws, baseline_weights, weights)
    )
    return steadiest(tried)


def total_of_values(ledger: Ledger, laws: Sequence[Law], baseline_weights: Array) -> Estimate:
    """sum_T v(T) / (|T| C(n, |T|)), for the laws of the uniform kernel: forwards only, adjusted the same way."""
    weights = importance(ledger, laws, baseline_weights)
    rate, folds = weights.max(1), _folds(ledger)  # all members of T have one weight under the uniform kernel
    tried = (
        _mean(ledger, _cross_fitted_total(ledger, rate, surrogate, folds), "adjusted values").widened(factor)
        for _, surrogate, factor in _surrogates(ledger, laws, baseline_weights, weights)
    )
    return steadiest(tried)


def steadiest(tried: Iterable[Estimate]) -> Estimate:
    """The first whose replicates agree clearly better than those of all before it; the search ends after failures."""
    best, failures = None, 0
    for found in tried:
        if best is None or (found.departures**2).sum() < _CLEARLY * (best.departures**2).sum():
            best, failures = found, 0
        elif (failures := failures + 1) == _PATIENCE:
            break
    assert best is not None  # the constant is always there
    return best


def _by_lemma_a(ledger: Ledger) -> Array:
    """The rays; where T = {i} and v(T) is known the ray is v(T) itself, without any node."""
    known = (ledger.sizes == 1) & np.isfinite(ledger.value)
    return np.where(known[:, None], ledger.masks * np.nan_to_num(ledger.value)[:, None], ledger.rays)


def _folds(ledger: Ledger) -> NDArray[np.int64]:
    """The fold of each ray: replicates dealt in turn; pilot and census rays teach every fold."""
    n_folds = min(_MOST_FOLDS, ledger.n_replicates)
    return np.where(ledger.replicate >= 0, ledger.replicate % n_folds, -1)


def _surrogates(
    ledger: Ledger, laws: Sequence[Law], baseline_weights: Array, weights: Array
) -> Iterator[tuple[str, Surrogate, float]]:
    """Candidates from plain to rich, as far as the number of slopes supports them, and how much to widen each.

    Replicates share their teachers, so they agree a little too well. With p parameters learnt from N slopes the
    variance between them is too small by about 1 + 2 p / N (measured: within 10% from p / N = 0.01 to 0.3).
    """
    slope = ledger.stretch[:, None] * ledger.gradient
    lesson = Lesson(ledger, slope, weights[ledger.ray], laws, baseline_weights)

    def widening(surrogate: Surrogate) -> float:
        return float(np.sqrt(1 + 2 * surrogate.n_parameters / max(lesson.n_equations, 1)))

    def candidates() -> Iterator[tuple[str, Surrogate]]:
        yield "constant", Drift(lesson, 1)
        if ledger.masks[ledger.ray].sum(0).min() >= 24:
            yield "drift", Drift(lesson, 7)
        for degrees in _LADDER:
            if 0 < n_monomials(len(lesson.active), degrees) <= min(_MOST_MONOMIALS, lesson.n_equations / 3):
                yield f"potential{degrees}", Potential(lesson, degrees)

    for name, surrogate in candidates():
        yield name, surrogate, widening(surrogate)


def _mean(ledger: Ledger, crossed: tuple[Array, Array], method: str) -> Estimate:
    """Replicate estimates: what is known without each replicate, plus the sum over its rays."""
    known, parts = crossed  # (n_replicates, n_values), (n_rays, n_values)
    return Estimate.mean(known + per_replicate(ledger, parts), method, rays=parts)


def _cross_fitted(
    ledger: Ledger, rays: Array, weights: Array, surrogate: Surrogate, folds: NDArray[np.int64]
) -> tuple[Array, Array]:
    """phi of the surrogate and the census, for each replicate, and what every ray adds to its replicate.

    A replicate meets only what was learnt without it.
    """
    known, parts = np.zeros((ledger.n_replicates, ledger.n_features)), np.zeros(ledger.masks.shape)
    scale = (ledger.weight / ledger.stretch)[:, None]
    exact_single = (ledger.sizes == 1) & np.isfinite(ledger.value)
    for fold, guess in enumerate(surrogate.leave_out(folds)):
        predicted = ledger.sum_points(scale * guess.slope) * ledger.masks
        predicted = np.where(exact_single[:, None], ledger.masks * guess.value[:, None], predicted)
        left = _without_checksum(ledger, rays - predicted, guess.value, weights, folds != fold)
        part = weights * left
        own = folds == fold
        parts[own] = part[own]
        known[np.unique(ledger.replicate[own])] = guess.phi + part[ledger.replicate == CENSUS].sum(0)
    return known, parts


def _cross_fitted_total(
    ledger: Ledger, rate: Array, surrogate: Surrogate, folds: NDArray[np.int64]
) -> tuple[Array, Array]:
    """The same for the sum over coalitions: the surrogate's own, and the weighted difference of values."""
    known, parts = np.zeros((ledger.n_replicates, 1)), np.zeros((ledger.n_rays, 1))
    for fold, guess in enumerate(surrogate.leave_out(folds)):
        part = rate * (ledger.value - guess.value)
        own = folds == fold
        parts[own, 0] = part[own]
        known[np.unique(ledger.replicate[own])] = guess.phi.sum() + part[ledger.replicate == CENSUS].sum()
    return known, parts


def _without_checksum(
    ledger: Ledger, left: Array, guessed_value: Array, weights: Array, learn: NDArray[np.bool_]
) -> Array:
    """left_i - (b_i share_i(T) + b'_i / |T|) c(T), c the checksum of what the surrogate left; b learnt on `learn`."""
    usable = np.isfinite(ledger.value) & (ledger.nodes_per_ray > 0) & (ledger.sizes > 1)
    if not usable.any():
        return left
    check = np.where(usable, left.sum(1) - (np.nan_to_num(ledger.value) - guessed_value), 0.0)
    taught = usable & learn
    noise = (left[taught] ** 2).sum(0) / np.maximum(ledger.masks[taught].sum(0), 1) + 1e-300
    share = ledger.masks * noise
    share /= share.sum(1, keepdims=True)
    even = ledger.masks / ledger.sizes[:, None]
    regressors = np.stack([share, even], axis=2) * check[:, None, None]  # (n_rays, n_features, 2)
    squares = weights[taught] ** 2
    normal = np.einsum("rif,rig,ri->ifg", regressors[taught], regressors[taught], squares)
    right = np.einsum("rif,ri,ri->if", regressors[taught], left[taught], squares)
    ridge = 1e-3 * np.einsum("iff->i", normal)[:, None] + 1e-300
    normal[:, np.arange(2), np.arange(2)] += ridge
    coefficients = np.linalg.solve(normal, right[:, :, None])[:, :, 0]
    return np.asarray(left - np.einsum("rif,if->ri", regressors, coefficients))
