"""Sh_i = E[v(P_i u i) - v(P_i)] over random orders, where P_i joined before i: without a fit.

Every order is followed by its reverse. The mean over such a pair has no error from effects of one or two features. The
pairs are independent, so their spread is the error. A feature may matter in so few orders that hardly one of them was
drawn: six pairs that each have one chance in P fail to occur in P draws with probability e^-6. The interval of a value
that few pairs carry therefore has room for about six more pairs that depart as far as any pair seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.estimators.design import Design, Estimator
from gralis.estimators.estimate import Estimate, NormalEstimate, carriers
from gralis.ledger import Ledger
from gralis.rays import CENSUS

__all__ = ["RandomOrders"]

_METHOD = "random orders"
_UNSEEN = 1.8  # standard errors in pairs: the quantile of a simultaneous interval, about 3.5, makes six of them
_ENOUGH = 20.0  # pairs that carry a value; with so many their spread shows its error
_AT_ROUNDING = 1e-14  # of the largest value: a departure below this is rounding


class RandomOrders(Estimator):
    """Shapley values as the mean of what each feature adds along random orders. No kernel enters them."""

    name = "orders"
    title = "Shapley values"
    summary = "What a feature adds to the output, averaged over all orders in which features may join."
    has_rays = False
    has_kernel = False
    departs_by_replicate = False  # the departures are contrasts of a normal law

    def estimates(self, ledgers: Sequence[Ledger], designs: Sequence[Design]) -> tuple[Estimate, ...]:
        return tuple(_estimate(ledger, design) for ledger, design in zip(ledgers, designs, strict=True))

    def contributions(self, ledger: Ledger, design: Design) -> None:
        return None

    def evidence(self, n_replicates: int) -> str:
        return "the spread between pairs of opposite orders"


def _estimate(ledger: Ledger, design: Design) -> Estimate:
    """The mean over the pairs. A pair whose baseline differs from the mean baseline gets the difference, spread out."""
    gained, baseline = _gained(ledger)
    n_pairs, n = gained.shape
    moving = design.moving
    whole = _whole(ledger, design.n_baselines)
    mean_whole = float(design.baseline_weights @ whole)
    gained = gained + (mean_whole - whole[baseline])[:, None] * moving / max(int(moving.sum()), 1)
    values = gained.mean(0)
    if n_pairs < 2:
        return Estimate(values, np.zeros((1, n)), _METHOD)
    apart = gained - values
    apart[np.abs(apart) <= _AT_ROUNDING * np.abs(gained).max()] = 0.0
    return _SpreadOfPairs.later(values=values, method=_METHOD, apart=apart, moving=moving)


class _SpreadOfPairs(NormalEstimate):
    """An estimate whose error is read from the spread of the pairs, once somebody asks for it."""

    apart: Array  # (n_pairs, n_features): what every pair adds minus the mean
    moving: NDArray[np.bool_]

    @cached_property
    def _carrying(self) -> Array:
        return carriers(self.apart)

    @cached_property
    def carriers(self) -> Array:
        # With d degrees of freedom of its own and 1.5 / carriers, see `Estimate.dof`, the error has those of the pairs.
        return np.minimum(0.75 * (len(self.apart) - 1), self._carrying)

    @cached_property
    def covariance(self) -> Array:  # type: ignore[override]
        apart, n_pairs = self.apart, len(self.apart)
        seen = np.where(apart.any(0), self._carrying, 0.0)
        unseen = self.moving * np.maximum(0.0, 1 - seen / _ENOUGH) * (_UNSEEN * np.abs(apart).max() / n_pairs) ** 2
        between = apart.T @ apart / (n_pairs * (n_pairs - 1))
        return np.asarray(between + _spread_out(unseen, self.moving) if unseen.any() else between)


def _spread_out(variance: Array, moving: NDArray[np.bool_]) -> Array:
    """The covariance of independent errors of the features, each of which the others balance in equal parts."""
    m = max(int(moving.sum()), 2)
    others = np.outer(moving, moving) / (m - 1)
    np.fill_diagonal(others, -1.0 * moving)
    return np.asarray((others * variance) @ others.T)


def _gained(ledger: Ledger) -> tuple[Array, NDArray[np.int64]]:
    """What every feature adds in every pair of orders, (n_pairs, n_features), and the baseline of every pair."""
    rows, n = np.flatnonzero(ledger.owner >= 0), ledger.n_features
    value = ledger.value[rows].reshape(-1, n)
    owner = ledger.owner[rows].reshape(-1, n)
    steps = value.copy()
    steps[:, 1:] -= value[:, :-1]
    gained = np.empty_like(steps)
    gained[np.arange(len(owner))[:, None], owner] = steps
    return (gained[::2] + gained[1::2]) / 2, ledger.baseline[rows[:: 2 * n]]


def _whole(ledger: Ledger, n_baselines: int) -> Array:
    """v of the coalition of all features for every baseline, (n_baselines,)."""
    rows = np.flatnonzero(ledger.replicate == CENSUS)
    rows = rows[ledger.masks[rows].all(1)]
    whole = np.full(n_baselines, np.nan)
    whole[ledger.baseline[rows]] = ledger.value[rows]
    if np.isnan(whole).any():
        raise GralisError("Shapley values need F(x) - F(x') of every baseline, and this ledger lacks the row of one.")
    return whole
