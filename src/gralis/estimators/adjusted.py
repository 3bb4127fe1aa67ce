"""The shared plan's estimate: phi_hat = phi(surrogate) + mean over replicates of sum W (ray - surrogate's ray).

Unbiased whatever the surrogate, because a replicate is only ever compared with one that was fitted without it
(cross-fitting). Lemma A then removes node noise: c(T) = sum_i ray_i - v(T) has mean zero over the nodes, so a
multiple of it, again learnt without the replicate, is taken off each member. Among a few surrogates the one whose
replicates agree best is used. Questions asked on the same rays (targets, inputs) share the work of the fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.estimators.estimate import Estimate
from gralis.estimators.importance import importance
from gralis.estimators.plain import per_replicate
from gralis.estimators.surrogates import Drift, Lesson, Potential, Prediction, Surrogate, n_monomials
from gralis.laws import Law
from gralis.ledger import Ledger
from gralis.rays import CENSUS

_MOST_FOLDS = 5
_MOST_MONOMIALS = 1200  # a fit must stay cheap beside the model
_CLEARLY = 0.95  # a richer surrogate must lower the variance by this factor
_PATIENCE = 2  # so many richer surrogates in a row without gain end the search
_LADDER = ((2, 2), (4, 3), (3, 3, 3), (6, 4, 3), (8, 5))

#: Rays from which coefficients may be learnt.
Learners: TypeAlias = NDArray[np.bool_]
#: Of a question and a guess: what the surrogate knows, (n_values,), and what each ray adds, (n_rays, n_values).
Remainder: TypeAlias = Callable[[int, Prediction, Learners], tuple[Array, Array]]


def estimate(ledgers: Sequence[Ledger], laws: Sequence[Sequence[Law]], baseline_weights: Array) -> tuple[Estimate, ...]:
    """phi of every question asked on the same rays, each with the surrogate whose replicates agree best."""
    weights = _of_each(ledgers, laws, baseline_weights)
    rays = [_by_lemma_a(ledger) for ledger in ledgers]

    def remainder(question: int, guess: Prediction, learn: Learners) -> tuple[Array, Array]:
        ledger, own = ledgers[question], weights[question]
        return guess.phi, own * _unexplained(ledger, rays[question], guess, own, learn)

    return _chosen(ledgers, laws, baseline_weights, weights, remainder, "adjusted rays")


def total_of_values(ledger: Ledger, laws: Sequence[Law], baseline_weights: Array) -> Estimate:
    """sum_T v(T) / (|T| C(n, |T|)), for the laws of the uniform kernel: forwards only, adjusted the same way."""
    weights = importance(ledger, laws, baseline_weights)
    rate = weights.max(1)  # all members of T have one weight under the uniform kernel

    def remainder(question: int, guess: Prediction, learn: Learners) -> tuple[Array, Array]:
        return guess.phi.sum(keepdims=True), (rate * (ledger.value - guess.value))[:, None]

    return _chosen([ledger], [laws], baseline_weights, [weights], remainder, "adjusted values")[0]


def _of_each(ledgers: Sequence[Ledger], laws: Sequence[Sequence[Law]], baseline_weights: Array) -> list[Array]:
    """Importance weights of every question; targets have one law, and need it once."""
    known: dict[int, Array] = {}
    for ledger, own in zip(ledgers, laws, strict=True):
        if id(own) not in known:
            known[id(own)] = importance(ledger, own, baseline_weights)
    return [known[id(own)] for own in laws]


def _chosen(
    ledgers: Sequence[Ledger],
    laws: Sequence[Sequence[Law]],
    baseline_weights: Array,
    weights: Sequence[Array],
    remainder: Remainder,
    name: str,
) -> tuple[Estimate, ...]:
    """The steadiest estimate of every question; those with the same active features are fitted together."""
    different = {id(own): own for own in weights}.values()
    trust = sum(different, start=np.zeros_like(weights[0]))[ledgers[0].ray] / len(different)
    everyone = Lesson(ledgers, trust, laws, baseline_weights)
    alike: dict[bytes, list[int]] = {}
    for question, ledger in enumerate(ledgers):
        alike.setdefault(everyone.slopes_of(ledger).any(0).tobytes(), []).append(question)
    best: dict[int, Steadiest] = {}
    for questions in alike.values():
        lesson = replace(everyone, ledgers=[ledgers[q] for q in questions], laws=[laws[q] for q in questions])
        best.update({question: Steadiest() for question in questions})
        for kind, surrogate in _surrogates(lesson):
            open_ = {question: place for place, question in enumerate(questions) if not best[question].over}
            for question, (known, parts) in _cross_fitted(lesson, surrogate, open_, remainder).items():
                widened = _mean(lesson.rays, known, parts, f"{name} ({kind})").widened(_widening(surrogate, lesson))
                best[question].look_at(widened)
            if all(best[question].over for question in questions):
                break
    return tuple(best[question].found for question in range(len(ledgers)))


class Steadiest:
    """The first whose replicates agree clearly better than those of all before it; the search ends after failures."""

    def __init__(self) -> None:
        self._best: Estimate | None = None
        self._failures = 0

    def look_at(self, found: Estimate) -> None:
        best = self._best
        if best is None or (found.departures**2).sum() < _CLEARLY * (best.departures**2).sum():
            self._best, self._failures = found, 0
        else:
            self._failures += 1

    @property
    def over(self) -> bool:
        return self._failures == _PATIENCE

    @property
    def found(self) -> Estimate:
        assert self._best is not None  # the constant is always there
        return self._best

    @classmethod
    def of(cls, tried: Iterable[Estimate]) -> Estimate:
        search = cls()
        for found in tried:
            search.look_at(found)
            if search.over:
                break
        return search.found


def _by_lemma_a(ledger: Ledger) -> Array:
    """The rays; where T = {i} and v(T) is known the ray is v(T) itself, without any node."""
    known = (ledger.sizes == 1) & np.isfinite(ledger.value)
    return np.where(known[:, None], ledger.masks * np.nan_to_num(ledger.value)[:, None], ledger.rays)


def _folds(ledger: Ledger) -> NDArray[np.int64]:
    """The fold of each ray: replicates dealt in turn; pilot and census rays teach every fold."""
    n_folds = min(_MOST_FOLDS, ledger.n_replicates)
    return np.where(ledger.replicate >= 0, ledger.replicate % n_folds, -1)


def _surrogates(lesson: Lesson) -> Iterator[tuple[str, Surrogate]]:
    """Candidates from plain to rich, as far as the number of slopes supports them."""
    yield "constant", Drift(lesson, 1)
    if lesson.rays.masks[lesson.rays.ray].sum(0).min() >= 24:
        yield "drift", Drift(lesson, 7)
    for degrees in _LADDER:
        if 0 < n_monomials(len(lesson.active), degrees) <= min(_MOST_MONOMIALS, lesson.n_equations / 3):
            yield f"potential{degrees}", Potential(lesson, degrees)


def _widening(surrogate: Surrogate, lesson: Lesson) -> float:
    """Replicates share their teachers, so they agree a little too well.

    With p parameters learnt from N slopes the variance between them is too small by about 1 + 2 p / N (measured: within
    10% from p / N = 0.01 to 0.3).
    """
    return float(np.sqrt(1 + 2 * surrogate.n_parameters / max(lesson.n_equations, 1)))


def _mean(ledger: Ledger, known: Array, parts: Array, method: str) -> Estimate:
    """Replicate estimates: what is known without each replicate, plus the sum over its rays."""
    return Estimate.mean(known + per_replicate(ledger, parts), method, rays=parts)


def _cross_fitted(
    lesson: Lesson, surrogate: Surrogate, questions: Mapping[int, int], remainder: Remainder
) -> dict[int, tuple[Array, Array]]:
    """For each question: what surrogate and census give every replicate, and what every ray adds to its replicate.

    A replicate meets only what was learnt without it. `questions` says at which place of the lesson each is.
    """
    rays = lesson.rays
    folds = _folds(rays)
    found: dict[int, tuple[Array, Array]] = {}
    for fold, fit in enumerate(surrogate.leave_out(folds)):
        own = folds == fold
        for question, place in questions.items():
            phi, part = remainder(question, fit(place), folds != fold)
            if question not in found:
                found[question] = np.zeros((rays.n_replicates, len(phi))), np.zeros_like(part)
            known, parts = found[question]
            parts[own] = part[own]
            known[np.unique(rays.replicate[own])] = phi + part[rays.replicate == CENSUS].sum(0)
    return found


def _unexplained(ledger: Ledger, rays: Array, guess: Prediction, weights: Array, learn: Learners) -> Array:
    """What the surrogate leaves of every ray, (n_rays, n_features)."""
    scale = (ledger.weight / ledger.stretch)[:, None]
    predicted = ledger.sum_points(scale * guess.slope) * ledger.masks
    exact_single = (ledger.sizes == 1) & np.isfinite(ledger.value)
    predicted = np.where(exact_single[:, None], ledger.masks * guess.value[:, None], predicted)
    return _without_checksum(ledger, rays - predicted, guess.value, weights, learn)


def _without_checksum(ledger: Ledger, left: Array, guessed_value: Array, weights: Array, learn: Learners) -> Array:
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
