"""phi_hat_i = sum_T q_i(T) mean over copies of (ray_i(T) - share_i(T) c(T)): all coalitions, several copies of nodes.

Every replicate is a copy of all rays with its own stratified random nodes. The checksum c(T) = sum_i ray_i - v(T) has
mean zero over the nodes, so the members of T with noisy rays share it. It is left alone if the copies show that its
mean is not zero, because then the nodes miss a part of F. The copies of each ray differ by their nodes alone, so the
variance of phi_hat is the sum over all rays of the variance of their mean. Each contrast between copies of a ray is
one departure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import helmert

from gralis.arrays import Array
from gralis.estimators.design import Design, Estimator, uniform_laws
from gralis.estimators.estimate import Estimate, carriers
from gralis.estimators.ray_weights import importance
from gralis.ledger import Ledger
from gralis.rays import CENSUS

__all__ = ["CopiedRays"]

_METHOD = "all rays, random nodes"
_CLEARLY = 9.0  # how many times its expectation the sum of squared mean checksums must be
_NO_NOISE = 1e-20  # of the largest variance between copies
_ROUNDING = 1e-6  # of the largest value; a checksum below this misses nothing


class CopiedRays(Estimator):
    """The weighted sum over all coalitions, with an error from independent copies of the nodes on each ray."""

    name = "copies"
    singles_by_value = True
    departs_by_replicate = False
    page_formula = "copies"

    def estimates(self, ledgers: Sequence[Ledger], designs: Sequence[Design]) -> tuple[Estimate, ...]:
        return tuple(_estimate(ledger, design) for ledger, design in zip(ledgers, designs, strict=True))

    def total_of_values(self, ledger: Ledger, design: Design) -> Estimate:
        weights = importance(ledger, uniform_laws(design), design.baseline_weights)
        once = (ledger.replicate == CENSUS) | (ledger.replicate == 0)
        # Under the uniform kernel all members of T have the same weight.
        total = weights[once].max(1) @ ledger.value[once]
        return Estimate(np.array([total]), np.zeros((1, 1)), "sum of values", exact=True)

    def missed(self, ledger: Ledger, design: Design) -> Array:
        if not _nodes_miss(ledger):
            return np.zeros(design.n_features)
        return np.asarray((self.shares(ledger, design) * np.abs(ledger.checksum)[:, None]).sum(0))

    def enumerates(self, ledger: Ledger) -> bool:
        return True

    def report_columns(self, ledger: Ledger, design: Design) -> dict[str, NDArray[Any]]:
        columns = super().report_columns(ledger, design)
        census = (ledger.replicate == CENSUS)[:, None]
        columns["rays"] = np.where(census, ledger.rays_by_lemma_a, _without_checksum(ledger))
        del columns["checksum"]  # whether the nodes miss a part of F does not depend on the kernel
        if _nodes_miss(ledger):
            columns["node_error"] = ledger.masks * np.abs(ledger.checksum)[:, None]
        return columns

    def contributions(self, ledger: Ledger, design: Design) -> Array | None:
        return None

    def evidence(self, n_replicates: int) -> str:
        return f"the max-t quantile of {n_replicates} independent copies of rays"


def _estimate(ledger: Ledger, design: Design) -> Estimate:
    weights = importance(ledger, design.laws, design.baseline_weights)
    census = ledger.replicate == CENSUS
    known = (weights * ledger.rays_by_lemma_a)[census].sum(0)
    parts = _by_copy(ledger, weights * _without_checksum(ledger))  # (n_copies, n_rays, n_features)
    n_copies, values = len(parts), known + parts.mean(0).sum(0)
    if n_copies < 2:
        return Estimate(values, np.full((1, len(values)), np.nan), _METHOD)
    rows = np.einsum("ck,kri->cri", helmert(n_copies), parts).reshape(-1, ledger.n_features)
    count = len(rows)  # one contrast less than there are copies of each ray
    scale = np.sqrt(count * max(count - 1, 1) / (n_copies * (n_copies - 1)))
    return Estimate(values, scale * rows, _METHOD, carriers=carriers(rows))


def _by_copy(ledger: Ledger, rows: Array) -> Array:
    """Rows (n_rays, ...) of the ledger as (n_copies, n_rays of a copy, ...); every copy has the same rays in order."""
    drawn = np.flatnonzero(ledger.replicate >= 0)
    order = drawn[np.argsort(ledger.replicate[drawn], kind="stable")]
    return np.asarray(rows[order].reshape(ledger.n_replicates, -1, *rows.shape[1:]))


def _without_checksum(ledger: Ledger) -> Array:
    """ray_i - share_i(T) c(T) where v(T) is known, unless the nodes miss a part of F.

    All members whose rays differ between the copies have the same share. A discrete feature has no node, and no share.
    """
    if _nodes_miss(ledger):
        return ledger.rays
    check = np.where(np.isfinite(ledger.value), ledger.checksum, 0.0)
    between = _by_copy(ledger, ledger.rays).var(0).sum(0)
    noisy = ledger.masks & (between > _NO_NOISE * between.max())
    return np.asarray(ledger.rays - noisy * (check / np.maximum(noisy.sum(1), 1))[:, None])


def _nodes_miss(ledger: Ledger) -> bool:
    """Whether the mean checksum of the rays is larger than the copies of their nodes allow: E c(T) = 0."""
    if ledger.n_replicates < 2 or not ledger.has_values:
        return False
    check = _by_copy(ledger, ledger.checksum)  # (n_copies, n_rays)
    means, variances = check.mean(0), check.var(0, ddof=1) / len(check)
    return bool((means**2).sum() > _CLEARLY * variances.sum() + (_ROUNDING * np.abs(ledger.value).max()) ** 2)
