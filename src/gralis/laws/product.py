"""Product kernels, pi(S) = prod_{j in S} p_j: a predecessor set is "who arrived before time u".

    Z_i = integral over u in [0, 1] of prod_{j != i} (1 - u + u p_j),   T | u: each j joins with odds u p_j : 1 - u.

Every operation takes O(n) per node or per draw. All terms are positive, and everything else is computed in logarithms,
so that 150 000 features and any sigma work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, logsumexp

from gralis.arrays import Array, Masks
from gralis.laws.decreasing import Steps, draw_decreasing
from gralis.laws.law import TILT, log_shapley, spread, stratified

__all__ = ["ProductLaw"]

N_NODES = 24  # of Gauss-Legendre, on each panel
NEGLIGIBLE = 60  # nodes with less than exp(-NEGLIGIBLE) of the largest mass are left out
_NODE, _WEIGHT = np.polynomial.legendre.leggauss(N_NODES)
_N_CELLS = 256
_STEPS_KEPT = 256  # features whose steps are remembered
_TABLE = 2**20  # numbers in one table of arrival times and features


@dataclass(frozen=True, eq=False)
class ProductLaw:
    """The law of a product kernel, pi(S) = prod_{j in S} p_j.

    Parameters
    ----------
    log_p : array of shape (n_features,)
        log p_j <= 0 for every feature j.

    Examples
    --------
    >>> ProductLaw(np.log([0.5, 1.0])).normaliser.round(12).tolist()
    [1.0, 0.75]
    """

    log_p: Array

    @property
    def n_features(self) -> int:
        return len(self.log_p)

    @cached_property
    def _gap(self) -> Array:
        """1 - p_j."""
        return np.asarray(-np.expm1(self.log_p))

    def _log_product(self, u: Array) -> Array:
        """log prod_j (1 - u + u p_j)."""
        parts = [np.log1p(-u[rows, None] * self._gap).sum(1) for rows in self._blocks(len(u))]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _blocks(self, n_times: int) -> Iterator[slice]:
        """Slices of n_times, so that a table of (times, features) stays small whatever the number of features is."""
        step = max(1, _TABLE // self.n_features)
        return (slice(start, start + step) for start in range(0, n_times, step))

    def _nodes(self, rate: float, tilt: float = 0.0) -> tuple[Array, Array]:
        """Arrival times u and log weights such that sums are integrals of u^-tilt f(u) du.

        f may fall like exp(-rate u): panels are halved down to 1 / rate, and Gauss-Legendre is exact to rounding on
        each of them. The substitution s = u^(1 - tilt) removes the factor u^-tilt.
        """
        n_panels = int(np.ceil(np.log2(max(rate, 1.0)))) + 1
        edges = np.concatenate([[0.0], 0.5 ** np.arange(n_panels, -1.0, -1.0)])
        width = np.diff(edges)[:, None]
        s = (edges[:-1, None] + width * (_NODE + 1) / 2).ravel()
        log_weight = np.log((width * _WEIGHT / 2).ravel()) - np.log1p(-tilt)
        return s ** (1 / (1 - tilt)), log_weight

    def _arrivals(self, tilt: float = 0.0) -> tuple[Array, Array]:
        """Nodes u and log weights of prod_j (1 - u + u p_j) u^-tilt du; nodes below rounding are left out."""
        u, log_weight = self._nodes(float(self._gap.sum()), tilt)
        mass = self._log_product(u) + log_weight
        kept = mass > mass.max() - NEGLIGIBLE
        return u[kept], mass[kept]

    def _log_normaliser(self, tilt: float) -> Array:
        total = np.full(self.n_features, -np.inf)
        u, mass = self._arrivals(tilt)
        for rows in self._blocks(len(u)):
            parts = mass[rows, None] - np.log1p(-u[rows, None] * self._gap)
            top = parts.max(0)
            total = np.logaddexp(total, top + np.log(np.exp(parts - top).sum(0)))
        return total

    @cached_property
    def _log_z(self) -> Array:
        return self._log_normaliser(0.0)

    @cached_property
    def _log_share(self) -> Array:
        """log 1 / (p_i Z_i), Z_i with tilted arrivals: the share of member i in the proposal on T."""
        return -self.log_p - self._log_normaliser(TILT)

    @property
    def normaliser(self) -> Array:
        return np.asarray(np.exp(self._log_z))

    @cached_property
    def _log_total(self) -> float:
        """log of sum_T pi(T) B(t, n - t + 1) = log integral of (prod_j (1 - u + u p_j) - (1 - u)^n) / u."""
        u, log_weight = self._nodes(float(self.n_features))
        return float(logsumexp(self._log_first(u) + log_weight))

    def _log_first(self, u: Array) -> Array:
        """log of (prod_j (1 - u + u p_j) - (1 - u)^n) / u, a decreasing function of u < 1.

        The sum runs over the first member to join. All its terms are positive, so nothing cancels when every p is
        tiny.
        """
        before, total = np.arange(self.n_features), np.empty(len(u))
        for rows in self._blocks(len(u)):
            a = u[rows, None]
            step = np.log1p(-a * self._gap)
            terms = self.log_p + before * np.log1p(-a) + step.sum(1, keepdims=True) - np.cumsum(step, axis=1)
            top = terms.max(1)
            total[rows] = top + np.log(np.exp(terms - top[:, None]).sum(1))
        return total

    @property
    def inclusion(self) -> Array:
        return np.asarray(np.exp(self.log_p + self._log_z - self._log_total))

    def _log_kernel(self, masks: Masks) -> Array:
        return np.asarray(masks @ self.log_p)

    def log_conditional(self, masks: Masks) -> Array:
        common = log_shapley(self.n_features, masks.sum(1)) + self._log_kernel(masks)
        return np.where(masks, common[:, None] - self.log_p - self._log_z, -np.inf)

    def log_probability(self, masks: Masks) -> Array:
        return log_shapley(self.n_features, masks.sum(1)) + self._log_kernel(masks) - self._log_total

    def sample(self, rng: np.random.Generator, n_coalitions: int) -> Masks:
        u = draw_decreasing(rng, self._log_first, self._first_steps, rng.random(n_coalitions), 0.0)
        masks = np.empty((n_coalitions, self.n_features), dtype=bool)
        for row, a in enumerate(u):
            odds = self._odds(a)
            # T is not empty: its first member is drawn from the law of "first to join", the later ones freely.
            first = np.cumsum(odds * np.exp(np.concatenate([[0.0], np.cumsum(np.log1p(-odds))[:-1]])))
            start = int(np.searchsorted(first, rng.random() * first[-1]))
            masks[row] = rng.random(self.n_features) < odds
            masks[row, :start], masks[row, start] = False, True
        return masks

    @cached_property
    def _first_steps(self) -> Steps:
        """Steps above the density of `sample`'s arrival time."""
        cells = self._cells(float(self.n_features))
        return Steps.of(cells, self._log_first(cells[:-1]))

    def propose(self, rng: np.random.Generator, n_coalitions: int, least: int = 1) -> tuple[Masks, Array]:
        # Otherwise nearly every draw would be a single feature and would have to be repeated. If every p is near 1
        # the law cannot become wider (n <= 3).
        if least > 1 and self.single_share > 0.5 and self.log_p.min() < -0.1:
            return self._wider.propose(rng, n_coalitions, least)
        owner, level = spread(rng, n_coalitions, self.n_features), stratified(rng, n_coalitions)
        masks = np.empty((n_coalitions, self.n_features), dtype=bool)
        for row, (i, at) in enumerate(zip(owner, level, strict=True)):
            size, where = 0, float(at)
            while size < least:  # a coalition that is too small is drawn again, at a random level for a random owner
                masks[row] = rng.random(self.n_features) < self._odds(self._arrival_of(rng, int(i), where))
                masks[row, i] = True
                size, where, i = int(masks[row].sum()), float(rng.random()), rng.integers(self.n_features)
        kept = 0.0 if least == 1 else np.log1p(-self.single_share)
        return masks, self._log_proposal(masks) - kept

    @cached_property
    def _wider(self) -> ProductLaw:
        """The law of the square root of the kernel; its draws cover those of this law, with exact weights too."""
        return ProductLaw(self.log_p / 2)

    @cached_property
    def single_share(self) -> float:
        """How much of the proposal falls on single features."""
        alone = self.log_p + self._log_share  # log 1 / Z_i: r({i}) up to constants
        constants = betaln(1 - TILT, self.n_features) - np.log(self.n_features)
        return float(np.exp(logsumexp(alone) + constants))

    @cached_property
    def _tilted_cells(self) -> tuple[Array, Array, Array]:
        """Cells of s = u^(1 - TILT), u at their left edges, and log prod_j (1 - u + u p_j) there."""
        cells = self._cells(float(self._gap.sum())) ** (1 - TILT)
        left = cells[:-1] ** (1 / (1 - TILT))
        return cells, left, self._log_product(left)

    def _arrival_of(self, rng: np.random.Generator, i: int, level: float) -> float:
        """One arrival time of feature i, of density u^-TILT prod_{j != i} (1 - u + u p_j), near this quantile."""

        def without_i(u: Array, log_product: Array) -> Array:
            return np.asarray(log_product - np.log1p(-u * self._gap[i]))

        if i not in self._steps_of:
            cells, left, product = self._tilted_cells
            if len(self._steps_of) >= _STEPS_KEPT:
                self._steps_of.clear()
            self._steps_of[i] = Steps.of(cells, without_i(left, product))
        steps = self._steps_of[i]
        drawn = draw_decreasing(rng, lambda u: without_i(u, self._log_product(u)), steps, np.array([level]), TILT)
        return float(drawn[0])

    @cached_property
    def _steps_of(self) -> dict[int, Steps]:
        """What `_arrival_of` draws from for the features that it was asked for."""
        return {}

    def _log_proposal(self, masks: Masks) -> Array:
        """log r(T), r(T) = (1/n) sum_{i in T} B(t - TILT, n - t + 1) pi(T \\ i) / Z_i (tilted)."""
        sizes, top = masks.sum(1), self._log_share.max()
        members = np.log(masks @ np.exp(self._log_share - top)) + top
        body = betaln(sizes - TILT, self.n_features - sizes + 1.0) + self._log_kernel(masks)
        return np.asarray(body + members - np.log(self.n_features))

    def _odds(self, u: float | Array) -> Array:
        """P(j joins before u) = u p_j / (1 - u + u p_j), (n_features,) or (n_times, n_features)."""
        return np.asarray(u * self._p / (1 - u * self._gap))

    @cached_property
    def _p(self) -> Array:
        return np.asarray(np.exp(self.log_p))

    def _cells(self, rate: float) -> Array:
        """Edges of cells on [0, 1], which are small where exp(-rate u) falls."""
        return np.concatenate([[0.0], np.geomspace(0.01 / max(rate, 1.0), 1.0, _N_CELLS)])

    @cached_property
    def _owner_mass(self) -> tuple[Array, Array]:
        """Arrival times u, and for each of them the mass of u in the conditional law of every feature."""
        u, mass = self._arrivals()
        return u, np.exp(mass[:, None] - np.log1p(-u[:, None] * self._gap) - self._log_z)

    @cached_property
    def _joins(self) -> Array:
        """P(j joins before u) at the times of `_owner_mass`, and a column of ones: (n_times, n_features + 1)."""
        u, _ = self._owner_mass
        return np.concatenate([self._odds(u[:, None]), np.ones((len(u), 1))], axis=1)

    def subset_moments(self, sets: NDArray[np.int64]) -> Array:
        _, mass = self._owner_mass
        joins = self._joins
        product = mass[:, sets[:, 0]]
        for column in sets.T[1:]:
            product = product * joins[:, column]
        return np.asarray(product.sum(0))

    def size_moments(self) -> Array:
        n, (u, mass) = self.n_features, self._owner_mass
        moments = np.zeros((3, n))
        for rows in self._blocks(len(u)):
            odds, own = self._odds(u[rows, None]), mass[rows]
            spread_of_one = odds * (1 - odds)
            mean = 1 + odds.sum(1, keepdims=True) - odds
            variance = spread_of_one.sum(1, keepdims=True) - spread_of_one
            moments[0] += own.sum(0)
            moments[1] += (own * mean).sum(0) / n
            moments[2] += (own * (mean**2 + variance)).sum(0) / n**2
        return moments
