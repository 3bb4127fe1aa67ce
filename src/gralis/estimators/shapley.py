"""Sh_i = sum over S without i of |S|! (n - |S| - 1)! / n! (v(S u i) - v(S)), from the coalition values of a ledger.

The values are exact if the ledger has every coalition. Otherwise the rows say which games are likely (`process`). The
mean of the Shapley values of these games is reported, and their covariance is the error. This is Bayesian quadrature.
All likely games agree with the values of the evaluated coalitions. Therefore the Shapley values always sum to
F(x) - F(x'), and the error vanishes once every coalition has been evaluated.

Many targets on the same rows share one process, which is fitted to all of them together; each has its own scale. Their
values are then linear in the rows, so that the values of a sum of targets are the sums of their values.

The error is right for games that the process describes well. Where a few coalitions decide everything (votes,
probabilities of boosted trees), a few rows surprise the process, and the error is widened (`_surprise`). It is still
too small if none of these coalitions was evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from gralis.arrays import Array, Masks
from gralis.errors import GralisError
from gralis.estimators import owen
from gralis.estimators.design import Design, Estimator
from gralis.estimators.estimate import Estimate
from gralis.estimators.process import N_PARAMETERS, Process, Rows, learn
from gralis.ledger import Ledger

_MOST_ROWS = 1200  # the most rows in one matrix; more rows are read in blocks
_BLOCK = 1000
_MOST_ENUMERATED = 20
_MOST_ALONE = 8  # targets that each have a process of their own

_NORMAL_KURTOSIS, _MOST_SURPRISE = 3.0, 5.0

_METHOD = "Shapley values"


class LikelyGames(Estimator):
    """The Shapley values of the games that the coalition values make likely. No kernel enters them."""

    name = "shapley"
    title = "Shapley values"
    summary = "What a feature adds to the output, averaged over all orders in which features may join."
    has_rays = False
    has_kernel = False
    departs_by_replicate = False  # the departures are contrasts of a normal law

    def estimates(self, ledgers: Sequence[Ledger], designs: Sequence[Design]) -> tuple[Estimate, ...]:
        first, design = ledgers[0], designs[0]
        shared = len(ledgers) > _MOST_ALONE and all(
            each is design
            and np.array_equal(ledger.masks, first.masks)
            and np.array_equal(ledger.baseline, first.baseline)
            for ledger, each in zip(ledgers, designs, strict=True)
        )
        if shared and not _all_known(first, design):
            return _together(ledgers, design)
        return tuple(_estimate(ledger, design) for ledger, design in zip(ledgers, designs, strict=True))

    def contributions(self, ledger: Ledger, design: Design) -> None:
        return None

    def evidence(self, n_replicates: int) -> str:
        return "the spread of the games that the coalitions seen make likely"

    def most_budget(self, design: Design) -> float:
        return float(((1 << int(design.moving.sum())) - 1) * design.n_baselines + 1)


def _estimate(ledger: Ledger, design: Design) -> Estimate:
    """Shapley values of v, averaged over the baselines. A coalition that occurs twice counts once."""
    n, baseline_weights = ledger.n_features, design.baseline_weights
    moving = np.flatnonzero(design.moving)  # the other features have the value zero, without error
    masks, values, baseline = _distinct(ledger, moving, None)
    m, n_baselines = len(moving), len(baseline_weights)
    if m <= _MOST_ENUMERATED and len(masks) == (2**m - 1) * n_baselines:
        exact = np.zeros(n)
        exact[moving] = (owen.coefficients(np.where(masks, 1.0, -1.0)).T * baseline_weights[baseline]) @ values
        return Estimate(exact, np.zeros((1, n)), _METHOD, exact=True)
    rows = _rows(masks, values, baseline, baseline_weights)
    scale = float(np.sqrt((rows.values**2).mean()))
    if scale == 0:  # no evaluated coalition changes the output
        return Estimate.normal(np.zeros(n), np.zeros((n, n)), _METHOD, rows.n_rows)
    scaled = Rows(rows.signs, rows.values / scale, rows.paired, rows.shares)
    process = learn(scaled)
    means, covariance = _posterior(scaled, baseline_weights, process)
    surprise = _surprise(process, scaled.take(np.arange(min(scaled.n_rows, _MOST_ROWS))))
    mean, error = np.zeros(n), np.zeros((n, n))
    mean[moving] = scale * means
    error[np.ix_(moving, moving)] = scale**2 * np.sqrt(surprise) * _widened(covariance, rows.n_rows)
    return Estimate.normal(mean, error, _METHOD, rows.n_rows / surprise)


def _all_known(ledger: Ledger, design: Design) -> bool:
    """Whether every coalition of the features that move was evaluated."""
    moving = np.flatnonzero(design.moving)
    n_rows = (2 ** len(moving) - 1) * design.n_baselines
    return len(moving) <= _MOST_ENUMERATED and len(_distinct(ledger, moving, None)[0]) == n_rows


def _together(ledgers: Sequence[Ledger], design: Design) -> tuple[Estimate, ...]:
    """Shapley values of many games with values at the same coalitions, under one process.

    The covariance of each game is that of the process times y^T K^-1 y / n_rows, which has the mean one.
    """
    n, weights, moving = ledgers[0].n_features, design.baseline_weights, np.flatnonzero(design.moving)
    games = [_rows(*_distinct(ledger, moving, None), weights) for ledger in ledgers]
    scales = np.array([np.sqrt((game.values**2).mean()) for game in games])
    changing, n_rows = scales > 0, games[0].n_rows
    values, errors = np.zeros((len(games), n)), np.zeros((len(games), n, n))
    if changing.any():
        columns = np.stack([game.values for game in games], axis=1)[:, changing] / scales[changing]
        rows = Rows(games[0].signs, columns, games[0].paired, games[0].shares)
        means, covariance, misfits = _shared_posterior(rows, weights)
        widened = _widened(covariance, n_rows)
        for place, game in enumerate(np.flatnonzero(changing)):
            values[game, moving] = scales[game] * means[:, place]
            errors[game][np.ix_(moving, moving)] = scales[game] ** 2 * misfits[place] * widened
    return tuple(Estimate.normal(value, error, _METHOD, n_rows) for value, error in zip(values, errors, strict=True))


def _shared_posterior(rows: Rows, baseline_weights: Array) -> tuple[Array, Array, Array]:
    """The means (n_features, n_games), their common covariance, and y^T K^-1 y / n_rows of every game."""
    n_games = rows.values.shape[1]
    process = learn(replace(rows, values=rows.values / np.sqrt(n_games)))
    part = rows.take(np.arange(min(rows.n_rows, _MOST_ROWS)))
    root = cho_factor(process.covariance(part), lower=True, overwrite_a=True, check_finite=False)
    misfits = (part.values * cho_solve(root, part.values)).mean(0)
    means, covariance = _posterior(rows, baseline_weights, process)
    return means, covariance, misfits


def distinct_rows(ledger: Ledger, moving: NDArray[np.int64], baseline_weights: Array, full: Array) -> Rows:
    """The rows of the process: every coalition once, and the coalition of all features first."""
    masks, values, baseline = _distinct(ledger, moving, full)
    return _rows(masks, values, baseline, baseline_weights)


def _distinct(ledger: Ledger, moving: NDArray[np.int64], full: Array | None) -> tuple[Masks, Array, NDArray[np.int64]]:
    """Every non-empty coalition of moving features, once for each baseline, in the order of the rows."""
    known = np.isfinite(ledger.value)
    masks, values, baseline = ledger.masks[known][:, moving], ledger.value[known], ledger.baseline[known]
    if full is not None:
        masks = np.concatenate([masks, np.ones((len(full), len(moving)), dtype=bool)])
        values, baseline = np.concatenate([values, full]), np.concatenate([baseline, np.arange(len(full))])
    packed = np.concatenate([np.packbits(masks, axis=1), baseline[:, None].astype(np.int64).view(np.uint8)], axis=1)
    _, first = np.unique(packed, axis=0, return_index=True)
    first = np.sort(first[masks[first].any(1)])
    return masks[first], values[first], baseline[first]


def _rows(masks: Masks, values: Array, baseline: NDArray[np.int64], baseline_weights: Array) -> Rows:
    """One odd part per pair if every coalition has its complement; otherwise one row per coalition.

    Row 0 is the coalition of all features. With several baselines it is the mean over them, which is known without
    error.
    """
    everyone = masks.all(1)
    n_baselines, n = len(baseline_weights), masks.shape[1]
    if len(np.unique(baseline[everyone])) < n_baselines:
        raise GralisError("Shapley values need F(x) - F(x') of every baseline, and this ledger lacks the row of one.")
    delta = float(baseline_weights[baseline[everyone]] @ values[everyone])
    masks, values, baseline = masks[~everyone], values[~everyone], baseline[~everyone]
    place = {(int(b), row.tobytes()): k for k, (b, row) in enumerate(zip(baseline, masks, strict=True))}
    partner = [place.get((int(b), (~row).tobytes()), -1) for b, row in zip(baseline, masks, strict=True)]
    other = np.array(partner, dtype=np.int64)
    paired = bool((other >= 0).all())
    if paired:
        first = np.flatnonzero(np.arange(len(other)) < other)
        masks, values, baseline = masks[first], (values[first] - values[other[first]]) / 2, baseline[first]
    signs = np.concatenate([np.ones((1, n)), np.where(masks, 1.0, -1.0)])
    values = np.concatenate([[delta / 2 if paired else delta], values])
    shares = np.concatenate([baseline_weights[None], np.eye(n_baselines)[baseline]])
    if not paired:  # the value of the empty coalition is known to be zero
        signs, values = np.concatenate([signs, -np.ones((1, n))]), np.append(values, 0.0)
        shares = np.concatenate([shares, baseline_weights[None]])
    return Rows(signs, values, paired, shares if n_baselines > 1 else None)


def _posterior(rows: Rows, baseline_weights: Array, process: Process | None = None) -> tuple[Array, Array]:
    """Mean and covariance of the Shapley values given all rows, which are read at once or block by block.

    Given the Shapley values, different blocks are treated as independent, so their precisions add up. A few rows are
    part of every block. What they contribute is counted once.
    """
    process = learn(rows) if process is None else process
    if rows.n_rows <= _MOST_ROWS:
        return _given(process, rows, baseline_weights)
    size = np.abs(rows.signs.sum(1))
    n = rows.signs.shape[1]
    shared = np.flatnonzero(size >= n - 2)[: _BLOCK // 2]  # coalitions of all features, none, one, and all but one
    rest = np.random.default_rng(1).permutation(np.setdiff1d(np.arange(rows.n_rows), shared))
    n_blocks = -(-len(rest) // (_BLOCK - len(shared)))
    # The sum of the values is known, so precisions are computed in the directions orthogonal to it.
    across = np.linalg.svd(np.ones((1, n)))[2][1:]
    start, start_error = _given(process, rows.take(shared), baseline_weights)
    prior = _precision(across @ start_error @ across.T)
    precision, pull = prior, prior @ across @ start
    for block in np.array_split(rest, n_blocks):
        mean, error = _given(process, rows.take(np.concatenate([shared, block])), baseline_weights)
        gained = _precision(across @ error @ across.T)
        precision = precision + gained - prior
        pull = pull + gained @ across @ mean - prior @ across @ start
    error = np.asarray(np.linalg.inv(precision), dtype=np.float64)
    mean = across.T @ (error @ pull) + start.mean(0)
    return mean, across.T @ error @ across


def _widened(covariance: Array, n_rows: int) -> Array:
    """The covariance, widened because p parameters were learnt from the same n_rows rows.

    All variances grow a little. In addition a share p / n_rows of the variance is spread evenly over the features,
    because it is never certain that a feature takes no part in interactions. The error of the sum stays zero.
    """
    n = len(covariance)
    share = min(1.0, (n + N_PARAMETERS) / n_rows)
    even = np.trace(covariance) / n * (n * np.eye(n) - 1) / max(n - 1, 1)
    return np.asarray((1 + 2 * share) * ((1 - share) * covariance + share * even))


def _surprise(process: Process, rows: Rows) -> float:
    """The kurtosis of the leave-one-out residuals over that of a normal law, between 1 and _MOST_SURPRISE.

    With a = K^-1 y, the residual of row r given all other rows is a_r / (K^-1)_rr, and its variance is 1 / (K^-1)_rr.
    In a game that a few coalitions decide, a few rows surprise the process very much. Then the variance of the Shapley
    values is multiplied by the root of this number, and the rows that carry it are divided by it.
    """
    inverse = np.linalg.inv(process.covariance(rows))
    scores = (inverse @ rows.values / np.sqrt(np.diag(inverse)))[1:]  # row 0 is the coalition of all features
    squares = scores**2
    typical = squares.mean()
    if not typical > 0:
        return 1.0
    return float(np.clip((squares**2).mean() / typical**2 / _NORMAL_KURTOSIS, 1.0, _MOST_SURPRISE))


def _precision(covariance: Array) -> Array:
    """The inverse of a covariance matrix that may be slightly indefinite after rounding."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors / np.maximum(values, 1e-14 * max(values.max(), 1e-300))) @ vectors.T)


def _given(process: Process, rows: Rows, baseline_weights: Array) -> tuple[Array, Array]:
    """Mean and covariance of the Shapley values given these rows."""
    covariance = process.covariance(rows)
    root = cho_factor(covariance, lower=True, overwrite_a=True, check_finite=False)
    reach = owen.of_rows(process, rows, baseline_weights)
    before = owen.spread(process, baseline_weights, rows.paired)
    return reach @ cho_solve(root, rows.values), before - reach @ cho_solve(root, reach.T)
