"""Pairs of opposite random orders, whose Shapley values need no fit: for models that cost less than a fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.estimators import ORDERS
from gralis.laws.law import systematic_counts
from gralis.plans.permutation_plan import Order, prefix_log_rate, prefixes
from gralis.plans.plan import PlanningTask, Schedule
from gralis.rays import CENSUS, RayRequest

__all__ = ["WalksSchedule", "settled_walks"]

_LEAST_PAIRS = 4
_LEAST_REPLICATES, _MOST_REPLICATES, _PAIRS = 5, 20, 10  # with about ten pairs each in between


@dataclass(frozen=True, eq=False, kw_only=True)
class WalksSchedule(Schedule):
    """Replicates of a few pairs of opposite orders. Every pair walks from one baseline to x and back again."""

    n_pairs: int  # of each replicate

    name = "values"
    estimator = ORDERS
    remembers = False  # two orders hardly ever meet in a coalition, and looking for it costs more than a quick model

    def replicate(self, index: int) -> RayRequest:
        return self.replicates([index])

    def replicates(self, indices: Sequence[int]) -> RayRequest:
        n, shares = self.task.n_features, self.task.baseline_weights
        in_order = np.tile(np.arange(n), (self.n_pairs, 1))
        parts = [self._drawn(index, in_order) for index in indices]
        drawn, baseline = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        orders = np.stack([drawn, drawn[:, ::-1]], axis=1).reshape(-1, n)
        masks, owner = prefixes(orders)
        replicate, baseline = np.repeat(indices, self.rays_per_replicate), np.repeat(baseline, 2 * n)
        rate = np.tile(_log_rate(n, 2 * self.n_pairs), len(orders)) + np.log(shares)[baseline]
        return RayRequest.of(masks, rate, replicate, baseline=baseline, owner=owner)

    def _drawn(self, index: int, in_order: Order) -> tuple[Order, NDArray[np.int64]]:
        """The first order of every pair of a replicate, (n_pairs, n_features), and the baseline of the pair."""
        rng, shares = self.task.rng(index), self.task.baseline_weights
        drawn = rng.permuted(in_order, axis=1)
        if len(shares) == 1:
            return drawn, np.zeros(self.n_pairs, dtype=np.int64)
        counts = systematic_counts(rng, self.n_pairs * shares)
        return drawn, rng.permutation(np.repeat(np.arange(len(shares)), counts))

    def census(self) -> RayRequest:
        """All features together with every baseline, known from F(x) and F(x') without another forward."""
        count = self.task.n_baselines
        masks = np.ones((count, self.task.n_features), dtype=bool)
        return RayRequest.of(masks, np.zeros(count), CENSUS, baseline=np.arange(count))

    def describe(self) -> dict[str, object]:
        return {**super().describe(), "n_orders": 2 * self.n_pairs * self.n_replicates}


def settled_walks(task: PlanningTask) -> WalksSchedule:
    """As many pairs of orders as the budget of forwards allows."""
    n, ends = task.n_features, 1 + task.n_baselines  # F(x) and every F(x') are forwards too
    of_pair = max(2 * (n - 1), 1)
    task.needs(ends + _LEAST_PAIRS * of_pair, f"plans.values(orders=True) with {n} features")
    assert task.budget is not None  # without a budget all coalitions are evaluated, or the plan refuses
    n_pairs = max((task.budget - ends) // of_pair, _LEAST_PAIRS)
    if task.replicates:
        replicates = task.replicates
    elif task.rays_per_replicate:
        replicates = max(task.least_replicates, n_pairs * 2 * n // task.rays_per_replicate)
    else:
        replicates = int(np.clip(n_pairs // _PAIRS, _LEAST_REPLICATES, _MOST_REPLICATES))
    replicates = min(replicates, n_pairs)
    each = n_pairs // replicates
    if not task.replicates:  # as many replicates of this size as there are pairs for
        replicates = n_pairs // each
    return WalksSchedule(task, None, replicates, 2 * n * each, n_pairs=each)


@lru_cache(maxsize=64)
def _log_rate(n: int, n_orders: int) -> Array:
    """`prefix_log_rate` of the prefixes of one order, which is that of all orders of n features, (n,)."""
    return prefix_log_rate(np.tri(n, dtype=bool), n_orders)
