"""W_i(T) = q_i(T) / rate(T): the importance weights of the rays.

They are exact for every kernel, so the sum of W_i ray_i over a replicate is unbiased.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.laws import Law
from gralis.ledger import Ledger
from gralis.rays import CENSUS

NEGLIGIBLE_SHARE = 1e-9  # the share of a law that rounding may leave outside a complete census


def importance(ledger: Ledger, laws: Sequence[Law], baseline_weights: Array) -> Array:
    """W_i(T) for every ray and feature, zero outside T, (n_rays, n_features). There is one law per baseline."""
    weights = np.zeros(ledger.masks.shape)
    for number, (law, share) in enumerate(zip(laws, baseline_weights, strict=True)):
        rows = ledger.baseline == number
        if rows.any():
            log = law.log_conditional(ledger.masks[rows]) - ledger.log_rate[rows, None]
            weights[rows] = share * np.exp(log)
    return weights


def total_importance(ledger: Ledger, laws: Sequence[Law], baseline_weights: Array, rays: NDArray[np.bool_]) -> Array:
    """The sum of W_i(T) over the rays that are marked, (n_features,)."""
    return np.asarray(importance(ledger.take(rays), laws, baseline_weights).sum(0))


def effective_rays(weights: Array) -> Array:
    """(sum W)^2 / sum W^2 for every feature: how many equally weighted rays the estimate is worth."""
    squares = (weights**2).sum(0)
    return np.asarray(np.divide(weights.sum(0) ** 2, squares, out=np.zeros_like(squares), where=squares > 0))


def unsampled(ledger: Ledger, laws: Sequence[Law], baseline_weights: Array) -> Array:
    """How much of each feature's law lies on coalitions that are known without sampling (the census)."""
    return total_importance(ledger, laws, baseline_weights, ledger.replicate == CENSUS)


def unvisited(ledger: Ledger, laws: Sequence[Law], baseline_weights: Array) -> NDArray[np.bool_]:
    """Features that lie on no sampled ray although their law has weight outside the census.

    Their replicates carry no information, so their error is unknown.
    """
    counted = ledger.replicate >= 0
    never = ~ledger.masks[counted].any(0)
    if not never.any():
        return np.asarray(never)
    return np.asarray(never & (unsampled(ledger, laws, baseline_weights) < 1 - NEGLIGIBLE_SHARE))
