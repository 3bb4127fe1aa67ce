"""phi_hat = mean over replicates of sum W_i(T) ray_i(T): weighted rays without any adjustment. It is unbiased."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.estimators.design import Design, Estimator, uniform_laws
from gralis.estimators.estimate import Estimate
from gralis.estimators.ray_weights import importance, unvisited
from gralis.ledger import Ledger

__all__ = ["EnumeratedRays", "WeightedRays", "per_replicate"]


class WeightedRays(Estimator):
    """The weighted sum of the rays of each replicate, averaged over the replicates."""

    name = "plain"
    own_law = True
    page_formula = "weighted"
    bound: ClassVar[str | None] = "bernstein"
    exact: ClassVar[bool] = False

    def estimates(self, ledgers: Sequence[Ledger], designs: Sequence[Design]) -> tuple[Estimate, ...]:
        return tuple(self._estimate(ledger, design) for ledger, design in zip(ledgers, designs, strict=True))

    def _estimate(self, ledger: Ledger, design: Design) -> Estimate:
        rays = ledger.rays_by_lemma_a if self.singles_by_value else ledger.rays
        contributions = importance(ledger, design.laws, design.baseline_weights) * rays
        counted = contributions[ledger.replicate >= 0]
        estimate = Estimate.mean(per_replicate(ledger, contributions), "weighted rays", self.exact, counted)
        if self.exact:
            return estimate
        return estimate.unknown_where(design.moving & unvisited(ledger, design.laws, design.baseline_weights))

    def total_of_values(self, ledger: Ledger, design: Design) -> Estimate:
        weights = importance(ledger, uniform_laws(design), design.baseline_weights)
        rate = weights.max(1)  # under the uniform kernel all members of T have the same weight
        parts = (rate * ledger.value)[:, None]
        return Estimate.mean(per_replicate(ledger, parts), "weighted values", self.exact, parts)


class EnumeratedRays(WeightedRays):
    """The same sum over all coalitions. There is no sampling error, and single features come from their values."""

    name = "exact"
    own_law = False
    singles_by_value = True
    bound = None
    exact = True

    def enumerates(self, ledger: Ledger) -> bool:
        return True

    def evidence(self, n_replicates: int) -> str:
        return "the sum over all coalitions and the error that the fixed nodes show"

    def report_columns(self, ledger: Ledger, design: Design) -> dict[str, NDArray[Any]]:
        return {**super().report_columns(ledger, design), "rays": ledger.rays_by_lemma_a}


def per_replicate(ledger: Ledger, rows: Array) -> Array:
    """Sum rows (n_rays, ...) over the rays of each replicate. Rays of the pilot and of the census are left out."""
    counted, first = ledger.by_replicate
    total, replicate = np.zeros((ledger.n_replicates, *rows.shape[1:])), ledger.replicate[counted]
    if first is None:
        np.add.at(total, replicate, rows[counted])
    else:
        total[replicate[first]] = np.add.reduceat(rows[counted], first)
    return total
