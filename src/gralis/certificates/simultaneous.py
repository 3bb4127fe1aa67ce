"""Simultaneous intervals: values +- c stderr, c from the quantile of max_i |t_i| over the features.

The replicates' joint behaviour decides: features that move together need a smaller c than features on their own.
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtr, stdtrit  # Student's t; scipy.stats takes long to import

from gralis.arrays import Array
from gralis.estimators import Estimate

_N_DRAWS = 2000
_MOST_NUMBERS = 2**25  # beyond this many normal numbers the level is shared evenly instead (Bonferroni)


def half_widths(estimate: Estimate, level: float) -> Array:
    """Half-widths that hold for all values together with probability `level`; 0 if exact, NaN if unknown."""
    if estimate.exact or len(estimate.departures) < 2:
        return _trivial(estimate)
    # What each value alone may miss so that all of them hold together, then Student's quantile at its own dof.
    alone = 1 - 2 * stdtr(len(estimate.departures) - 1, -critical(estimate.departures, level))
    return single_half_widths(estimate, alone)


def single_half_widths(estimate: Estimate, level: float) -> Array:
    """Half-widths that hold for each value on its own with probability `level`."""
    if estimate.exact or len(estimate.departures) < 2:
        return _trivial(estimate)
    return np.asarray(stdtrit(estimate.dof, (1 + level) / 2) * estimate.stderr)


def _trivial(estimate: Estimate) -> Array:
    """0 where there is no sampling error, NaN where a single replicate cannot tell."""
    return np.full_like(estimate.values, 0.0 if estimate.exact else np.nan)


def critical(departures: Array, level: float) -> float:
    """The `level` quantile of max_i |t_i| when replicates are normal with the correlation seen in `departures`.

    Few replicates show spurious correlations, so the correlation is shrunk towards independence by the usual
    estimate of its sampling error; Bonferroni's value is the ceiling.
    """
    n_replicates, n_features = departures.shape
    ceiling = float(stdtrit(n_replicates - 1, 1 - (1 - level) / 2 / n_features))
    spread = np.sqrt((departures**2).mean(0))
    moving = spread > 0
    n_moving = int(moving.sum())
    if n_moving < 2 or _N_DRAWS * n_replicates * n_moving > _MOST_NUMBERS:
        return ceiling
    scores = departures[:, moving] / spread[moving] / np.sqrt(n_replicates)  # (n_replicates, n_moving)
    alone = _independence(scores)
    rng = np.random.default_rng(0)  # the quantile is a number of the design: the same for the same replicates
    together = rng.standard_normal((_N_DRAWS, n_replicates, n_replicates)) @ scores
    apart = rng.standard_normal((_N_DRAWS, n_replicates, n_moving))
    draws = np.sqrt(1 - alone) * together + np.sqrt(alone) * apart
    t = draws.mean(1) / draws.std(1, ddof=1) * np.sqrt(n_replicates)
    return min(ceiling, float(np.quantile(np.abs(t).max(1), level)))


def _independence(scores: Array) -> float:
    """How far to shrink the correlation towards independence: sum of its sampling variances over sum of squares."""
    n_replicates, n = scores.shape
    correlation = scores.T @ scores
    off = ~np.eye(n, dtype=bool)
    squares = float((correlation[off] ** 2).sum())
    variances = float(((1 - correlation[off] ** 2) ** 2).sum() / (n_replicates - 1))
    return 1.0 if squares == 0 else min(1.0, variances / squares)
