"""Of several estimates from the same replicates, the one whose replicates agree best.

If an estimate were chosen because its own replicates agree, it would be biased and its error would look too small. Each
fold of the replicates therefore uses the estimate that the other folds choose.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

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
        self._failures = 0

    def look_at(self, estimate: Estimate, factor: float = 1.0) -> None:
        """Try an estimate whose departures have to be widened by `factor`."""
        before = self._choice(np.ones(len(estimate.departures), dtype=bool)) if self._tried else -1
        self._tried.append((estimate, factor))
        better = self._choice(np.ones(len(estimate.departures), dtype=bool)) != before
        self._failures = 0 if better else self._failures + 1

    @property
    def over(self) -> bool:
        return self._failures == PATIENCE

    @property
    def estimate(self) -> Estimate:
        """The estimate in which each fold of the replicates uses what the other folds choose."""
        n = len(self._tried[0][0].departures)
        fold = np.arange(n) % n_folds(max(n, 1))
        chosen = [self._choice(fold != number) for number in range(fold.max(initial=0) + 1)]
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

    def _choice(self, rows: Array) -> int:
        """The place of the estimate that these replicates choose; a single replicate has no spread, so all choose."""
        best, least = 0, np.inf
        for place, (estimate, factor) in enumerate(self._tried):
            departures = estimate.departures[rows] if rows.sum() > 1 else estimate.departures
            spread = factor**2 * ((departures - departures.mean(0)) ** 2).sum()
            if place == 0 or spread < CLEARLY * least:
                best, least = place, spread
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


def _fewest(counts: list[Array | None]) -> Array | None:
    """The least number of carriers of each value."""
    known = [count for count in counts if count is not None]
    return np.min(known, axis=0) if known else None
