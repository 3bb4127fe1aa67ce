"""phi of tree ensembles: the closed-form sum over all rays that `gralis.trees` computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from gralis.estimators.design import Design, Estimator
from gralis.estimators.estimate import Estimate
from gralis.ledger import TreeLedger

__all__ = ["TreeSums"]


class TreeSums(Estimator):
    """Sums over all crossings of thresholds on all rays. There is no sampling and no quadrature on rays."""

    name = "trees"
    title = "GRALIS on trees"
    summary = "Every jump of every tree on lines from the baseline to coalitions; those near the baseline count more."
    without_sampling = "the closed-form sum over all coalitions and all crossings of thresholds"

    def estimates(self, ledgers: Sequence[Any], designs: Sequence[Design]) -> tuple[Estimate, ...]:
        return tuple(_exact(ledger.phi(design.kernel)) for ledger, design in zip(ledgers, designs, strict=True))

    def total_of_values(self, ledger: Any, design: Design) -> Estimate:
        trees: TreeLedger = ledger
        return _exact(np.array([trees.sum_of_values]))

    def enumerates(self, ledger: Any) -> bool:
        return True


def _exact(values: np.ndarray[Any, np.dtype[np.float64]]) -> Estimate:
    return Estimate(values, np.zeros((1, len(values))), "sum over trees", exact=True)
