"""The shared plan's estimate: phi_hat = phi(surrogate) + mean over replicates of sum W (ray - surrogate's ray).

The estimate is unbiased for every surrogate, because each replicate is compared with a surrogate that was fitted
without it (cross-fitting). Lemma A then removes node noise. The checksum c(T) = sum_i ray_i - v(T) has mean zero over
the nodes, so a multiple of it is subtracted from each member. The multiple is also learnt without the replicate. The
estimator tries a few surrogates, and each replicate uses the one with which the other replicates agree best. Several
questions about the same rays (targets, inputs) share the work of the fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.estimators.design import Design, Estimator
from gralis.estimators.estimate import Estimate
from gralis.estimators.full_ray import only_full_is_known
from gralis.estimators.one_thread import one_thread
from gralis.estimators.plain import per_replicate
from gralis.estimators.ray_weights import importance, unsampled, unvisited
from gralis.estimators.steadiest import Steadiest, n_folds
from gralis.estimators.surrogates import TINY, Drift, Lesson, Potential, Prediction, RaySurrogate, n_monomials
from gralis.kernels import Uniform
from gralis.ledger import Ledger
from gralis.rays import CENSUS

MOST_MONOMIALS = 1200  # a fit must stay cheap compared with the model
_POINT_COLUMNS = ("value", "ray", "place", "stretch", "weight", "gradient")
LADDER = ((2, 2), (4, 3), (3, 3, 3), (6, 4, 3), (8, 5))  # the degrees of the potentials, from plain to rich
LEAST_VISITS = 24  # a drift is fitted only if every feature has at least this many points
DRIFT_TERMS = 7
EQUATIONS_PER_MONOMIAL = 3
WIDENING = 2  # the variance between replicates is multiplied by 1 + WIDENING p / N
CHECKSUM_RIDGE = 1e-3  # relative to the trace of the normal equations
_LEAST_NOISE = 1e-60  # relative to the noisiest feature; a smaller one would overflow

#: Marks the rays from which coefficients may be learnt.
Learners: TypeAlias = NDArray[np.bool_]
#: Takes a prediction, the learners and the numbers of some rays. Returns what the surrogate knows of each question,
#: (n_questions, n_values), and what each of these rays adds, (n_questions, n_some_rays, n_values).
Remainder: TypeAlias = Callable[[Prediction, Learners, NDArray[np.int64]], tuple[Array, Array]]


class AdjustedRays(Estimator):
    """phi of a cross-fitted surrogate, plus the part of the rays that it and the Lemma A checksum do not explain."""

    name = "adjusted"
    own_law = True
    singles_by_value = True
    draws_rays = True
    page_formula = "adjusted"

    def estimates(self, ledgers: Sequence[Ledger], designs: Sequence[Design]) -> tuple[Estimate, ...]:
        """phi of every question. Each replicate uses the surrogate with which the other replicates agree best."""
        weights = _weights_by_design(ledgers, designs)
        members = ledgers[0].masks.astype(np.float64)

        def remainders(questions: Sequence[int]) -> Remainder:
            left = _Left([ledgers[q] for q in questions], members, [weights[designs[q]] for q in questions])
            return lambda guess, learn, rays: (guess.phi, left.by(guess, learn, rays))

        chosen = _chosen(ledgers, designs, weights, remainders, "adjusted rays")
        return tuple(
            estimate.unknown_where(design.moving & unvisited(ledger, design.laws, design.baseline_weights))
            for estimate, ledger, design in zip(chosen, ledgers, designs, strict=True)
        )

    @one_thread()
    def total_of_values(self, ledger: Ledger, design: Design) -> Estimate:
        uniform = design.with_kernel(Uniform())
        weights = _weights_by_design([ledger], [uniform])
        rate = weights[uniform].max(1)  # under the uniform kernel all members of T have the same weight

        def remainder(guess: Prediction, learn: Learners, rays: NDArray[np.int64]) -> tuple[Array, Array]:
            left = rate * (ledger.value - guess.value)
            return guess.phi.sum(1, keepdims=True), left[:, rays, None]

        return _chosen([ledger], [uniform], weights, lambda _: remainder, "adjusted values")[0]

    def known_share(self, ledger: Ledger, design: Design) -> Array:
        return unsampled(ledger, design.laws, design.baseline_weights)

    def report_columns(self, ledger: Ledger, design: Design) -> dict[str, NDArray[Any]]:
        columns = super().report_columns(ledger, design)
        del columns["rays"]  # the surrogates of the page are fitted to points
        columns |= {name: getattr(ledger, name) for name in _POINT_COLUMNS}
        if only_full_is_known(ledger):  # the surrogates do not read v of all features alone
            columns["value"] = np.full_like(ledger.value, np.nan)
        return columns


def _weights_by_design(ledgers: Sequence[Ledger], designs: Sequence[Design]) -> dict[Design, Array]:
    """The importance weights of the rays for each design. Questions that share a design share the weights."""
    weights: dict[Design, Array] = {}
    for ledger, design in zip(ledgers, designs, strict=True):
        if design not in weights:
            weights[design] = importance(ledger, design.laws, design.baseline_weights)
    return weights


def _chosen(
    ledgers: Sequence[Ledger],
    designs: Sequence[Design],
    weights: Mapping[Design, Array],
    remainders: Callable[[Sequence[int]], Remainder],
    name: str,
) -> tuple[Estimate, ...]:
    """The steadiest estimate for every question; questions with equal active features share the fits."""
    each = list(weights.values())
    trust = sum(each, start=np.zeros_like(each[0]))[ledgers[0].ray] / len(each)
    everyone = Lesson(ledgers, trust, designs)
    groups: dict[bytes, list[int]] = {}
    for question, ledger in enumerate(ledgers):
        groups.setdefault(everyone.slopes_of(ledger).any(0).tobytes(), []).append(question)
    best: dict[int, Steadiest] = {}
    for questions in groups.values():
        lesson = replace(everyone, ledgers=[ledgers[q] for q in questions], designs=[designs[q] for q in questions])
        best.update({question: Steadiest() for question in questions})
        for kind, surrogate in _surrogates(lesson):
            open_ = {question: place for place, question in enumerate(questions) if not best[question].over}
            for question, known, parts in _cross_fitted(lesson, surrogate, open_, remainders):
                estimate = _mean(lesson.rays, known, parts, f"{name} ({kind})")
                best[question].look_at(estimate, _widening(surrogate, lesson))
            if all(best[question].over for question in questions):
                break
    return tuple(best[question].estimate for question in range(len(ledgers)))


def _folds(ledger: Ledger) -> NDArray[np.int64]:
    """The fold of each ray. Replicates go to the folds in turn; pilot and census rays (fold -1) teach every fold."""
    return np.where(ledger.replicate >= 0, ledger.replicate % n_folds(ledger.n_replicates), -1)


def _surrogates(lesson: Lesson) -> Iterator[tuple[str, RaySurrogate]]:
    """The candidate surrogates, from plain to rich, as far as there are enough slopes to fit them."""
    yield "constant", Drift(lesson, 1)
    if lesson.rays.masks[lesson.rays.ray].sum(0).min() >= LEAST_VISITS:
        yield "drift", Drift(lesson, DRIFT_TERMS)
    most = min(MOST_MONOMIALS, lesson.n_equations / EQUATIONS_PER_MONOMIAL)
    for degrees in LADDER:
        if 0 < n_monomials(len(lesson.active), degrees) <= most:
            yield f"potential{degrees}", Potential(lesson, degrees)


def _widening(surrogate: RaySurrogate, lesson: Lesson) -> float:
    """sqrt(1 + 2 p / N): the factor by which the departures are widened, for p parameters learnt from N slopes.

    The surrogates of different replicates are fitted to mostly the same rays, so the replicates agree a little too
    well. The variance between them is too small by a factor of about 1 + 2 p / N. In measurements this factor was
    right within 10% from p / N = 0.01 to 0.3.
    """
    return float(np.sqrt(1 + WIDENING * surrogate.n_parameters / max(lesson.n_equations, 1)))


def _mean(ledger: Ledger, known: Array, parts: Array, method: str) -> Estimate:
    """The mean over the replicates of what is known without the replicate plus the sum over its rays."""
    return Estimate.mean(known + per_replicate(ledger, parts), method, rays=parts)


def _cross_fitted(
    lesson: Lesson,
    surrogate: RaySurrogate,
    questions: Mapping[int, int],
    remainders: Callable[[Sequence[int]], Remainder],
) -> Iterator[tuple[int, Array, Array]]:
    """What surrogate and census give every replicate, and what every ray adds to its replicate, for each question.

    A replicate uses only surrogates that were fitted without it. `questions` maps each question to its place in the
    lesson. All folds of a few questions are worked through together, so that their rows stay in the cache.
    """
    rays = lesson.rays
    folds, census = _folds(rays), np.flatnonzero(rays.replicate == CENSUS)
    fits = list(surrogate.leave_out(folds))
    own = [np.flatnonzero(folds == fold) for fold in range(len(fits))]
    for some in lesson.portions(list(questions)):
        remainder, places = remainders(some), [questions[question] for question in some]
        known: Array = np.empty(0)
        parts: Array = np.empty(0)
        for fold, (fit, mine) in enumerate(zip(fits, own, strict=True)):
            phi, part = remainder(fit(places), folds != fold, np.concatenate([mine, census]))
            if fold == 0:  # the first answer shows how many values a question has
                known, parts = (np.zeros((len(some), n, phi.shape[1])) for n in (rays.n_replicates, rays.n_rays))
            known[:, np.unique(rays.replicate[mine])] = (phi + part[:, len(mine) :].sum(1))[:, None]
            parts[:, mine] = part[:, : len(mine)]
        yield from zip(some, known, parts, strict=True)


class _Left:
    """What surrogates and the checksum leave of the rays of some questions, times the weights of the rays.

    The arrays have one row per question and one per ray, (n_questions, n_rays, ...).
    """

    def __init__(self, ledgers: Sequence[Ledger], members: Array, weights: Sequence[Array]) -> None:
        self._ledger, self._members, self._weights = ledgers[0], members, np.stack(weights)
        self._rays = np.stack([ledger.rays_by_lemma_a for ledger in ledgers])
        value = np.stack([ledger.value for ledger in ledgers])
        known, rays = np.isfinite(value), ledgers[0]
        self._squares, self._value = self._weights**2, np.nan_to_num(value)
        self._scale = members[rays.ray] * (rays.weight / rays.stretch)[:, None]
        self._single = known & (rays.sizes == 1)  # by Lemma A their rays are their values
        few = only_full_is_known(rays)  # the rows of one coalition cannot teach who takes which part of a checksum
        self._usable = known & (not few) & (rays.nodes_per_ray > 0) & (rays.sizes > 1)

    def by(self, guess: Prediction, learn: Learners, rays: NDArray[np.int64]) -> Array:
        """The weighted part of these rays that neither surrogate nor checksum explains."""
        predicted = self._ledger.sum_points(self._scale * guess.slope, axis=1)
        question, single = np.nonzero(self._single)
        predicted[question, single] = self._members[single] * guess.value[question, single, None]
        left = np.subtract(self._rays, predicted, out=predicted)
        remains = left[:, rays]
        if self._usable.any():
            remains -= self._by_checksum(left, guess.value, learn, rays)
        remains *= self._weights[:, rays]
        return np.asarray(remains)

    def _by_checksum(self, left: Array, guessed_value: Array, learn: Learners, rays: NDArray[np.int64]) -> Array:
        """(b_i share_i(T) + b'_i / |T|) c(T), where c is the checksum of `left` and share_i that of its noise.

        The coefficients b and b' are learnt from the rays that `learn` marks, and used for those that `rays` names.
        """
        members, everyone = self._members, np.ones(left.shape[2])
        check = np.where(self._usable, left @ everyone - (self._value - guessed_value), 0.0)
        taught = (self._usable & learn).astype(np.float64)[:, None]  # (n_questions, 1, n_rays)
        noise = (taught @ left**2)[:, 0] / np.maximum(taught[:, 0] @ members, 1) + TINY
        noise = np.maximum(noise / noise.max(1, keepdims=True), _LEAST_NOISE)
        by_share, by_size = check / (noise @ members.T), check / self._ledger.sizes
        columns = np.stack([by_share**2, by_share * by_size, by_size**2, by_share, by_size], axis=1) * taught
        squares = columns[:, :3] @ self._squares  # the weights are zero outside T
        right = columns[:, 3:] @ (self._squares * left)
        right[:, 0] *= noise
        first, mixed, second = noise**2 * squares[:, 0], noise * squares[:, 1], squares[:, 2]
        ridge = CHECKSUM_RIDGE * (first + second) + TINY
        normal = np.stack([first + ridge, mixed, mixed, second + ridge], axis=-1).reshape(*first.shape, 2, 2)
        b, b_even = np.moveaxis(np.linalg.solve(normal, np.moveaxis(right, 1, 2)[..., None])[..., 0], 2, 0)
        terms = np.stack([by_share[:, rays], by_size[:, rays]], axis=2)
        return np.asarray(members[rays] * (terms @ np.stack([noise * b, b_even], axis=1)))
