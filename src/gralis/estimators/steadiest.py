"""Of several estimates from the same replicates, the one whose replicates agree best.

If an estimate were chosen because its own replicates agree, it would be biased and its error would look too small. Each
fold of the replicates therefore uses the estimate that the other folds choose.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.estimators.estimate import Estimate

__all__ = ["CLEARLY", "MOST_FOLDS", "PATIENCE", "Steadiest", "n_folds"]

MOST_FOLDS = 5
CLEARLY = 0.95  # a richer surrogate must lower the variance at least to this share
PATIENCE = 2  # the search ends after this many richer surrogates in a row without gain


def n_folds(n_replicates: int) -> int:
    """How many folds the replicates are cut into; replicate r belongs to fold r modulo this number."""
    return min(MOST_FOLDS, n_replicates)


class Steadiest:
    """A search among estimates that are tried one after the other, from plain to rich.

    An estimate is better only if its replicates agree clearly better. The search is over after `PATIENCE` estimates in
    a row that are not.
    """

    def __init__(self) -> None:
        self._tried: list[tuple[Estimate, float]] = []
        self._spreads: list[Array] = []  # of each estimate: among the replicates outside each fold, and among all
        self._best, self._failures = -1, 0

    def look_at(self, estimate: Estimate, factor: float = 1.0) -> None:
        """Try an estimate whose departures have to be widened by `factor`."""
        self._tried.append((estimate, factor))
        self._spreads.append(factor**2 * _spreads(estimate.departures))
        before, self._best = self._best, self._choice(-1)
        self._failures = 0 if self._best != before else self._failures + 1

    @property
    def over(self) -> bool:
        return self._failures == PATIENCE

    @property
    def estimate(self) -> Estimate:
        """The estimate in which each fold of the replicates uses what the other folds choose."""
        n = len(self._tried[0][0].departures)
        fold = np.arange(n) % n_folds(max(n, 1))
        chosen = [self._choice(number) for number in range(fold.max(initial=0) + 1)]
        if len(set(chosen)) == 1:
            estimate, factor = self._tried[chosen[0]]
            return estimate.widened(factor)
        mixed = np.stack([self._replicates(chosen[number])[r] for r, number in enumerate(fold)])
        used = [self._tried[place] for place in sorted(set(chosen))]
        values = mixed.mean(0)
        most = max(set(chosen), key=chosen.count)
        return Estimate(
            values,
            (mixed - values) * max(factor for _, factor in used),
            self._tried[most][0].method,
            carriers=_fewest([estimate.carriers for estimate, _ in used]),
        )

    def _replicates(self, place: int) -> Array:
        """What each replicate says, by the estimate that was tried at this place."""
        estimate, _ = self._tried[place]
        return np.asarray(estimate.values + estimate.departures)

    def _choice(self, fold: int) -> int:
        """The place of the estimate that the replicates outside a fold choose, or all replicates for fold -1."""
        best, least = 0, np.inf
        for place, spreads in enumerate(self._spreads):
            if place == 0 or spreads[fold] < CLEARLY * least:
                best, least = place, spreads[fold]
        return best

    @classmethod
    def of(cls, tried: Iterable[Estimate]) -> Estimate:
        """The steadiest of these estimates, which are made only while the search goes on."""
        search = cls()
        for estimate in tried:
            search.look_at(estimate)
            if search.over:
                break
        return search.estimate


def _spreads(departures: Array) -> Array:
    """The sum of squares around their mean of the departures outside each fold, and at last of all of them.

    A single replicate has no spread, so that all replicates stand for it.
    """
    rows = _outside_folds(len(departures))
    sums, squares = rows @ departures, rows @ np.einsum("ri,ri->r", departures, departures)
    return np.asarray(np.maximum(squares - np.einsum("fi,fi->f", sums, sums) / rows.sum(1), 0.0))


@lru_cache(maxsize=64)
def _outside_folds(n: int) -> NDArray[np.bool_]:
    """Which of n replicates lie outside each fold, and at last all of them, (n_folds + 1, n)."""
    rows = (np.arange(n) % n_folds(max(n, 1)))[None] != np.append(np.arange(n_folds(max(n, 1))), -1)[:, None]
    rows[rows.sum(1) < 2] = True
    rows.flags.writeable = False
    return np.asarray(rows)


def _fewest(counts: list[Array | None]) -> Array | None:
    """The least number of carriers of each value."""
    known = [count for count in counts if count is not None]
    return np.min(known, axis=0) if known else None
