"""Cheap models of the gradient whose GRALIS values are known exactly. What they leave unexplained has a small variance.

On the scale s of the node density a ray is the straight line z = s 1_T for s in [0, 1]. A surrogate predicts the
gradient at every point of the ledger, the value v(T) that it implies, and its own phi under the law. All three have
closed forms. Several questions about the same rays (targets, inputs) share one matrix, and each is one right-hand side.

    Drift      gradient_i = sum_b beta_ib B_b(s, |T| / n)             each feature by itself, for any n
    Potential  gradient   = d/dz of a polynomial G(z) at z = s 1_T    all features share one G, interactions included
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, solve

from gralis.arrays import Array
from gralis.estimators.design import Design
from gralis.estimators.full_ray import only_full_is_known
from gralis.ledger import Ledger

DRIFT_RIDGE = 1e-2  # relative to the weight of a feature's points; the constant has no penalty
#: Relative to each monomial's sum of squares. It grows with the degree; linear terms have no penalty.
MONOMIAL_RIDGE = 1e-5
JITTER = 1e-13  # on the diagonal of the scaled normal equations, so that they can be solved
TOGETHER = 2**17  # slopes of as many questions as are worked on together, 1 MiB: they should stay in the cache
TINY = 1e-300  # makes a division by zero harmless and changes no other number


@dataclass(frozen=True, eq=False)
class Lesson:
    """The data to which surrogates are fitted.

    Attributes
    ----------
    ledgers : sequence of Ledger
        One ledger per question, all of the same rays.
    trust : array of shape (n_points, n_features)
        The weight W_i(T) of each slope in the fit; zero outside T.
    designs : sequence of Design
        The design of each question.
    """

    ledgers: Sequence[Ledger]
    trust: Array
    designs: Sequence[Design]

    @property
    def rays(self) -> Ledger:
        """A ledger from which only the rays are read, which all questions share."""
        return self.ledgers[0]

    @cached_property
    def active(self) -> NDArray[np.int64]:
        """The features that have a slope somewhere. The predicted slopes of all other features are exactly zero."""
        return np.flatnonzero(self.slopes_of(self.rays).any(0))

    @cached_property
    def n_equations(self) -> int:
        """The number of slopes to learn from."""
        return int(self.slopes_of(self.rays).sum())

    def slopes_of(self, ledger: Ledger) -> NDArray[np.bool_]:
        """Where there is a slope to learn from, (n_points, n_features)."""
        return np.asarray((ledger.gradient != 0) & (self.trust > 0))

    def portions(self, questions: Sequence[int]) -> Iterator[Sequence[int]]:
        """The questions cut into portions whose slopes are few enough to be predicted together."""
        step = max(1, TOGETHER // max(self.trust.size, 1))
        return (questions[start : start + step] for start in range(0, len(questions), step))

    @property
    def sizes(self) -> Array:
        """|T| / n of every ray."""
        return np.asarray(self.rays.sizes / self.rays.n_features)


class PerDesign:
    """A quantity of each design, computed once for all questions that share the design."""

    def __init__(self, lesson: Lesson) -> None:
        self._designs = lesson.designs
        self._known: dict[Design, Array] = {}

    def of(self, question: int, compute: Callable[[Design], Array]) -> Array:
        """The quantity for the design of this question.

        `compute` is not stored. It may be a method of the surrogate, and the reference cycle would keep the ledgers in
        memory.
        """
        design = self._designs[question]
        if design not in self._known:
            self._known[design] = compute(design)
        return self._known[design]


@dataclass(frozen=True, eq=False)
class Prediction:
    """What a fitted surrogate predicts for the rays of the ledger, for some questions.

    Attributes
    ----------
    slope : array of shape (n_questions, n_points, n_features)
        The slopes at the points.
    value : array of shape (n_questions, n_rays)
        v(T) of every ray.
    phi : array of shape (n_questions, n_features)
        The exact phi of the surrogate.
    """

    slope: Array
    value: Array
    phi: Array


#: Takes the numbers of some questions and returns their predictions, in this order.
Fit = Callable[[Sequence[int]], Prediction]


class RaySurrogate(Protocol):
    """A surrogate with one fit per fold. Each fit learns from the rays outside its fold and predicts for all rays."""

    @property
    def n_parameters(self) -> int: ...

    def leave_out(self, folds: NDArray[np.int64]) -> Iterator[Fit]:
        """The fits without fold 0, without fold 1 and so on. Fold -1 is never left out."""
        ...


class Drift:
    """gradient_i = sum_b beta_ib B_b(s, tau), tau = |T| / n: a constant, a drift along the ray, a drift with size."""

    def __init__(self, lesson: Lesson, n_terms: int) -> None:
        self._lesson = lesson
        rays = lesson.rays
        s = 2 * rays.place - 1
        tau = lesson.sizes - 0.5
        at = tau[rays.ray]
        terms = [np.ones_like(s), at, s, at * s, s**2 - 1 / 3, at**2, s**3 - 0.6 * s]
        self._terms = np.stack(terms[:n_terms], axis=1)  # (n_points, n_terms)
        flat = np.zeros_like(tau)
        self._integrals = np.stack([np.ones_like(tau), tau, flat, flat, flat, tau**2, flat][:n_terms], axis=1)
        self._products = np.einsum("pa,pb->pab", self._terms, self._terms).reshape(len(s), -1)
        self._known = PerDesign(lesson)
        self._slopes: tuple[tuple[int, ...], Array] = ((), np.empty(0))  # of the questions that were asked last

    @property
    def n_parameters(self) -> int:
        return int(self._terms.shape[1]) * len(self._lesson.active)

    def _moments(self, design: Design) -> Array:
        """E[B_b | i in T], averaged over the baselines: (n_terms, n_features)."""
        if self._terms.shape[1] == 1:  # the mean of a constant needs no law
            return np.ones((1, design.n_features))
        moments = sum(w * law.size_moments() for w, law in zip(design.baseline_weights, design.laws, strict=True))
        one, first, second = np.asarray(moments)
        zero = np.zeros_like(one)
        table = [one, first - one / 2, zero, zero, zero, second - first + one / 4, zero]
        return np.stack(table[: self._terms.shape[1]])

    def leave_out(self, folds: NDArray[np.int64]) -> Iterator[Fit]:
        for fold in range(folds.max() + 1):
            yield self._fit(folds[self._lesson.rays.ray] != fold)

    def _weighted_slopes(self, questions: tuple[int, ...]) -> Array:
        """The slopes of these questions times their trust, (n_questions, n_points, n_features). All folds use them."""
        if self._slopes[0] != questions:
            slopes = np.stack([self._lesson.ledgers[q].gradient for q in questions])
            slopes *= self._lesson.rays.stretch[:, None] * self._lesson.trust
            self._slopes = questions, slopes
        return self._slopes[1]

    def _fit(self, points: NDArray[np.bool_]) -> Fit:
        lesson, k = self._lesson, self._terms.shape[1]
        terms = self._terms * points[:, None]  # the points of the fold have no weight
        normal = ((self._products * points[:, None]).T @ lesson.trust).T.reshape(-1, k, k)
        # The ridge is for features on few rays. The constant has none, so that affine models are reproduced exactly.
        scale = normal[:, 0, 0] / max(k, 1)
        ridge = DRIFT_RIDGE * scale[:, None] * np.concatenate([[0.0], np.ones(k - 1)]) + TINY
        normal[:, np.arange(k), np.arange(k)] += ridge

        def predict(questions: Sequence[int]) -> Prediction:
            slopes = self._weighted_slopes(tuple(questions))
            right = (terms.T @ slopes).transpose(2, 1, 0)
            beta = np.linalg.solve(normal, right).transpose(2, 1, 0)  # (n_questions, n_terms, n_features)
            value = (lesson.rays.masks * (self._integrals @ beta)) @ np.ones(beta.shape[2])
            moments = np.stack([self._known.of(question, self._moments) for question in questions])
            return Prediction(self._terms @ beta, value, (moments * beta).sum(1))

        return predict


class Potential:
    """gradient_i = dG/dz_i at z = s 1_T, with the polynomial G = sum_m beta_m z^m.

    `degrees[k]` is the largest degree of the monomials in k + 1 features.
    """

    def __init__(self, lesson: Lesson, degrees: Sequence[int]) -> None:
        self._lesson = lesson
        self._exponents, self._support = monomials(lesson.active, lesson.rays.n_features, degrees)
        self._degree = self._exponents.sum(1)
        self._known = PerDesign(lesson)

    @property
    def n_parameters(self) -> int:
        return len(self._exponents)

    @cached_property
    def _member(self) -> Array:
        """The masks and a last column of ones, to which the padding of the supports points."""
        masks = self._lesson.rays.masks
        return np.concatenate([masks, np.ones((len(masks), 1))], axis=1)

    @cached_property
    def _contained(self) -> Array:
        """The value v(T) of every monomial: 1 if all its features lie in T, else 0; (n_rays, n_monomials)."""
        return np.asarray(self._member[:, self._support].prod(2))

    @cached_property
    def _blocks(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64], Array]]:
        """For each feature: its points (i in T), the monomials that contain it, and their slopes there."""
        ledger, blocks = self._lesson.rays, []
        powers = ledger.place[:, None] ** np.arange(self._degree.max())
        for i in range(ledger.n_features):
            columns = np.flatnonzero(self._exponents[:, i])
            points = np.flatnonzero(ledger.masks[ledger.ray, i])
            slopes = self._contained[np.ix_(ledger.ray[points], columns)]
            slopes = slopes * powers[np.ix_(points, self._degree[columns] - 1)] * self._exponents[columns, i]
            blocks.append((points, columns, slopes))
        return blocks

    def _phi(self, design: Design) -> Array:
        """phi_i of every monomial under the law, (n_features, n_monomials)."""
        n = self._lesson.rays.n_features
        phi = np.zeros((n, len(self._exponents)))
        member, columns = np.nonzero(self._exponents.T)
        others = np.where(self._support[columns] == member[:, None], n, self._support[columns])
        sets = np.concatenate([member[:, None], others], axis=1)
        share = self._exponents[columns, member] / self._degree[columns]
        for weight, law in zip(design.baseline_weights, design.laws, strict=True):
            phi[member, columns] += weight * share * law.subset_moments(sets)
        return phi

    def leave_out(self, folds: NDArray[np.int64]) -> Iterator[Fit]:
        parts = self._equations(folds)
        for left_out in range(1, len(parts)):
            # The other parts are added: subtracting a heavy part from the total would lose all their digits.
            others = parts[:left_out] + parts[left_out + 1 :]
            yield self._solve(np.sum([p[0] for p in others], axis=0), np.sum([p[1] for p in others], axis=0))

    def _equations(self, folds: NDArray[np.int64]) -> list[tuple[Array, Array]]:
        """The normal equations of the rays of fold -1, 0 and so on, from slopes and values; one column per question."""
        lesson, rays, size = self._lesson, self._lesson.rays, len(self._exponents)
        parts = [(np.zeros((size, size)), np.zeros((size, len(lesson.ledgers)))) for _ in range(folds.max() + 2)]
        for i, (points, columns, slopes) in enumerate(self._blocks):
            weighted = slopes * lesson.trust[points, i, None]
            seen = np.stack([ledger.gradient[points, i] for ledger in lesson.ledgers], axis=1)
            seen *= rays.stretch[points, None]
            fold_of = folds[rays.ray[points]]
            for fold, (normal, right) in enumerate(parts, start=-1):
                used = np.flatnonzero(fold_of == fold)
                normal[np.ix_(columns, columns)] += weighted[used].T @ slopes[used]
                right[columns] += weighted[used].T @ seen[used]
        level = np.median(lesson.trust[lesson.trust > 0])  # a value has the weight of one typical slope
        values = np.stack([ledger.value for ledger in lesson.ledgers], axis=1)
        known_values = np.isfinite(rays.value) & (not only_full_is_known(rays))  # one coalition teaches no shape
        for fold, (normal, right) in enumerate(parts, start=-1):
            known = np.flatnonzero((folds == fold) & known_values)
            inside = self._contained[known]
            normal += level * inside.T @ inside
            right += level * inside.T @ values[known]
        return parts

    def _solve(self, normal: Array, right: Array) -> Fit:
        scale = np.sqrt(np.diag(normal))
        seen = scale > 0  # the coefficient of a monomial without weight stays zero
        scale = np.where(seen, scale, 1.0)
        system = normal / scale[:, None] / scale + np.diag(
            MONOMIAL_RIDGE * (self._degree**2.0 - 1) + np.where(seen, JITTER, 1.0)
        )
        try:
            betas = solve(system, right / scale[:, None], assume_a="pos") / scale[:, None]
        except LinAlgError:  # happens with a kernel that leaves almost no weight on most rays
            betas = np.linalg.lstsq(system, right / scale[:, None], rcond=1e-10)[0] / scale[:, None]

        def predict(questions: Sequence[int]) -> Prediction:
            n_points, n = self._lesson.trust.shape
            beta = betas[:, questions]
            slopes_of = np.zeros((len(questions), n_points, n))
            for i, (points, columns, slopes) in enumerate(self._blocks):
                slopes_of[:, points, i] = (slopes @ beta[columns]).T
            values = (self._contained @ beta).T
            phi = [self._known.of(q, self._phi) @ beta[:, k] for k, q in enumerate(questions)]
            return Prediction(slopes_of, values, np.stack(phi))

        return predict


def monomials(
    active: NDArray[np.int64], n_features: int, degrees: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The exponents of the monomials in the active features, and their features padded with n_features.

    >>> monomials(np.array([0, 2]), 3, (2, 2))[0].tolist()
    [[1, 0, 0], [2, 0, 0], [0, 0, 1], [0, 0, 2], [1, 0, 1]]
    """
    width = len(degrees)
    exponents, supports = [], []
    for order, most in enumerate(degrees, start=1):
        powers = [p for p in itertools.product(range(1, most + 1), repeat=order) if sum(p) <= most]
        for members in itertools.combinations(active.tolist(), order):
            for power in powers:
                row = np.zeros(n_features, dtype=np.int64)
                row[list(members)] = power
                exponents.append(row)
                supports.append([*members] + [n_features] * (width - order))
    return np.array(exponents), np.array(supports)


def n_monomials(n_active: int, degrees: Sequence[int]) -> int:
    """How many monomials these degrees make.

    >>> n_monomials(13, (3, 3, 3))
    559
    """
    return sum(comb(n_active, order) * comb(most, order) for order, most in enumerate(degrees, start=1))
