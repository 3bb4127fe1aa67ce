"""Which games are likely: a Gaussian process on coalitions, its parameters learnt from the rows themselves.

With z_j = 1 for a member and -1 for the others, P = sum_j b_j z_j z'_j and S = sum_j b_j, two coalitions covary by

    odd part    l P_1 + c (P / S)^3 + h (e^(P - S) - e^(-P - S)),     P_1 = (1/n) sum_j z_j z'_j
    even part   m     + q (P / S)^2 + g (e^(P - S) + e^(-P - S))

and every coalition has a variance of its own beside that. The relevance b_j says how much feature j takes part in
interactions; the cubic makes games of few-feature interactions exact, the exponentials stand for all orders. Shapley
values depend on the odd part alone, (v(T) - v(complement of T)) / 2: where rows come in such pairs the even part is
never needed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import minimize

from gralis.laws import Array

_LEVEL = 100.0  # m, in units of the mean square value: the mean of the game is as good as free
_JITTER = 1e-10
#: Rows to learn from, and the least variance of a coalition's own part: the likelihood of a game without such a part is
#: so steep that the way to it goes through smoother ones.
_STAGES = ((250, 1e-4), (1000, 1e-10))
_STEPS, _LEAST_STEPS, _MOST_STEPS = 15_000, 15, 60  # steps times rows: a fit must stay cheap beside the model
_LOOSE, _TIGHT = 0.01, 1.0  # precision of the priors: on log variances, on log relevances
_MOST_FADE = 30.0
_FAR = 1e25


@dataclass(frozen=True, eq=False)
class Rows:
    """What was seen: values of coalitions, or of the odd part where every coalition comes with its complement."""

    signs: Array  # (n_rows, n_features), 1 for members and -1 for the others; row 0 is the coalition of all
    values: Array  # (n_rows,)
    paired: bool
    shares: Array | None  # (n_rows, n_baselines) of which baselines a row is the mean; None: there is only one

    def take(self, rows: NDArray[np.int64]) -> Rows:
        return Rows(
            self.signs[rows], self.values[rows], self.paired, None if self.shares is None else self.shares[rows]
        )

    @property
    def n_rows(self) -> int:
        return len(self.values)

    @property
    def balance(self) -> Array:
        """2 |T| / n - 1: from -1 for the empty coalition to 1 for that of all."""
        return np.asarray(self.signs.mean(1))


@dataclass(frozen=True, eq=False)
class Process:
    """The parameters, in units of the rows' mean square; `even` is empty for paired rows."""

    relevance: Array  # b
    linear: float  # l
    own: float  # the variance that a coalition of half of the features shares with no other
    cubic: float  # c
    odd: float  # h
    fade: float  # the own variance of other sizes: times exp(-fade (2 |T| / n - 1)^2)
    even: tuple[float, float]  # q, g
    apart: float  # how much games of different baselines differ, relative to what they have in common

    @staticmethod
    def of(theta: Array, n: int, paired: bool, several: bool) -> Process:
        linear, own, cubic, odd, _, *rest = np.exp(theta[n:]).tolist()
        even = (0.0, 0.0) if paired else (rest[0], rest[1])
        fade = float(theta[n + 4])
        return Process(np.exp(theta[:n]), linear, own, cubic, odd, fade, even, rest[-1] if several else 0.0)

    def covariance(self, rows: Rows) -> Array:
        """The covariance matrix of the rows' values, the coalitions' own variance on its diagonal."""
        z, s = rows.signs, self.relevance.sum()
        p = (z * self.relevance) @ z.T
        up, down = np.exp(p - s), np.exp(-p - s)
        matrix = (self.linear / z.shape[1]) * (z @ z.T) + self.cubic * (p / s) ** 3 + self.odd * (up - down)
        if not rows.paired:
            square, cosh = self.even
            matrix += _LEVEL + square * (p / s) ** 2 + cosh * (up + down)
        if rows.shares is not None:
            matrix *= 1 + self.apart * rows.shares @ rows.shares.T
        np.einsum("ii->i", matrix)[:] += self.noise(rows.balance) * _squares(rows)
        return np.asarray(matrix)

    def noise(self, balance: Array) -> Array:
        """The own variance of coalitions with 2 |T| / n - 1 = balance, and what keeps the matrix invertible."""
        least = _JITTER * (self.linear + self.cubic + self.odd + sum(self.even))
        return np.asarray(self.own * np.exp(-self.fade * balance**2) + least)


def learn(rows: Rows) -> Process:
    """The parameters of largest posterior density given the rows (of mean square 1), stage by stage."""
    n, several = rows.signs.shape[1], rows.shares is not None
    order = np.concatenate([[0], 1 + np.random.default_rng(0).permutation(rows.n_rows - 1)])
    centre = np.concatenate([np.full(n, np.log(2 / n)), np.log([1.0, 1e-3, 0.1, 0.1]), [1.0]])
    centre = np.concatenate([centre, np.log([0.1, 0.1][: 0 if rows.paired else 2]), np.zeros(int(several))])
    precision = np.where(np.arange(len(centre)) < n, _TIGHT, _LOOSE)
    theta = centre
    for most, floor in _STAGES:
        part = rows.take(order[:most])
        gram = part.signs @ part.signs.T / n

        def objective(theta: Array, part: Rows = part, gram: Array = gram) -> tuple[float, Array]:
            value, gradient = _misfit(theta, part, gram)
            away = theta - centre
            return value + float(precision @ away**2) / 2, gradient + precision * away

        bounds = [(-12.0, 3.0)] * n + [(-10.0, 10.0), (np.log(floor), 1.0)]
        bounds += [(-23.0, 6.0)] * 2 + [(0.0, _MOST_FADE)] + [(-23.0, 6.0)] * (len(centre) - n - 5)
        low, high = np.array(bounds).T
        found = minimize(
            objective,
            np.clip(theta, low, high),
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"maxiter": int(np.clip(_STEPS // part.n_rows, _LEAST_STEPS, _MOST_STEPS)), "maxcor": 20},
        )
        theta = found.x
    return Process.of(theta, n, rows.paired, several)


def _misfit(theta: Array, rows: Rows, gram: Array) -> tuple[float, Array]:
    """- log likelihood of the rows, and its gradient in the logarithms of the parameters."""
    z, n = rows.signs, rows.signs.shape[1]
    it = Process.of(theta, n, rows.paired, rows.shares is not None)
    b, s = it.relevance, it.relevance.sum()
    p = (z * b) @ z.T
    up, down = np.exp(p - s), np.exp(-p - s)
    sinh, cosh = up - down, up + down
    square = p * p
    cube = square * p * (it.cubic / s**3)
    matrix = it.linear * gram + cube + it.odd * sinh
    if not rows.paired:
        matrix += _LEVEL + (it.even[0] / s**2) * square + it.even[1] * cosh
    together = None
    if rows.shares is not None:
        together = rows.shares @ rows.shares.T
        common = matrix
        matrix = matrix * (1 + it.apart * together)
    squares, balance = _squares(rows), rows.balance
    np.einsum("ii->i", matrix)[:] += it.noise(balance) * squares
    root, failed = dpotrf(matrix, lower=1, clean=1)
    if failed:
        return _FAR, np.zeros_like(theta)
    solved, _ = dpotrs(root, rows.values, lower=1)
    misfit = rows.values @ solved / 2 + np.log(np.diag(root)).sum()
    slope, _ = dpotri(root, lower=1, overwrite_c=1)  # d misfit / d matrix = (inverse - solved solved^T) / 2
    slope = slope + np.tril(slope, -1).T
    slope -= np.outer(solved, solved)
    slope /= 2
    gradient = np.empty_like(theta)
    own = it.own * np.exp(-it.fade * balance**2) * squares * np.diag(slope)
    gradient[n + 1], gradient[n + 4] = own.sum(), -(own @ balance**2)
    if together is not None:
        gradient[-1] = it.apart * np.vdot(slope, common * together)
        slope *= 1 + it.apart * together
    along = _quadratic(z, slope)
    by_cube, by_sinh = np.vdot(slope, cube), it.odd * np.vdot(slope, sinh)
    in_p = (3 * it.cubic / s**3) * square + it.odd * cosh
    in_s = -3 * by_cube / s - by_sinh
    if not rows.paired:
        by_square = (it.even[0] / s**2) * np.vdot(slope, square)
        by_cosh = it.even[1] * np.vdot(slope, cosh)
        in_p += (2 * it.even[0] / s**2) * p + it.even[1] * sinh
        in_s -= 2 * by_square / s + by_cosh
        gradient[n + 5 : n + 7] = by_square, by_cosh
    slope *= in_p
    gradient[:n] = b * (_quadratic(z, slope) + in_s)
    gradient[n] = it.linear / n * along.sum()
    gradient[n + 2 : n + 4] = by_cube, by_sinh
    return float(misfit), gradient


def _quadratic(z: Array, matrix: Array) -> Array:
    """z_j^T matrix z_j for every feature."""
    return np.asarray(np.einsum("ri,ri->i", z, matrix @ z))


def _squares(rows: Rows) -> Array:
    """What a mean over baselines leaves of the coalitions' own variance."""
    return np.ones(rows.n_rows) if rows.shares is None else np.asarray((rows.shares**2).sum(1))
