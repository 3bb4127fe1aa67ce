"""phi_hat_i = sum_T q_i(T) mean over copies of (ray_i(T) - share_i(T) c(T)): all coalitions, with random nodes.

Every ray is cut into cells with one random node in each. A replicate is a copy of all rays with its own nodes; there is
one copy unless the run is extended or may stop early. The checksum c(T) = sum_i ray_i - v(T) has mean zero over the
nodes, so the members of T with noisy rays share it. It is left alone if its mean is clearly not zero, because then the
nodes miss a part of F.

The nodes of different cells are independent, so the variance of phi_hat is the sum of the variances of all cells. A
cell has only one node, so its neighbours stand in for others (collapsed strata). With y_j the contribution of cell j of
k, the variance of a ray is estimated by

    k / (k - 2)  sum over j of  (y_(j-1) - 2 y_j + y_(j+1))^2 / 6,

which is right for noise, zero for a straight line, and twice the true variance for a kink. Each term is one departure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.estimators.checksum_shares import ChecksumShares, checksum_shares
from gralis.estimators.design import Design, Estimator, uniform_laws
from gralis.estimators.estimate import Estimate, carriers
from gralis.estimators.full_ray import checksums_of_all, only_full_is_known
from gralis.estimators.ray_weights import importance
from gralis.ledger import Ledger
from gralis.rays import CENSUS

__all__ = ["OVERLAP", "CopiedRays", "missed_by_cells", "sum_of_rays"]

_METHOD = "all rays, random nodes"
_CLEARLY = 9.0  # how many times its expectation the sum of squared mean checksums must be
OVERLAP = 2.0  # a kink shows in three contrasts, whose squares are as 1 : 1/2 : 1/2
_ROUNDING = 1e-6  # of the largest value; a checksum below this misses nothing


class CopiedRays(Estimator):
    """The weighted sum over all coalitions, with an error from the differences between the nodes of each ray."""

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
        return np.asarray((self.shares(ledger, design) * missed_by_cells(ledger)[:, None]).sum(0))

    def enumerates(self, ledger: Ledger) -> bool:
        return True

    def report_columns(self, ledger: Ledger, design: Design) -> dict[str, NDArray[Any]]:
        columns = super().report_columns(ledger, design)
        census = (ledger.replicate == CENSUS)[:, None]
        columns["rays"] = np.where(census, ledger.rays_by_lemma_a, _without_checksum(ledger))
        columns["contrasts"], columns["contrast_ray"] = _error_rows(ledger)
        del columns["checksum"]  # whether the nodes miss a part of F does not depend on the kernel
        if _nodes_miss(ledger):
            columns["node_error"] = ledger.masks * missed_by_cells(ledger)[:, None]
        return columns

    def contributions(self, ledger: Ledger, design: Design) -> Array | None:
        return None

    def evidence(self, n_replicates: int) -> str:
        return f"the max-t quantile of {n_replicates} differences between neighbouring nodes"


def _estimate(ledger: Ledger, design: Design) -> Estimate:
    weights = importance(ledger, design.laws, design.baseline_weights)
    census = ledger.replicate == CENSUS
    known = (weights * ledger.rays_by_lemma_a)[census].sum(0)
    drawn = sum_of_rays(ledger, weights)
    return replace(drawn, values=known + drawn.values)


def sum_of_rays(ledger: Ledger, weights: Array) -> Estimate:
    """sum over T of W_i(T) ray_i(T), averaged over the copies, without the checksum, and the error of its nodes.

    Parameters
    ----------
    ledger : Ledger
        Copies of rays with random nodes, at least three on each. Other rays are left out.
    weights : array of shape (n_rays, n_features)
        W_i of every ray of the ledger.

    Returns
    -------
    Estimate
    """
    drawn = ledger.replicate >= 0
    values = (weights * _without_checksum(ledger))[drawn].sum(0) / ledger.n_replicates
    errors, ray = _error_rows(ledger)
    rows = weights[ray] * errors
    count = max(len(rows), 2)
    departures = np.sqrt(count * (count - 1)) * rows
    return Estimate(values, departures, _METHOD, carriers=carriers(rows) / OVERLAP)


def missed_by_cells(ledger: Ledger) -> Array:
    """|c(T)| of every ray if the nodes of all rays together clearly miss a part of F, else 0, (n_rays,).

    Parameters
    ----------
    ledger : Ledger
        As in `sum_of_rays`.

    Returns
    -------
    array of shape (n_rays,)
    """
    if not _nodes_miss(ledger):
        return np.zeros(ledger.n_rays)
    check = np.abs(ledger.checksum)
    if only_full_is_known(ledger):
        for number in np.unique(ledger.baseline):
            others = np.isnan(check) & (ledger.baseline == number)
            check[others] = abs(checksums_of_all(ledger, int(number)).mean())
    return np.asarray(check)


def _contrasts(ledger: Ledger, cells: Array) -> tuple[Array, NDArray[np.int64]]:
    """Rows whose squares sum to the variance of the mean over copies, ray by ray; and the ray of every row.

    `cells` are the contributions of the points, (n_points, n_columns).
    """
    drawn = (ledger.replicate >= 0)[ledger.ray]
    cells, ray = cells[drawn], ledger.ray[drawn]
    inside = ray[2:] == ray[:-2]  # three neighbours on one ray
    ray = ray[2:][inside]
    k = ledger.nodes_per_ray[ray]
    bends = np.diff(cells, 2, axis=0)[inside] * (np.sqrt(k / (k - 2) / 6) / ledger.n_replicates)[:, None]
    return bends, ray


def _error_rows(ledger: Ledger) -> tuple[Array, NDArray[np.int64]]:
    """Rows whose squares sum to the variance of the rays without their checksums; and the ray of every row.

    Two witnesses have an equal say: the differences between neighbouring nodes, and share error times checksum.
    """
    taken = _shares_of_checksum(ledger)
    parts = _parts(ledger)
    contrasts, ray = _contrasts(ledger, parts - taken.shares[ledger.ray] * parts.sum(1, keepdims=True))
    if not taken.shares.any():
        return contrasts, ray
    drawn = np.flatnonzero(ledger.replicate >= 0)
    # The errors of the shares of a ray are hardly correlated, so their signs are drawn.
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (len(drawn), ledger.n_features))
    check = ledger.checksum[drawn] / ledger.n_replicates
    by_shares = signs * np.sqrt(taken.variance) * ledger.masks[drawn] * check[:, None]
    return np.concatenate([contrasts, by_shares]) / np.sqrt(2), np.concatenate([ray, drawn])


def _parts(ledger: Ledger) -> Array:
    """What every node adds to its ray, (n_points, n_features)."""
    return np.asarray(ledger.weight[:, None] * ledger.gradient * ledger.masks[ledger.ray])


def _without_checksum(ledger: Ledger) -> Array:
    """ray_i - share_i(T) c(T)."""
    check = np.where(np.isfinite(ledger.value), ledger.checksum, 0.0)
    return np.asarray(ledger.rays - _shares_of_checksum(ledger).shares * check[:, None])


def _shares_of_checksum(ledger: Ledger) -> ChecksumShares:
    """The shares of the members in c(T); 0 where v(T) is unknown or the nodes miss a part of F.

    A discrete feature has no node, and no share.
    """
    if _nodes_miss(ledger) or only_full_is_known(ledger):  # one ray does not say who takes which part
        return ChecksumShares(np.zeros(ledger.masks.shape), np.zeros(ledger.n_features))
    found = checksum_shares(ledger.masks, *_contrasts(ledger, _parts(ledger)))
    return replace(found, shares=np.where(np.isfinite(ledger.value)[:, None], found.shares, 0.0))


def _nodes_miss(ledger: Ledger) -> bool:
    """Whether the mean checksums of the rays are larger than their nodes allow: E c(T) = 0."""
    drawn = (ledger.replicate >= 0) & np.isfinite(ledger.value)
    if not drawn.any():
        return False
    order = np.argsort(ledger.replicate[drawn], kind="stable")  # every copy has the same rays in order
    means = ledger.checksum[drawn][order].reshape(ledger.n_replicates, -1).mean(0)
    contrasts, ray = _contrasts(ledger, _parts(ledger).sum(1, keepdims=True))
    variance = (contrasts[drawn[ray]] ** 2).sum()
    return bool((means**2).sum() > _CLEARLY * variance + (_ROUNDING * np.abs(ledger.value[drawn]).max()) ** 2)
