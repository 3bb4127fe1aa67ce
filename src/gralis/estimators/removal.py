"""v(F) - v(F \\ i): by how much the output would fall if feature i alone went to its baseline.

The difference is exact if the coalition of all other features was evaluated. Otherwise the rows say which games are
likely (`process`). The mean of the values of these games at F \\ i is reported, and their variance is the error.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.estimators.estimate import Estimate
from gralis.estimators.process import Rows, learn
from gralis.estimators.shapley import distinct_rows
from gralis.ledger import Ledger

_MOST_ROWS = 1200


def measured(ledger: Ledger, baseline_weights: Array, full: Array) -> Array:
    """v(F) - v(F \\ i), averaged over the baselines, read from the rows; NaN where a row is missing."""
    drops = np.zeros(ledger.n_features)
    for number, weight in enumerate(baseline_weights):
        rows = (ledger.baseline == number) & (ledger.sizes == ledger.n_features - 1) & np.isfinite(ledger.value)
        drop = np.full(ledger.n_features, np.nan)
        drop[np.argmin(ledger.masks[rows], axis=1)] = full[number] - ledger.value[rows]
        if ledger.n_features == 1:  # without its only feature the coalition is empty
            drop[:] = full[number]
        drops += weight * drop
    return drops


def estimated(ledger: Ledger, squared_distance: Array, baseline_weights: Array, full: Array) -> Estimate:
    """v(F) - v(F \\ i) of every feature, estimated from whichever rows the ledger has."""
    n = ledger.n_features
    moving = np.flatnonzero((squared_distance > 0).any(0))
    rows = distinct_rows(ledger, moving, baseline_weights, full)
    if rows.paired or rows.n_rows > _MOST_ROWS:
        raise GralisError("The coalitions of this ledger do not say what happens when a single feature goes.")
    scale = float(np.sqrt((rows.values**2).mean())) or 1.0
    seen = Rows(rows.signs, rows.values / scale, False, rows.shares)
    both = _with_queries(seen, baseline_weights)
    process = learn(seen)
    matrix = process.covariance(both)
    k = seen.n_rows
    root = cho_factor(matrix[:k, :k], lower=True)
    reach = matrix[k:, :k]
    drop, variance = np.zeros(n), np.zeros((n, n))
    drop[moving] = scale * (seen.values[0] - reach @ cho_solve(root, seen.values))
    variance[np.ix_(moving, moving)] = scale**2 * (matrix[k:, k:] - reach @ cho_solve(root, reach.T))
    return Estimate.normal(drop, variance, "games that the rows make likely", k)


def _with_queries(seen: Rows, baseline_weights: Array) -> Rows:
    """The rows, followed by one row for each coalition of all but one feature (averaged over the baselines)."""
    n = seen.signs.shape[1]
    without: NDArray[np.float64] = 1.0 - 2.0 * np.eye(n)
    shares = None if seen.shares is None else np.concatenate([seen.shares, np.tile(baseline_weights, (n, 1))])
    return Rows(np.concatenate([seen.signs, without]), np.append(seen.values, np.zeros(n)), False, shares)
