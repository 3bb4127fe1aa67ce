"""phi_hat = A - beta (B - 1) from the sums of a folded ledger: A = sum W ray and B = sum W of one block, E B = 1.

beta is learnt from the other groups of blocks.
"""

from __future__ import annotations

import numpy as np

from gralis.errors import GralisError
from gralis.estimators.estimate import Estimate
from gralis.kernels import Kernel
from gralis.ledger import FoldedLedger


def estimate(ledger: FoldedLedger, kernel: Kernel) -> Estimate:
    """phi of one of the kernels that were named beforehand."""
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
    share = count / count.mean()  # groups may differ by one block
    values = (share * estimates).mean(0)
    return Estimate(values, share * (estimates - values), "folded rays").unknown_where(weights.sum(0) == 0)
