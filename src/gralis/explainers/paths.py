"""Integrated Gradients is the ray of all features. The single-feature path is the ray of {i}: v({i}) by Lemma A."""

from __future__ import annotations

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.estimators import Design, Estimate
from gralis.estimators.estimate import carriers
from gralis.estimators.node_error import node_errors
from gralis.estimators.ordered_nodes import LEAST_NODES, integral_of_nodes
from gralis.ledger import AnyLedger


def integrated_gradients(ledger: AnyLedger, full: Array, design: Design) -> Estimate:
    """ray(F), averaged over its rows and the baselines; `full` is v of all features, for every baseline.

    Random nodes of all rows are read in their order along the ray (`integral_of_nodes`); with fewer than four of them
    the error is unknown. If the nodes are fixed, all rows are equal, and the error is what the nodes and the checksum
    of the ray show.
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
    values, missed = np.zeros(ledger.n_features), 0.0
    errors_of: list[Array] = []
    slope = ledger.stretch[:, None] * ledger.gradient
    for number, share in enumerate(design.baseline_weights):
        points = ledger.baseline[ledger.ray] == number
        if points.sum() < LEAST_NODES:
            values += share * slope[points].mean(0)
            errors_of.append(np.full((2, ledger.n_features), np.nan))
            continue
        along = integral_of_nodes(ledger.place[points], slope[points], full[number])
        values += share * along.values
        errors_of.append(share * along.errors)
        missed += share * along.missed
    errors = np.concatenate(errors_of)
    count = len(errors)
    estimate = Estimate(
        values, np.sqrt(count * (count - 1)) * errors, "integrated gradients", carriers=carriers(errors)
    )
    return design.allowing(estimate, np.full_like(values, missed))


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
