"""phi_hat = A - beta (B - 1) from the sums of a folded ledger: A = sum W ray and B = sum W of one block, E B = 1.

beta is learnt from the other groups of blocks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gralis.errors import GralisError
from gralis.estimators.design import Design, Estimator
from gralis.estimators.estimate import Estimate
from gralis.kernels import Kernel
from gralis.ledger import FoldedLedger

__all__ = ["FoldedRays"]


class FoldedRays(Estimator):
    """Values from sums that were kept per kernel and per group of blocks."""

    name = "folded"

    def estimates(self, ledgers: Sequence[FoldedLedger], designs: Sequence[Design]) -> tuple[Estimate, ...]:
        return tuple(_estimate(ledger, design.kernel) for ledger, design in zip(ledgers, designs, strict=True))


def _estimate(ledger: FoldedLedger, kernel: Kernel) -> Estimate:
    """phi for one of the kernels for which the ledger kept sums."""
    if kernel not in ledger.kernels:
        raise GralisError(
            f"This ledger is folded ({ledger.n_features} features), so its rows are gone and {kernel} cannot be "
            f"applied to them; name every kernel beforehand with kernel=[...]. It has {list(ledger.kernels)}."
        )
    k = ledger.kernels.index(kernel)
    used = np.flatnonzero(ledger.blocks)
    count = ledger.blocks[used, None]
    sums, weights = ledger.rays[k, used], ledger.weights[k, used]
    others_weight = weights.sum(0) - weights
    beta = np.divide(sums.sum(0) - sums, others_weight, out=np.zeros_like(sums), where=others_weight > 0)
    estimates = sums / count - beta * (weights / count - 1)
    share = count / count.mean()  # the groups may differ by one block
    values = (share * estimates).mean(0)
    return Estimate(values, share * (estimates - values), "folded rays").unknown_where(weights.sum(0) == 0)
