"""The game v of a ledger: v(T) = F(x_T) - F(x') of its coalitions, averaged over the baselines.

A sum over all coalitions, sum_T c(T) v(T), is estimated from the rows of a replicate by sum c(T) v(T) / rate(T). Rows
that are known anyway (all features; single features where there is a census) enter without any sampling error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from gralis.arrays import Array, Masks
from gralis.errors import GralisError
from gralis.ledger import FoldedLedger, Ledger
from gralis.rays import CENSUS

MOST_ENUMERATED = 20


@dataclass(frozen=True, eq=False)
class Game:
    """Rows of coalition values; `log_count`: log of how many coalitions a row stands for within its replicate."""

    masks: Masks  # (n_rows, n_features)
    value: Array  # (n_rows,)
    log_count: Array  # (n_rows,) log of baseline weight / expected draws; of the weight alone for known rows
    replicate: NDArray[np.int64]  # (n_rows,) -1: known, counts in every replicate
    n_replicates: int  # some of them may have no row
    complete: bool  # every coalition is there
    from_rays: bool  # some values are Lemma A sums of a ray, not forwards
    chained: bool = False  # rows lie along permutations: those of a replicate are nested

    @property
    def n_features(self) -> int:
        return int(self.masks.shape[1])

    @property
    def n_distinct(self) -> int:
        """How many different coalitions there are."""
        return len(np.unique(np.packbits(self.masks, axis=1), axis=0))

    @property
    def note(self) -> str:
        return "values from ray sums (Lemma A), not forwards" if self.from_rays else ""

    def table(self) -> Array:
        """v of all 2^n coalitions, the empty one first; only for a complete game."""
        codes = self.masks.astype(np.int64) @ (1 << np.arange(self.n_features))
        v = np.zeros(2**self.n_features)
        np.add.at(v, codes, np.exp(self.log_count) * self.value)  # complete: a row counts with its baseline's weight
        return v

    def together(self, without: int = -2) -> Array:
        """log of how many coalitions a row stands for among all replicates, or all but one (-inf on its rows)."""
        n_used = self.n_replicates - (without >= 0)
        log = self.log_count - np.where(self.replicate >= 0, np.log(n_used), 0.0)
        return np.where(self.replicate == without, -np.inf, log)


def game(ledger: Ledger | FoldedLedger, full: Array, baseline_weights: Array, exact: bool) -> Game:
    """The game in a ledger's rows; `full` is v of all features, for every baseline."""
    if isinstance(ledger, FoldedLedger):
        raise GralisError(
            "This needs the value of every coalition, and a folded ledger keeps none: explain with fewer features, or "
            "a smaller budget."
        )
    value, from_rays = _values(ledger)
    with np.errstate(divide="ignore"):  # a baseline may have no weight
        log_weights = np.log(baseline_weights)
    log_share = log_weights[ledger.baseline]
    if exact:
        return Game(ledger.masks, value, log_share, np.zeros(ledger.n_rays, dtype=np.int64), 1, True, from_rays)
    everyone = ledger.masks.all(1)
    sampled = (ledger.replicate >= 0) & ~everyone
    census = (ledger.replicate == CENSUS) & ~everyone
    n_baselines = len(baseline_weights)
    return Game(
        np.concatenate([ledger.masks[sampled], ledger.masks[census], np.ones((n_baselines, ledger.n_features), bool)]),
        np.concatenate([value[sampled], value[census], full]),
        np.concatenate([(log_share - ledger.log_rate)[sampled], log_share[census], log_weights]),
        np.concatenate([ledger.replicate[sampled], np.full(census.sum() + n_baselines, -1)]),
        ledger.n_replicates,
        False,
        from_rays,
        bool((ledger.owner[sampled] >= 0).any()),
    )


def log_class_size(n_features: int) -> Array:
    """log C(n, t) for t = 0 .. n."""
    t = np.arange(n_features + 1)
    return np.asarray(gammaln(n_features + 1) - gammaln(t + 1) - gammaln(n_features - t + 1))


def _values(ledger: Ledger) -> tuple[Array, bool]:
    """v(T) of every row; where no forward was made, the sum of the whole ray (Lemma A)."""
    known = np.isfinite(ledger.value)
    if known.all():
        return ledger.value, False
    if (ledger.nodes_per_ray[~known] == 0).any():
        raise GralisError("Some coalitions have neither a value nor a ray; explain with coalition_values=True.")
    return np.where(known, ledger.value, ledger.rays.sum(1)), True
