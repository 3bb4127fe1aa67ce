"""Coalition values only, for Shapley values: every coalition together with its complement, none of them twice.

Sh_i = (1/n) sum over t of the mean of v(T) - v(complement of T) over the T of size t that contain i: pairs are all that
matters, and all sizes alike.

1. census: single features and their complements; small sizes whose class is no larger than its share of the budget,
   and the pairs of features where they take less than half: then Shapley values of games whose interactions are of at
   most four features follow without error;
2. replicates: the other sizes in equal numbers, drawn without replacement.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cached_property
from math import comb

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks
from gralis.errors import BudgetError
from gralis.laws import all_masks
from gralis.laws.law import systematic_counts
from gralis.plans.plan import Probe, Schedule, Task
from gralis.rays import CENSUS, RayRequest

_MOST_FEATURES = 20  # up to which all coalitions may be enumerated
_REPLICATES = range(6, 21)
_LESS_THAN_HALF = 0.45


@dataclass(frozen=True)
class Values:
    """All coalitions if the budget (of forwards) allows, else pairs of complements."""

    name: str = "values"

    def settle(self, task: Task, probe: Probe) -> ValuesSchedule:
        n, ends = task.n_features, 1 + task.n_baselines  # F(x) and every F(x') are forwards too
        moving = int((task.squared_distance > 0).any(0).sum())  # the evaluator knows that the others change nothing
        everything = (2**moving - 2) * task.n_baselines + ends if n <= _MOST_FEATURES else np.inf
        if task.budget is None and n > _MOST_FEATURES:
            raise BudgetError(f"plan='values' with {n} features has 2^{n} coalitions; give a budget of forwards.")
        if task.budget is None or task.budget >= everything:
            return ValuesSchedule(task, None, 1, (2**n - 1) * task.n_baselines, exact=True)
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
        else:  # as many as leave the fewest pairs over
            most = max(task.least_replicates, left // 2)
            replicates = min((r for r in _REPLICATES if r <= most), key=lambda r: left % r, default=most)
        task.needs(ends + 2 * (n_pairs - left + replicates), f"plan='values' with {replicates} replicates")
        return ValuesSchedule(task, None, replicates, 2 * (left // replicates), listed=listed)


@dataclass(frozen=True, eq=False, kw_only=True)
class ValuesSchedule(Schedule):
    """The settled plan: sizes that are listed in full (with their complements), and a deck for the others."""

    exact: bool = False
    listed: tuple[int, ...] = ()

    name = "values"
    method = "shapley"

    def replicate(self, index: int) -> RayRequest:
        if self.exact:
            masks = all_masks(self.task.n_features)
            parts = [
                RayRequest.of(masks, np.zeros(len(masks)), index, baseline=b) for b in range(self.task.n_baselines)
            ]
            return RayRequest.stack(parts)
        return self._deck.deal(index)

    def census(self) -> RayRequest | None:
        if self.exact:
            return None
        n, n_baselines = self.task.n_features, self.task.n_baselines
        rows = [np.ones((n_baselines, n), dtype=bool)]  # known from F(x) and F(x'), no forward is made
        for size in self.listed:
            some = _subsets(n, size)
            rows += [some, ~some]
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
    """Pairs of complements in the order in which replicates take them; each pair is there once (for each baseline)."""

    task: Task
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
        """The pairs of one replicate; those before it are dealt first."""
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
            if not self._left[place, baseline[row]]:  # this baseline has seen them all
                baseline[row] = int(self._left[place].argmax())
            self._left[place, baseline[row]] -= 1
            masks[row] = self._draw(rng, int(self._sizes[place]), int(baseline[row]))
        rate = np.log(expected / self._classes, where=expected > 0, out=np.full(len(expected), -np.inf))
        log_rate = np.repeat(rate, counts) + np.log(shares[baseline])
        both = np.stack([masks, ~masks], axis=1).reshape(-1, n)
        return RayRequest.of(both, np.repeat(log_rate, 2), index, baseline=np.repeat(baseline, 2))

    def _draw(self, rng: np.random.Generator, size: int, baseline: int) -> Masks:
        """A coalition of this size that was not there before, uniform among these."""
        n = self.task.n_features
        while True:
            mask = np.zeros(n, dtype=bool)
            mask[rng.permutation(n)[:size]] = True
            key = (baseline, (mask if 2 * size < n or mask[0] else ~mask).tobytes())
            if key not in self._seen:
                self._seen.add(key)
                return mask


def filled(total: float, weights: Array, room: Array) -> Array:
    """The total shared in proportion to the weights, but nowhere more than there is room for.

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
    """A pair of sizes t and n - t serves both; the middle size is its own partner."""
    return np.where(2 * sizes == n, 0.5, 1.0)


def _listed(n: int, n_pairs: int) -> tuple[int, ...]:
    """The sizes to list in full: those no larger than their share, and pairs if they leave half and more."""
    sizes = np.arange(1, n // 2 + 1)
    room = np.array([float(_n_pairs(n, int(size))) for size in sizes])
    small = filled(float(n_pairs), _weights(sizes, n), room) >= room
    few = np.cumsum(room) <= _LESS_THAN_HALF * n_pairs
    return tuple(int(size) for size in sizes if size == 1 or small[size - 1] or (size == 2 and few[1]))


def _n_pairs(n: int, size: int) -> int:
    """How many pairs of complements have this size on their smaller side."""
    return comb(n, size) // (2 if 2 * size == n else 1)


def _subsets(n: int, size: int) -> Masks:
    """All coalitions of a size, one of each pair of complements."""
    members = [chosen for chosen in itertools.combinations(range(n), size) if 2 * size < n or chosen[0] == 0]
    masks = np.zeros((len(members), n), dtype=bool)
    masks[np.arange(len(members))[:, None], np.array(members, dtype=np.int64).reshape(len(members), size)] = True
    return masks
