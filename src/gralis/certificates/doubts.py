"""Sentences that say why the intervals of an explanation may not hold.

The checks read the ledger and call no model. If a check can measure what is wrong, the intervals are already wider by
that amount, and the sentence says so. If it cannot, the interval is withdrawn: its half-width is NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from gralis.estimators import COPIES, ENDPOINT, RATIO, WEIGHTED, Design, Estimate
from gralis.estimators.design import N_ROUNDINGS
from gralis.estimators.estimate import LEAST_CARRIERS, carriers
from gralis.ledger import AnyLedger

__all__ = ["witness_doubts"]

_MOST_NAMES = 3
_MATERIAL = 0.5  # of the sampling error
_FEW = 5.0  # with three expected, one feature in twenty has none
_NOTHING = 1e-9  # of the largest part of any ray
_CARRYING = 0.35  # of the rays of a feature carry its error; where gradients are of one size, more than half of them do
_MATTERS, _MATTERS_OF_NODES = 0.01, 0.03  # of the largest value: an error below this is not worth a doubt


def witness_doubts(
    ledger: AnyLedger, design: Design, estimate: Estimate, names: Sequence[str], difference: float
) -> tuple[str, ...]:
    """Why the intervals that were read from a ledger may not hold.

    Parameters
    ----------
    ledger : Ledger or FoldedLedger
        The evaluated rays.
    design : Design
        How they are read.
    estimate : Estimate
        The values that were read.
    names : sequence of str
        The names of the features.
    difference : float
        F(x) - F(x'), against which the sizes are measured.

    Returns
    -------
    tuple of str
        One sentence for each check that failed.
    """
    of_nodes = (_unknown_nodes, _missed_jumps, _no_gradient)
    of_draws = (_unvisited, _nothing_moves, _one_carrier, _few_rays, _few_differences)
    sentences = (check(ledger, design, estimate, names, difference) for check in (*of_nodes, *of_draws))
    return tuple(sentence for sentence in sentences if sentence)


def _unknown_nodes(
    ledger: AnyLedger, design: Design, estimate: Estimate, names: Sequence[str], difference: float
) -> str:
    error = design.fixed_node_error(ledger)
    if not np.isnan(error).any():
        return ""
    why = "a single node on a ray does not show it" if ledger.keeps_rows else "the ledger keeps sums instead of rows"
    return (
        f"The error of the fixed {design.quadrature} nodes is not known, because {why}; explain with "
        f"quadrature='random', whose nodes have no bias."
    )


def _missed_jumps(
    ledger: AnyLedger, design: Design, estimate: Estimate, names: Sequence[str], difference: float
) -> str:
    missed = design.missed(ledger)
    material = missed > _MATERIAL * np.nan_to_num(estimate.sampling_error)
    if not (material & (missed > 0)).any():
        return ""
    worst = float(missed.max())
    share = f" ({worst / abs(difference):.0%} of F(x) - F(x'))" if difference else ""
    return (
        f"F jumps where no gradient was taken: by Lemma A the gradients on a ray add up to the value of its coalition, "
        f"but up to {worst:.2g}{share} is missing, most for {_listed(material, missed, names)}. The intervals are "
        f"wider by the missing part. Use a larger budget, or declare the features that jump with discrete=."
    )


def _no_gradient(ledger: AnyLedger, design: Design, estimate: Estimate, names: Sequence[str], difference: float) -> str:
    """The gradient is zero at every random node, although F(x) differs from F(x')."""
    rows = ledger.kept_rows
    if rows is None or design.quadrature != "random" or not design.estimator.has_rays or not rows.n_points:
        return ""
    zero = N_ROUNDINGS * design.rounding
    if np.abs(rows.rays).max() > zero or abs(difference) <= zero or design.missed(ledger).any():
        return ""
    return (
        f"The gradient is zero at all {rows.n_points} evaluated points, although F(x) - F(x') = {difference:.5g}: F "
        f"moves in steps that the nodes miss, and no interval covers that. Use a larger budget, or declare the "
        f"features that jump with discrete=."
    )


def _unvisited(ledger: AnyLedger, design: Design, estimate: Estimate, names: Sequence[str], difference: float) -> str:
    if not estimate.exact and len(estimate.departures) < 2:
        return "There is one replicate only, so no error is known; explain with a larger budget or more replicates."
    unknown = design.moving & np.isnan(estimate.departures).any(0)
    if not unknown.any():
        return ""
    if design.estimator.no_certificate is not None:
        return design.estimator.no_certificate
    return (
        f"The error of {_listed(unknown, np.abs(estimate.values), names)} is not known, because no sampled ray "
        f"contains the feature; explain with a larger budget."
    )


def _nothing_moves(
    ledger: AnyLedger, design: Design, estimate: Estimate, names: Sequence[str], difference: float
) -> str:
    """F is the same at all coalitions that were drawn, and at x, although it moves on the way to them."""
    rows = ledger.kept_rows
    if rows is None or not design.estimator.draws_rays or not rows.has_values:
        return ""
    zero = N_ROUNDINGS * (design.rounding if estimate.rounding is None else float(estimate.rounding.max()))
    if np.abs(rows.value).max() > zero or np.abs(rows.rays).max() <= zero:
        return ""
    n_coalitions = len(np.unique(np.packbits(rows.masks, axis=1), axis=0))
    return (
        f"F has the same value at x', at x and at all {n_coalitions} coalitions that were drawn. What "
        f"the features do, if anything, they do on coalitions that were not drawn, and no interval covers that; use a "
        f"larger budget, or fewer features and plan='exhaustive'."
    )


def _one_carrier(ledger: AnyLedger, design: Design, estimate: Estimate, names: Sequence[str], difference: float) -> str:
    """A single ray makes the error, so that others like it may not have been drawn; or a single node on all rays."""
    copied = design.estimator is COPIES
    if not (copied or design.estimator.draws_rays) or estimate.exact or estimate.carriers is None:
        return ""
    error = np.nan_to_num(estimate.sampling_error)
    widest = int(error.argmax())
    rounding = 0.0 if estimate.rounding is None else estimate.rounding[widest]
    least = _MATTERS_OF_NODES if copied else _MATTERS
    matters = max(least * np.abs(estimate.values).max(), N_ROUNDINGS * rounding)
    if estimate.carriers[widest] >= LEAST_CARRIERS or error[widest] <= matters:
        return ""
    if copied:
        return (
            f"A single node makes nearly all of the error of {names[widest]}: F is so steep that other nodes may have "
            f"missed a part of it, so the intervals may not hold; use a larger budget."
        )
    return (
        f"A single ray makes nearly all of the error of {names[widest]}. Coalitions like it are rare and may carry "
        f"much of the value, so the intervals may not hold; use a larger budget."
    )


def _few_rays(ledger: AnyLedger, design: Design, estimate: Estimate, names: Sequence[str], difference: float) -> str:
    """A handful of the rays that were drawn makes the values, so that a feature may have none by chance.

    Only for weighted sums of rays without surrogates: what no ray shows, nothing else can show.
    """
    rows = ledger.kept_rows
    if design.estimator not in (RATIO, WEIGHTED) or estimate.exact or rows is None:
        return ""
    zero = N_ROUNDINGS * design.rounding
    parts = (design.estimator.shares(rows, design) * rows.rays)[:, design.moving]
    size, found = np.abs(parts).max(0, initial=0.0), carriers(parts)
    serving, some = design.estimator.serving(rows)[design.moving], size > _NOTHING * size.max(initial=0.0)
    typical = float(np.median(found[some])) if some.any() else np.inf
    least = min(_FEW, _CARRYING * float(np.median(serving)))  # few rays have few carriers although all of them carry
    if np.nan_to_num(estimate.sampling_error).max() <= zero:  # the rays agree
        typical = np.inf
    without = ~some & (serving < _FEW)
    if typical >= least and (not without.any() or abs(difference) <= zero):
        return ""
    about = f"about {typical:.0f} of the rays that were drawn make the value of a feature"
    if typical >= least:
        about = f"the gradient of {int(without.sum())} features is zero on the few rays that were drawn for them"
    return (
        f"Few rays show what a feature does: {about}, so that a feature may have none by chance, and the intervals may "
        f"not hold; use a larger budget, or plan='shared'."
    )


def _few_differences(
    ledger: AnyLedger, design: Design, estimate: Estimate, names: Sequence[str], difference: float
) -> str:
    """A handful of marginal differences makes the values, so that a feature may have none by chance."""
    if design.estimator is not ENDPOINT or estimate.exact or estimate.carriers is None:
        return ""
    found = estimate.carriers[design.moving & np.isfinite(estimate.carriers)]
    typical = float(np.median(found)) if len(found) else np.inf
    if typical >= _FEW:
        return ""
    return (
        f"F changes at few of the coalitions that were drawn: about {typical:.0f} differences make the value of a "
        f"feature, so that a feature may have none by chance, and the intervals may not hold; use a larger budget, or "
        f"plan='values'."
    )


def _listed(chosen: NDArray[np.bool_], size: NDArray[np.float64], names: Sequence[str]) -> str:
    """The names of the chosen features with the largest sizes."""
    order = [int(i) for i in np.argsort(-np.where(chosen, size, -np.inf), kind="stable")[: int(chosen.sum())]]
    shown = ", ".join(names[i] for i in order[:_MOST_NAMES])
    return shown if len(order) <= _MOST_NAMES else f"{shown} and {len(order) - _MOST_NAMES} more"
