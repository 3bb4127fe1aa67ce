"""Integrated Gradients is the ray of all features. The single-feature path is the ray of {i}: v({i}) by Lemma A."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.estimators import Design, Estimate
from gralis.estimators.copies import CopiedRays, missed_by_cells, sum_of_rays
from gralis.estimators.estimate import carriers
from gralis.estimators.node_error import node_errors
from gralis.estimators.witnesses import clear_mean
from gralis.ledger import AnyLedger

_ENOUGH_ROWS = 8


def integrated_gradients(ledger: AnyLedger, full: Array, design: Design) -> Estimate:
    """ray(F), averaged over its rows and the baselines; `full` is v of all features, for every baseline.

    If the nodes are random, each row is an unbiased draw and its checksum sum_i ray_i - v(F) has mean zero. A multiple
    of the checksum is then subtracted if that makes the rows agree better, and the intervals are wider by its mean if
    that is clearly not zero. A ray with many random nodes shows its error by the differences between them. If the nodes
    are fixed, all rows are equal, and the error is what the nodes and the checksum of the ray show.
    """
    known = ledger.of_one_size(ledger.n_features)
    if known is not None:
        return Estimate(known, np.zeros((1, len(known))), "integrated gradients", exact=True)
    ledger = ledger.require_rows("Integrated gradients")
    if not ledger.has_points:
        raise GralisError(
            "Integrated gradients need gradients, and this ledger has coalition values only; explain a model with "
            "gradients by plan='shared' or plan='exhaustive'."
        )
    ledger = ledger.take(ledger.masks.all(1) & (ledger.nodes_per_ray > 0) & (ledger.replicate >= 0))
    groups = [np.flatnonzero(ledger.baseline == number) for number in range(design.n_baselines)]
    if not all(len(rows) for rows in groups):
        raise GralisError(
            "This ledger has no ray of all features, so there is no integrated gradient to read off; explain with "
            "plan='exhaustive', or with a larger budget."
        )
    if design.quadrature != "random":
        first, weights = [rows[0] for rows in groups], design.baseline_weights
        values = weights @ ledger.rays[first]
        estimate = Estimate(values, np.zeros((1, len(values))), "integrated gradients", exact=True)
        return design.allowing(estimate, weights @ node_errors(ledger, str(design.quadrature))[first])
    if isinstance(design.estimator, CopiedRays):
        weights = design.baseline_weights[ledger.baseline][:, None] * ledger.masks
        missed = weights.T @ missed_by_cells(ledger) / ledger.n_replicates
        estimate = replace(sum_of_rays(ledger, weights), method="integrated gradients")
        return design.allowing(estimate, missed)
    values, departures = np.zeros(ledger.n_features), []
    margin = 0.0
    for number, (share, rows) in enumerate(zip(design.baseline_weights, groups, strict=True)):
        rays, k = ledger.rays[rows], len(rows)
        margin += share * clear_mean(rays.sum(1) - full[number])
        if k >= _ENOUGH_ROWS:
            rays = _steadier(rays, _without_checksum(rays, rays.sum(1) - full[number]))
        values += share * rays.mean(0)
        scale = np.sqrt(ledger.n_rays * (ledger.n_rays - 1) / (k * (k - 1))) if k > 1 else np.nan
        # The scale is such that the rows of all baselines together give the variance of the weighted mean.
        departures.append(share * scale * (rays - rays.mean(0)))
    together = np.concatenate(departures)
    return design.allowing(
        Estimate(values, together, "integrated gradients", carriers=carriers(together)), np.full_like(values, margin)
    )


def _without_checksum(rays: Array, check: Array) -> Array:
    """ray - slope * check. The slopes of each row are learnt from the other rows, so the mean stays unbiased."""
    k = len(rays)
    x, y = check - check.mean(), rays - rays.mean(0)
    left_out = k / (k - 1) * x  # the row's part in the sums of squares and products, up to a factor x or y
    squares, products = x @ x - left_out * x, x @ y - left_out[:, None] * y
    slope = np.divide(products, squares[:, None], out=np.zeros_like(rays), where=squares[:, None] > 0)
    return np.asarray(rays - check[:, None] * slope)


def _steadier(plain: Array, adjusted: Array) -> Array:
    """The rows whose variance is smaller."""
    return adjusted if adjusted.var(0).sum() < plain.var(0).sum() else plain


def singles(ledger: AnyLedger, baseline_weights: Array) -> Estimate:
    """v({i}) if its forward was evaluated, otherwise the ray of {i}."""
    of_all = ledger.of_one_size(1)
    if of_all is not None:
        return Estimate(of_all, np.zeros((1, len(of_all))), "single features", exact=True)
    ledger = ledger.require_rows("The single-feature path")
    one = ledger.sizes == 1
    known = one & np.isfinite(ledger.value)
    alone = np.where(known[:, None], ledger.masks * np.nan_to_num(ledger.value)[:, None], ledger.rays)
    values = np.zeros(ledger.n_features)
    for number, share in enumerate(baseline_weights):
        rows = one & (ledger.baseline == number) & (known | (ledger.nodes_per_ray > 0))
        count = ledger.masks[rows].sum(0)
        if (count == 0).any():
            missing = int(np.flatnonzero(count == 0)[0])
            raise GralisError(
                f"This ledger has no row for feature {missing} alone; explain with coalition_values=True (and one "
                f"baseline) or plan='exhaustive'."
            )
        values += share * alone[rows].sum(0) / count
    return Estimate(values, np.zeros((1, ledger.n_features)), "single features", exact=bool(known[one].all()))
