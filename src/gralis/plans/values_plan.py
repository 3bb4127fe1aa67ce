"""Coalition values only, for Shapley values: coalitions are evaluated with their complements, and none twice.

Sh_i = (1/n) sum over t of the mean of v(T) - v(complement of T) over the T of size t that contain i. Only differences
within pairs matter, and all sizes have the same weight.

1. Census. Single features and their complements are always evaluated. A small size is listed in full if it has no more
   coalitions than its share of the budget. Pairs of features are listed too if they take less than half of the budget;
   this determines the Shapley values of games whose interactions have at most four features.
2. Replicates. The other sizes are drawn in equal numbers, without replacement.

A fit to these values makes the most of every call, and takes up to seconds. Random orders (`walks`) need no fit, but
many more calls; they are for models that cost less than the fit.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks
from gralis.checks import one_of
from gralis.estimators import SHAPLEY
from gralis.laws.law import systematic_counts
from gralis.plans.enumeration import all_values, forwards_for_all
from gralis.plans.plan import Plan, PlanningTask, Probe, Schedule
from gralis.plans.walks import WalksSchedule, settled_walks
from gralis.rays import CENSUS, RayRequest

__all__ = ["Deck", "ValuesPlan", "ValuesSchedule", "filled", "values"]

_REPLICATES = range(6, 21)
_LESS_THAN_HALF = 0.45


def values(orders: bool = False) -> Plan:
    """Shapley values from forward passes alone; the kernel plays no part.

    All coalitions are evaluated if the budget of forward passes allows, else pairs of complementary coalitions or pairs
    of opposite orders.

    Parameters
    ----------
    orders : bool, default=False
        False evaluates pairs of complements and fits a process to their values, which makes the most of every call and
        takes up to seconds. True walks along random orders and fits nothing, which makes the most of the time if the
        model costs some microseconds per row: give it a large budget. Interactions from many orders take long.

    Returns
    -------
    Plan

    Examples
    --------
    >>> values().name, values(orders=True).orders
    ('values', True)
    """
    return ValuesPlan(one_of(orders, (False, True), "orders", "plans.values"))


@dataclass(frozen=True)
class ValuesPlan(Plan):
    """All coalitions if the budget of forward passes allows, else pairs of complements, or of opposite orders."""

    orders: bool = False

    name = "values"
    counts_forwards = True

    def settle(self, task: PlanningTask, probe: Probe) -> ValuesSchedule | WalksSchedule:
        n, ends = task.n_features, 1 + task.n_baselines  # F(x) and every F(x') are forwards too
        moving = int((task.squared_distance > 0).any(0).sum())  # the evaluator knows that the others change nothing
        everything = forwards_for_all(task, moving, self.name)
        if task.budget is None or task.budget >= everything:
            return ValuesSchedule(task, None, 1, (2**n - 1) * task.n_baselines, exact=True)
        if self.orders:
            return settled_walks(task)
        single = task.n_baselines == 1
        least = ends + 2 * n + 2 * task.least_replicates
        task.needs(int(min(least, everything)), f"plan='values' with {n} features")
        n_pairs = (task.budget - ends) // 2
        listed = _listed(n, n_pairs) if single else ()
        left = n_pairs - sum(_n_pairs(n, size) for size in listed)
        if task.replicates:
            replicates = task.replicates
        elif task.rays_per_replicate:
            replicates = max(task.least_replicates, 2 * left // task.rays_per_replicate)
        else:  # the number that leaves the fewest pairs unused
            most = max(task.least_replicates, left // 2)
            replicates = min((r for r in _REPLICATES if r <= most), key=lambda r: left % r, default=most)
        task.needs(ends + 2 * (n_pairs - left + replicates), f"plan='values' with {replicates} replicates")
        return ValuesSchedule(task, None, replicates, 2 * (left // replicates), listed=listed)


@dataclass(frozen=True, eq=False, kw_only=True)
class ValuesSchedule(Schedule):
    """The settled plan: some sizes are listed in full with their complements, and a deck holds the others."""

    exact: bool = False
    listed: tuple[int, ...] = ()

    name = "values"
    estimator = SHAPLEY

    def replicate(self, index: int) -> RayRequest:
        return all_values(self.task, index) if self.exact else self._deck.deal(index)

    def census(self) -> RayRequest | None:
        if self.exact:
            return None
        n, n_baselines = self.task.n_features, self.task.n_baselines
        rows = [np.ones((n_baselines, n), dtype=bool)]  # known from F(x) and F(x') without another forward
        for size in self.listed:
            subsets = _subsets(n, size)
            rows += [subsets, ~subsets]
        masks = np.concatenate(rows)
        baseline = np.concatenate([np.arange(n_baselines), np.zeros(len(masks) - n_baselines, dtype=np.int64)])
        return RayRequest.of(masks, np.zeros(len(masks)), CENSUS, baseline=baseline)

    @cached_property
    def _deck(self) -> Deck:
        return Deck(self.task, self.listed, self.rays_per_replicate // 2)

    def describe(self) -> dict[str, object]:
        return {**super().describe(), "exact": self.exact, "listed_sizes": list(self.listed)}


@dataclass(eq=False)
class Deck:
    """Pairs of complements in the order in which replicates take them; each pair occurs once for each baseline."""

    task: PlanningTask
    listed: tuple[int, ...]
    per_replicate: int
    _dealt: list[RayRequest] = field(default_factory=list)
    _seen: set[tuple[int, bytes]] = field(default_factory=set)

    def __post_init__(self) -> None:
        n = self.task.n_features
        self._sizes = np.array([size for size in range(1, n // 2 + 1) if size not in self.listed], dtype=np.int64)
        self._classes = np.array([float(_n_pairs(n, int(size))) for size in self._sizes])
        self._left = np.repeat(self._classes[:, None], self.task.n_baselines, axis=1)  # (n_sizes, n_baselines)

    def deal(self, index: int) -> RayRequest:
        """The pairs of one replicate; the pairs of earlier replicates are drawn first."""
        while len(self._dealt) <= index:
            self._dealt.append(self._next(len(self._dealt)))
        return self._dealt[index]

    def _next(self, index: int) -> RayRequest:
        task, rng = self.task, self.task.rng(index)
        n, shares = task.n_features, task.baseline_weights
        room = self._left.sum(1)
        expected = filled(float(self.per_replicate), _weights(self._sizes, n), room)
        counts = np.minimum(systematic_counts(rng, expected), room).astype(np.int64)
        total = int(counts.sum())
        places = systematic_counts(rng, total * shares) if len(shares) > 1 else np.array([total])
        baseline = rng.permutation(np.repeat(np.arange(len(shares)), places))
        masks = np.empty((total, n), dtype=bool)
        for row, place in enumerate(np.repeat(np.arange(len(counts)), counts)):
            if not self._left[place, baseline[row]]:  # all pairs of this size are used up for this baseline
                baseline[row] = int(self._left[place].argmax())
            self._left[place, baseline[row]] -= 1
            masks[row] = self._draw(rng, int(self._sizes[place]), int(baseline[row]))
        rate = np.log(expected / self._classes, where=expected > 0, out=np.full(len(expected), -np.inf))
        log_rate = np.repeat(rate, counts) + np.log(shares[baseline])
        both = np.stack([masks, ~masks], axis=1).reshape(-1, n)
        return RayRequest.of(both, np.repeat(log_rate, 2), index, baseline=np.repeat(baseline, 2))

    def _draw(self, rng: np.random.Generator, size: int, baseline: int) -> Masks:
        """A coalition of this size that was not drawn before, uniform among those that are left."""
        n = self.task.n_features
        while True:
            mask = np.zeros(n, dtype=bool)
            mask[rng.permutation(n)[:size]] = True
            key = (baseline, (mask if 2 * size < n or mask[0] else ~mask).tobytes())
            if key not in self._seen:
                self._seen.add(key)
                return mask


def filled(total: float, weights: Array, room: Array) -> Array:
    """The total shared in proportion to the weights, but nowhere more than the room there.

    >>> filled(6.0, np.array([1.0, 1.0, 1.0]), np.array([1.0, 9.0, 9.0])).tolist()
    [1.0, 2.5, 2.5]
    """
    shares = np.zeros_like(weights)
    open_ = room > 0
    while open_.any() and total > 0:
        shares[open_] = total * weights[open_] / weights[open_].sum()
        over = open_ & (shares >= room)
        if not over.any():
            break
        shares[over] = room[over]
        total -= float(room[over].sum())
        open_ &= ~over
    return np.asarray(np.minimum(shares, room))


def _weights(sizes: NDArray[np.int64], n: int) -> Array:
    """The weight of each size in a fair deal: a pair serves the sizes t and n - t, or only n / 2."""
    return np.where(2 * sizes == n, 0.5, 1.0)


def _listed(n: int, n_pairs: int) -> tuple[int, ...]:
    """The sizes to list in full: those with no more pairs than their share, and size two if half or more is left."""
    sizes = np.arange(1, n // 2 + 1)
    room = np.array([float(_n_pairs(n, int(size))) for size in sizes])
    small = filled(float(n_pairs), _weights(sizes, n), room) >= room
    few = np.cumsum(room) <= _LESS_THAN_HALF * n_pairs
    return tuple(int(size) for size in sizes if size == 1 or small[size - 1] or (size == 2 and few[1]))


def _n_pairs(n: int, size: int) -> int:
    """The number of pairs of complements whose smaller side has this size."""
    return comb(n, size) // (2 if 2 * size == n else 1)


def _subsets(n: int, size: int) -> Masks:
    """All coalitions of a size, one of each pair of complements."""
    members = [chosen for chosen in itertools.combinations(range(n), size) if 2 * size < n or chosen[0] == 0]
    masks = np.zeros((len(members), n), dtype=bool)
    masks[np.arange(len(members))[:, None], np.array(members, dtype=np.int64).reshape(len(members), size)] = True
    return masks
