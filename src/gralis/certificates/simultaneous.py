"""values +- (c * sampling error + margin + rounding), where c is the quantile of max_i |t_i| over the features.

c depends on the joint behaviour of the replicates: features that move together need a smaller c than independent ones.
"""

from __future__ import annotations

import numpy as np
from scipy.special import stdtr, stdtrit  # Student's t; scipy.stats takes long to import

from gralis.arrays import Array
from gralis.estimators import Estimate

N_DRAWS = 2000
MOST_NUMBERS = 2**25  # if more normal numbers were needed, Bonferroni's quantile is used instead
_IN_CACHE = 2**16  # numbers that are worked on together
MOST_REPLICATES = 96  # that are drawn: with more, Student's t is nearly normal


def half_widths(estimate: Estimate, level: float) -> Array:
    """Half-widths that hold for all values together with probability `level`; NaN if unknown."""
    if estimate.exact or len(estimate.departures) < 2:
        return _trivial(estimate)
    # The level that each interval needs so that all hold together; Student's quantile then uses the dof of each value.
    alone = 1 - 2 * stdtr(len(estimate.departures) - 1, -critical(estimate.departures, level))
    return single_half_widths(estimate, alone)


def single_half_widths(estimate: Estimate, level: float) -> Array:
    """Half-widths that hold for each value by itself with probability `level`."""
    if estimate.exact or len(estimate.departures) < 2:
        return _trivial(estimate)
    return np.asarray(stdtrit(estimate.dof, (1 + level) / 2) * estimate.sampling_error + estimate.allowance)


def _trivial(estimate: Estimate) -> Array:
    """Rounding if the values are exact, NaN if there is only one replicate."""
    return estimate.allowance if estimate.exact else np.full_like(estimate.values, np.nan)


def critical(departures: Array, level: float) -> float:
    """The `level` quantile of max_i |t_i| when replicates are normal with the correlation seen in `departures`.

    A few replicates show spurious correlations. The correlation is therefore shrunk towards independence, by the usual
    estimate of its sampling error. The result is never larger than Bonferroni's quantile.
    """
    n_replicates, n_features = departures.shape
    ceiling = float(stdtrit(n_replicates - 1, 1 - (1 - level) / 2 / n_features))
    spread = np.sqrt((departures**2).mean(0))
    moving = spread > 0
    n_moving = int(moving.sum())
    # Two replicates show every correlation as 1 or -1, so nothing can be learnt from them.
    if n_moving < 2 or n_replicates < 3 or N_DRAWS * min(n_replicates, MOST_REPLICATES) * n_moving > MOST_NUMBERS:
        return ceiling
    scores = departures[:, moving] / spread[moving] / np.sqrt(n_replicates)  # (n_replicates, n_moving)
    alone = _independence(scores)
    rng = np.random.default_rng(0)  # a fixed seed, so that the same replicates always give the same quantile
    # Any root of the correlation serves; the smaller one needs fewer numbers.
    root = scores if n_replicates <= n_moving else np.linalg.qr(scores, mode="r")
    n_drawn = min(n_replicates, MOST_REPLICATES)
    together = rng.standard_normal((N_DRAWS, n_drawn, len(root)))
    largest = []
    for some in np.array_split(together, max(1, N_DRAWS * n_drawn * n_moving // _IN_CACHE)):
        draws = rng.standard_normal((len(some), n_drawn, n_moving))
        draws *= np.sqrt(alone)
        draws += np.sqrt(1 - alone) * some @ root
        mean = draws.mean(1)
        draws -= mean[:, None]
        squares = np.einsum("drf,drf->df", draws, draws)
        largest.append((np.abs(mean) / np.sqrt(squares / (n_drawn - 1))).max(1))
    return min(ceiling, float(np.quantile(np.concatenate(largest) * np.sqrt(n_drawn), level)))


def _independence(scores: Array) -> float:
    """How far to shrink the correlation towards independence: its sampling variances over its squares, both summed."""
    n_replicates, n = scores.shape
    correlation = scores.T @ scores
    off = ~np.eye(n, dtype=bool)
    squares = float((correlation[off] ** 2).sum())
    variances = float(((1 - correlation[off] ** 2) ** 2).sum() / (n_replicates - 1))
    return 1.0 if squares == 0 else min(1.0, variances / squares)
