"""The coalition values of a ledger: v(T) = F(x_T) - F(x') of its coalitions, averaged over the baselines.

The rows of a replicate estimate a sum over all coalitions, sum_T c(T) v(T), by sum c(T) v(T) / rate(T). The value of
the coalition of all features is always known, and a census adds the single features. These rows have no sampling error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from gralis.arrays import Array, Masks
from gralis.errors import GralisError
from gralis.explainers.indices import Index
from gralis.explainers.transform import Coalition, faith, index_values, moebius
from gralis.explainers.tree_values import TreeValues
from gralis.ledger import AnyLedger, Ledger, TreeLedger
from gralis.rays import CENSUS

_NOTHING = 1e-12  # of the largest value


@dataclass(frozen=True, eq=False)
class CoalitionValues:
    """Rows of coalition values, and how many coalitions each row stands for.

    Attributes
    ----------
    masks : array of bool of shape (n_rows, n_features)
        The coalition T of every row.
    value : array of shape (n_rows,)
        v(T) of every row.
    log_count : array of shape (n_rows,)
        The logarithm of how many coalitions a row stands for within its replicate: the weight of its baseline divided
        by the expected number of draws, or the weight alone for rows that are known.
    replicate : array of int of shape (n_rows,)
        The replicate of the row. -1 marks a row that is known and counts in every replicate.
    n_replicates : int
        The number of replicates. Some of them may have no row.
    complete : bool
        Whether every coalition is present.
    from_rays : bool
        Whether some values are sums over a ray (Lemma A) instead of forwards.
    chained : bool, default=False
        Whether the rows lie along permutations, so that the rows of a replicate are nested.
    """

    masks: Masks
    value: Array
    log_count: Array
    replicate: NDArray[np.int64]
    n_replicates: int
    complete: bool
    from_rays: bool
    chained: bool = False

    @property
    def n_features(self) -> int:
        return int(self.masks.shape[1])

    @property
    def n_distinct(self) -> int:
        """The number of different coalitions in the rows."""
        return len(np.unique(np.packbits(self.masks, axis=1), axis=0))

    @property
    def silent(self) -> bool:
        """Whether v is 0 at all coalitions that were drawn, but not at all known ones, so that no error shows.

        F then moves on coalitions that were hardly drawn, if on any besides the known ones.
        """
        drawn, size = self.replicate >= 0, np.abs(self.value)
        most = size.max(initial=0.0)
        return not self.complete and most > 0 and bool(drawn.any()) and bool(size[drawn].max() <= _NOTHING * most)

    @property
    def note(self) -> str:
        notes = (
            "values from ray sums (Lemma A), not forwards" if self.from_rays else "",
            "v is 0 at all coalitions that were drawn, so no error shows" if self.silent else "",
        )
        return "; ".join(note for note in notes if note)

    def table(self) -> Array:
        """v of all 2^n coalitions, the empty one first. The rows must be complete."""
        codes = self.masks.astype(np.int64) @ (1 << np.arange(self.n_features))
        v = np.zeros(2**self.n_features)
        np.add.at(v, codes, np.exp(self.log_count) * self.value)  # the weight of the row's baseline
        return v

    def rows(self, owner: str) -> CoalitionValues:
        """These values, which are rows."""
        return self

    def index(self, index: Index, sets: Sequence[Coalition]) -> Array:
        """An index of these coalitions. The rows must be complete."""
        return index_values(moebius(self.table()), index, sets)

    def moebius(self, sets: Sequence[Coalition]) -> Array:
        """The Moebius coefficients of these coalitions. The rows must be complete."""
        m = moebius(self.table())
        return np.array([m[sum(1 << j for j in members)] for members in sets])

    def faith(self, order: int, sets: Sequence[Coalition]) -> Array:
        """Faith-Shap of this order. The rows must be complete."""
        return faith(moebius(self.table()), order, sets)

    def together(self, without: int = -2) -> Array:
        """The logarithm of how many coalitions a row stands for among all replicates together.

        `without` leaves out one replicate, whose rows then get -inf.
        """
        n_used = self.n_replicates - (without >= 0)
        log = self.log_count - np.where(self.replicate >= 0, np.log(n_used), 0.0)
        return np.where(self.replicate == without, -np.inf, log)


#: What explainers ask for coalition values: rows, or trees that know all of them.
Game: TypeAlias = CoalitionValues | TreeValues


def coalition_values_of(ledger: AnyLedger, full: Array, baseline_weights: Array) -> Game:
    """The coalition values in the rows of a ledger, or in its trees.

    Parameters
    ----------
    ledger : Ledger, FoldedLedger or TreeLedger
        The evaluated rays. A folded ledger is refused.
    full : array of shape (n_baselines,)
        v of the coalition of all features, for every baseline.
    baseline_weights : array of shape (n_baselines,)
        The weights of the baselines.

    Returns
    -------
    CoalitionValues or TreeValues
    """
    if isinstance(ledger, TreeLedger):
        return TreeValues(ledger, _listed)
    ledger = ledger.require_rows("An explainer that reads coalition values")
    value, from_rays = _values(ledger)
    with np.errstate(divide="ignore"):  # a baseline may have no weight
        log_weights = np.log(baseline_weights)
    log_share = log_weights[ledger.baseline]
    if ledger.enumerates and (ledger.has_values or ledger.n_replicates == 1):
        # Each coalition counts once for every baseline, although several rays may lead to it.
        _, once = np.unique(np.stack([ledger.baseline, ledger.codes]), axis=1, return_index=True)
        once = np.sort(once)
        return CoalitionValues(
            ledger.masks[once], value[once], log_share[once], np.zeros(len(once), dtype=np.int64), 1, True, from_rays
        )
    everyone = ledger.masks.all(1)
    sampled = (ledger.replicate >= 0) & ~everyone
    census = (ledger.replicate == CENSUS) & ~everyone
    n_baselines = len(baseline_weights)
    return CoalitionValues(
        np.concatenate([ledger.masks[sampled], ledger.masks[census], np.ones((n_baselines, ledger.n_features), bool)]),
        np.concatenate([value[sampled], value[census], full]),
        np.concatenate([(log_share - ledger.log_rate)[sampled], log_share[census], log_weights]),
        np.concatenate([ledger.replicate[sampled], np.full(census.sum() + n_baselines, -1)]),
        ledger.n_replicates,
        False,
        from_rays,
        bool((ledger.owner[sampled] >= 0).any()),
    )


def _listed(masks: Masks, values: Array) -> CoalitionValues:
    """The values of all coalitions, each of which counts once."""
    known = np.zeros(len(masks))
    return CoalitionValues(masks, values, known, known.astype(np.int64), 1, complete=True, from_rays=False)


def log_class_size(n_features: int) -> Array:
    """log C(n, t) for t = 0 .. n."""
    t = np.arange(n_features + 1)
    return np.asarray(gammaln(n_features + 1) - gammaln(t + 1) - gammaln(n_features - t + 1))


def _values(ledger: Ledger) -> tuple[Array, bool]:
    """v(T) of every row, by Lemma A from the sum of the ray if there was no forward; and whether that was needed."""
    known = np.isfinite(ledger.value)
    if known.all():
        return ledger.value, False
    if (ledger.nodes_per_ray[~known] == 0).any():
        raise GralisError("Some coalitions have neither a value nor a ray; explain with coalition_values=True.")
    return np.where(known, ledger.value, ledger.rays.sum(1)), True
