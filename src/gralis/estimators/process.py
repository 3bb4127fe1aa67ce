"""Which games are likely: a Gaussian process on coalitions, whose parameters are learnt from the rows.

Let z_j = 1 for members and -1 for the others, u = mean of z (the size), P = sum_j b_j z_j z'_j and R = sum_j b_j. The
covariance of the values of two coalitions is the sum of

    l G                           G = (1/n) sum_j z_j z'_j: effects of single features
    d s(u) s(u') k(u, u') (G - u u')    effects that change with the size, k(u, u') = exp(-(u - u')^2 / 2 r^2)
    f k(u, u')                    what depends on the size alone
    c (P / R)^3                   interactions of three features
    h (e^(P - R) - e^(-P - R))    interactions of any odd order
    m + q (P / R)^2 + g (e^(P - R) + e^(-P - R))     the even part

In addition every coalition has a variance that it shares with no other coalition. The relevance b_j says how much
feature j takes part in interactions. Shapley values depend only on the odd part, (v(T) - v(complement of T)) / 2. If
the rows come in such pairs, the even part is not needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs
from scipy.optimize import minimize

from gralis.arrays import Array

_LEVEL = 100.0  # m, in units of the mean square value; it is so large that the mean of the game is nearly free
_JITTER = 1e-10
#: For each stage, how many rows are used and the least variance that a coalition shares with no other. The likelihood
#: is very steep where this variance is near zero, so the first stage climbs a smoother one.
_STAGES = ((250, 1e-4), (1000, 1e-10))
_STEPS, _LEAST_STEPS, _MOST_STEPS = 15_000, 15, 60  # _STEPS counts steps times rows, so that a fit stays cheap
_FLAT = 1e-6  # a climb ends once a step gains less than this share of the likelihood
_LOOSE, _TIGHT = 0.01, 1.0  # the precision of the priors on log variances and on log relevances
_MOST_FADE = 60.0
_CLEARLY = 1.0  # in log likelihood; rounding must not decide which maximum is taken
_FAR = 1e25
N_PARAMETERS = 8  # in addition to one relevance per feature


@dataclass(frozen=True, eq=False)
class Rows:
    """The values of the evaluated coalitions, or their odd parts if every coalition comes with its complement.

    Attributes
    ----------
    signs : array of shape (n_rows, n_features)
        1 for the members of the coalition and -1 for the others. Row 0 is the coalition of all features.
    values : array of shape (n_rows,) or (n_rows, n_games)
        v(T), or (v(T) - v(complement of T)) / 2 if `paired`. Several games with values at the same coalitions share one
        process; their values are then divided by the root of their number, so that all of them weigh as one.
    paired : bool
        Whether the rows are odd parts.
    shares : array of shape (n_rows, n_baselines) or None
        The weights of the baselines over which a row is averaged. None means that there is only one baseline.
    """

    signs: Array
    values: Array
    paired: bool
    shares: Array | None

    def take(self, rows: NDArray[np.int64]) -> Rows:
        return Rows(
            self.signs[rows], self.values[rows], self.paired, None if self.shares is None else self.shares[rows]
        )

    @property
    def n_rows(self) -> int:
        return len(self.values)

    @cached_property
    def balance(self) -> Array:
        """2 |T| / n - 1: from -1 for the empty coalition to 1 for the coalition of all features."""
        return np.asarray(self.signs.mean(1))

    @cached_property
    def gram(self) -> Array:
        """G = (1/n) sum_j z_j z'_j of all pairs of rows, (n_rows, n_rows)."""
        return np.asarray(self.signs @ self.signs.T / self.signs.shape[1])

    @cached_property
    def centred(self) -> Array:
        """G - u u', (n_rows, n_rows)."""
        return np.asarray(self.gram - np.outer(self.balance, self.balance))

    @cached_property
    def levels(self) -> tuple[Array, Array]:
        """The different sizes, and for every row which of them it has, (n_rows, n_levels)."""
        levels, size = np.unique(self.balance, return_inverse=True)
        return levels, (size[:, None] == np.arange(len(levels))).astype(np.float64)

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """Where a flat table over pairs of levels has the entry of each pair of rows, (n_rows, n_rows)."""
        levels, member = self.levels
        size = member.argmax(1)
        return np.asarray(size[:, None] * len(levels) + size)


@dataclass(frozen=True, eq=False)
class Process:
    """The parameters of the covariance, in units of the mean square of the rows.

    Attributes
    ----------
    relevance : array of shape (n_features,)
        b in the formula of the module.
    linear : float
        l.
    own : float
        The variance that a coalition of half of the features shares with no other coalition.
    fade : float
        For other sizes this variance is multiplied by exp(-fade u^2).
    sized, curve, reach : float
        d, f and r. d is relative to `own`.
    cubic, odd : float
        c and h.
    even : tuple of two floats
        q and g. They are not used for paired rows.
    apart : float
        How much the games of different baselines differ, relative to what they have in common.
    """

    relevance: Array
    linear: float
    own: float
    fade: float
    sized: float
    curve: float
    reach: float
    cubic: float
    odd: float
    even: tuple[float, float]
    apart: float

    @staticmethod
    def of(theta: Array, n: int, paired: bool, several: bool) -> Process:
        linear, own, _, sized, curve, reach, cubic, odd, *rest = np.exp(theta[n:]).tolist()
        even = (0.0, 0.0) if paired else (rest[0], rest[1])
        apart = rest[-1] if several else 0.0
        return Process(
            np.exp(theta[:n]), linear, own, float(theta[n + 2]), sized, curve, reach, cubic, odd, even, apart
        )

    def covariance(self, rows: Rows) -> Array:
        """The covariance matrix of the values of the rows. The unshared variance is on its diagonal."""
        return _parts(self, rows).matrix

    def near(self, balance: Array, other: Array) -> Array:
        """k(u, u') of two lists of sizes."""
        return np.asarray(np.exp(-((balance[:, None] - other) ** 2) / (2 * self.reach**2)))

    def noise(self, balance: Array) -> Array:
        """The unshared variance of coalitions of these sizes, plus a small term that keeps the matrix invertible."""
        least = _JITTER * (self.linear + self.curve + self.cubic + self.odd + sum(self.even))
        return np.asarray(self.own * np.exp(-self.fade * balance**2) + least)

    def effects(self, balance: Array, other: Array) -> Array:
        """d s(u) s(u') k(u, u')."""
        fading = np.exp(-self.fade / 2 * (balance[:, None] ** 2 + other**2))
        return np.asarray(self.sized * self.own * fading * self.near(balance, other))


@dataclass(frozen=True, eq=False)
class _Parts:
    """The covariance matrix, and the parts of it that its derivatives need.

    Attributes
    ----------
    matrix : array of shape (n_rows, n_rows)
        The covariance matrix.
    common : array of shape (n_rows, n_rows)
        The same for a single baseline, and without the unshared variance.
    p, up, down : array of shape (n_rows, n_rows)
        P, e^(P - R) and e^(-P - R).
    """

    matrix: Array
    common: Array
    p: Array
    up: Array
    down: Array


def _parts(it: Process, rows: Rows) -> _Parts:
    z, u, total = rows.signs, rows.balance, it.relevance.sum()
    effects, alone = _by_size(it, rows.levels[0], rows.paired)
    p = (z * it.relevance) @ z.T
    up, down = np.exp(p - total), np.exp(-p - total)
    common = effects.take(rows.pairs)
    common *= rows.centred
    common += alone.take(rows.pairs)
    common += it.linear * rows.gram
    cube = p * p
    cube *= p
    common += (it.cubic / total**3) * cube
    common += it.odd * (up - down)
    if not rows.paired:
        common += _LEVEL + (it.even[0] / total**2) * (p * p) + it.even[1] * (up + down)
    matrix = common.copy() if rows.shares is None else common * (1 + it.apart * rows.shares @ rows.shares.T)
    np.einsum("ii->i", matrix)[:] += it.noise(u) * _squares(rows)
    return _Parts(matrix, common, p, up, down)


def _by_size(it: Process, levels: Array, paired: bool) -> tuple[Array, Array]:
    """d s s' k and f k between sizes. For paired rows they belong to the odd parts."""
    effects, alone = it.effects(levels, levels), it.curve * it.near(levels, levels)
    if not paired:
        return effects, alone
    return (effects + it.effects(levels, -levels)) / 2, (alone - it.curve * it.near(levels, -levels)) / 2


def learn(rows: Rows) -> Process:
    """The parameters with the largest posterior density given the rows, which must have mean square 1.

    The search runs in stages. The likelihood can have two maxima, one for smooth games and one for games that jump at
    some size. The first stage therefore starts once near each of them.
    """
    n, paired, several = rows.signs.shape[1], rows.paired, rows.shares is not None
    order = np.concatenate([[0], 1 + np.random.default_rng(0).permutation(rows.n_rows - 1)])
    rest = [*np.log([0.1, 0.1])[: 0 if paired else 2], *np.zeros(int(several))]
    smooth, rough = (
        np.concatenate([np.full(n, np.log(2 / n)), np.log([1.0, own]), [fade], np.log([2.0, 0.1, 0.7, by, by]), rest])
        for own, fade, by in ((1e-3, 1.0, 0.1), (0.1, 3.0, 0.01))
    )
    theta = smooth
    for most, floor in _STAGES:
        part = rows.take(order[:most])
        height, theta_next = _climb(theta, smooth, part, floor)
        if theta is smooth:
            other, theta_rough = _climb(rough, smooth, part, floor)
            theta_next = theta_rough if other < height - _CLEARLY else theta_next
        theta = theta_next
    return Process.of(theta, n, paired, several)


def _climb(start: Array, centre: Array, rows: Rows, floor: float) -> tuple[float, Array]:
    """A maximum of the posterior density near `start`, with a prior around `centre`; returns its misfit and place."""
    n = rows.signs.shape[1]
    precision = np.where(np.arange(len(centre)) < n, _TIGHT, _LOOSE)

    def objective(theta: Array) -> tuple[float, Array]:
        value, gradient = _misfit(theta, rows)
        away = theta - centre
        return value + float(precision @ away**2) / 2, gradient + precision * away

    bounds = [(-12.0, 3.0)] * n + [(-10.0, 10.0), (np.log(floor), 1.0), (0.0, _MOST_FADE), (0.0, 12.0), (-23.0, 6.0)]
    bounds += [(-np.log(n), np.log(4.0))] + [(-23.0, 6.0)] * (len(centre) - n - 6)
    steps = int(np.clip(_STEPS // rows.n_rows, _LEAST_STEPS, _MOST_STEPS))
    low, high = np.array(bounds).T
    options = {"maxiter": steps, "maxcor": 20, "ftol": _FLAT}
    optimum = minimize(
        objective, np.clip(start, low, high), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return float(optimum.fun), np.asarray(optimum.x)


def _misfit(theta: Array, rows: Rows) -> tuple[float, Array]:
    """- log likelihood of the rows, and its gradient in the parameters (logarithms, except for `fade`)."""
    z, n, u = rows.signs, rows.signs.shape[1], rows.balance
    it = Process.of(theta, n, rows.paired, rows.shares is not None)
    parts = _parts(it, rows)
    root, failed = dpotrf(parts.matrix, lower=1, clean=1)
    if failed:
        return _FAR, np.zeros_like(theta)
    solved, _ = dpotrs(root, rows.values, lower=1)
    misfit = np.vdot(rows.values, solved) / 2 + np.log(np.diag(root)).sum()
    slope, _ = dpotri(root, lower=1, overwrite_c=1)  # d misfit / d matrix = (inverse - solved solved^T) / 2
    slope = slope + np.tril(slope, -1).T
    slope -= np.outer(solved, solved) if solved.ndim == 1 else solved @ solved.T
    slope /= 2
    gradient = np.empty_like(theta)
    own = it.own * np.exp(-it.fade * u**2) * _squares(rows) * np.diag(slope)
    gradient[n + 1 : n + 3] = own.sum(), -(own @ u**2)
    if rows.shares is not None:
        together = rows.shares @ rows.shares.T
        gradient[-1] = it.apart * np.vdot(slope, parts.common * together)
        slope *= 1 + it.apart * together
    gradient[n] = it.linear / n * _quadratic(z, slope).sum()
    gradient[n + 3 : n + 6] = 0.0
    gradient[n + 1 : n + 6] += _in_sizes(it, slope, rows)
    b, total = it.relevance, it.relevance.sum()
    square, cosh, sinh = parts.p * parts.p, parts.up + parts.down, parts.up - parts.down
    by_cube = it.cubic / total**3 * np.vdot(slope, square * parts.p)
    by_sinh = it.odd * np.vdot(slope, sinh)
    in_p = (3 * it.cubic / total**3) * square + it.odd * cosh
    in_total = -3 * by_cube / total - by_sinh
    gradient[n + 6 : n + 8] = by_cube, by_sinh
    if not rows.paired:
        by_square = (it.even[0] / total**2) * np.vdot(slope, square)
        by_cosh = it.even[1] * np.vdot(slope, cosh)
        in_p += (2 * it.even[0] / total**2) * parts.p + it.even[1] * sinh
        in_total -= 2 * by_square / total + by_cosh
        gradient[n + 8 : n + 10] = by_square, by_cosh
    slope *= in_p
    gradient[:n] = b * (_quadratic(z, slope) + in_total)
    return float(misfit), gradient


def _in_sizes(it: Process, slope: Array, rows: Rows) -> Array:
    """The gradient in own, fade, d, f and r of the terms that depend on sizes, computed from tables over sizes."""
    levels, member = rows.levels
    in_effects, in_alone = member.T @ ((slope * rows.centred) @ member), member.T @ (slope @ member)
    effects, alone = _by_size(it, levels, rows.paired)
    far = (levels[:, None] - levels) ** 2 / it.reach**2
    if rows.paired:
        far_across = (levels[:, None] + levels) ** 2 / it.reach**2
        effects_far = (it.effects(levels, levels) * far + it.effects(levels, -levels) * far_across) / 2
        alone_far = it.curve * (it.near(levels, levels) * far - it.near(levels, -levels) * far_across) / 2
    else:
        effects_far, alone_far = effects * far, alone * far
    in_reach = np.vdot(in_effects, effects_far) + np.vdot(in_alone, alone_far)
    in_sized = np.vdot(in_effects, effects)
    in_fade = -np.vdot(in_effects, effects * (levels[:, None] ** 2 + levels**2)) / 2
    return np.array([in_sized, in_fade, in_sized, np.vdot(in_alone, alone), in_reach])


def _quadratic(z: Array, matrix: Array) -> Array:
    """z_j^T matrix z_j for every feature."""
    return np.asarray(np.einsum("ri,ri->i", z, matrix @ z))


def _squares(rows: Rows) -> Array:
    """The factor by which averaging over baselines reduces the unshared variance of each row."""
    return np.ones(rows.n_rows) if rows.shares is None else np.asarray((rows.shares**2).sum(1))
