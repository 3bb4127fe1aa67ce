"""What random nodes and drawn coalitions may have missed, by checks that need no model call.

checksum          E c(T) = 0 over random nodes, c(T) = sum_i ray_i - v(T). If every node misses a jump of F, then
                  c(T) = -v(T) on ray after ray, and |sum W_i c| is far from zero, measured by sqrt(sum (W_i c)^2).
full coalition    v(F) is always known. If its ray was drawn rarely or never, phi_i may lack q_i(F) times the part
                  of v(F) that single features do not explain.
silent features   A feature with v({i}) != 0 and no gradient on any sampled ray may act on a few more coalitions. So
                  may one with v({i}) = 0, if other features have a gradient on few of their rays.
"""

from __future__ import annotations

import numpy as np

from gralis.arrays import Array
from gralis.estimators.full_ray import checksums_of_all, only_full_is_known
from gralis.estimators.ray_weights import total_importance
from gralis.laws import Law
from gralis.ledger import Ledger
from gralis.rays import CENSUS

__all__ = [
    "CLEAR",
    "alone_gap",
    "clear_mean",
    "full_gap",
    "known_checksum",
    "missed_alone",
    "missed_by_draws",
    "missed_by_nodes",
]

CLEAR = 4.0  # in standard errors; nodes that miss nothing pass this once in 16 000 values
_LEAST_ROWS, _CLEAR_OF_FEW = 3, 6.0  # standard errors from a few rows are themselves uncertain
_FEW, _RARELY = 10, 0.2  # so few rays, and so small a share of the rays of a feature, show it rarely


def missed_by_nodes(ledger: Ledger, shares: Array) -> Array:
    """|sum over rays of share_i c(T)| where it is clearly not zero, else 0; (n_features,).

    Parameters
    ----------
    ledger : Ledger
        Rays with random nodes.
    shares : array of shape (n_rays, n_features)
        The weight of every ray in each value.
    """
    parts = shares * known_checksum(ledger)[:, None]
    mean, error = np.abs(parts.sum(0)), np.sqrt((parts**2).sum(0))
    return np.where(mean > CLEAR * error, mean, 0.0)


def known_checksum(ledger: Ledger) -> Array:
    """c(T) of the rays on which random nodes may miss something, 0 on the others, (n_rays,).

    If v is known for the coalition of all features only, what its rays clearly miss stands for what the others miss.
    """
    known = np.isfinite(ledger.value) & (ledger.nodes_per_ray > 0) & (ledger.sizes > 1)
    check = np.where(known, ledger.checksum, 0.0)
    if only_full_is_known(ledger):
        for number in np.unique(ledger.baseline[known]):
            others = ~known & (ledger.nodes_per_ray > 0) & (ledger.baseline == number)
            check[others] = clear_mean(checksums_of_all(ledger, int(number)))
    return np.asarray(check)


def missed_by_draws(ledger: Ledger, laws: tuple[Law, ...], baseline_weights: Array) -> Array:
    """q_i(F) |v(F) - sum of v({j})| / (1 + rays drawn) if fewer than three rays were drawn; (n_features,).

    If the rays of all features were drawn and their nodes clearly miss a part of v(F), that part is added.

    Parameters
    ----------
    ledger : Ledger
        Rays that were drawn from the law.
    laws : tuple of Law
        The law of coalitions for each baseline.
    baseline_weights : array of shape (n_baselines,)
        The weights of the baselines.
    """
    everyone = np.ones((1, ledger.n_features), dtype=bool)
    shares = [w * np.exp(law.log_conditional(everyone)[0]) for law, w in zip(laws, baseline_weights, strict=True)]
    return np.asarray(full_gap(ledger, len(laws)) @ np.stack(shares))


def full_gap(ledger: Ledger, n_baselines: int) -> Array:
    """|v(F) - sum of v({j})| / (1 + rays drawn) if fewer than three rays of all features were drawn, (n_baselines,).

    If there are more and their nodes clearly miss a part of v(F), that part. 0 where v(F) is not known.
    """
    no_singles = only_full_is_known(ledger)  # so that nobody knows which part of v(F) they explain
    alone = (ledger.sizes == 1) & (ledger.replicate == CENSUS)
    singles = float(np.nan_to_num(ledger.value[alone]).sum()) if alone.any() else 0.0
    gap = np.zeros(n_baselines)
    for number in range(n_baselines):
        full = ledger.masks.all(1) & (ledger.baseline == number)
        known = ledger.value[full & np.isfinite(ledger.value)]
        if len(known):
            check = ledger.checksum[full & (ledger.replicate >= 0)]
            few = len(check) < _LEAST_ROWS and not no_singles
            unseen = abs(known[0] - singles) / (1 + len(check)) if few else 0.0
            gap[number] = unseen + clear_mean(check)
    return gap


def missed_alone(ledger: Ledger, laws: tuple[Law, ...], baseline_weights: Array) -> Array:
    """(1 - q_i({i})) alone_gap_i: what a feature may do on coalitions that were not drawn, (n_features,)."""
    single = (ledger.sizes == 1) & (ledger.replicate == CENSUS)
    gap = alone_gap(ledger)
    if not gap.any():
        return gap
    return np.asarray((1 - total_importance(ledger, laws, baseline_weights, single)) * gap)


def alone_gap(ledger: Ledger) -> Array:
    """size_i min(1, 3 / m_i) for features without a gradient on any of their m_i sampled rays, else 0, (n_features,).

    By the rule of three, an event that m draws did not show may have a probability of up to 3 / m. Its size is |v({i})|
    or, if that is more, the usual size of the features that have a gradient on few of their rays: if there are such
    features, there may be one whose rays show none. If there are none, a feature with v({i}) = 0 seems to do nothing.
    """
    sampled = (ledger.replicate >= 0) & (ledger.nodes_per_ray > 0)
    rays, n_rays = np.abs(ledger.rays[sampled]), np.maximum(ledger.masks[sampled].sum(0), 1)
    n_active = (rays > 0).sum(0)
    seen = n_active > 0
    rarely = seen & (n_active <= _FEW) & (n_active < _RARELY * n_rays)
    usual = float(np.median(rays.sum(0)[rarely] / n_active[rarely])) if rarely.any() else 0.0
    alone = (ledger.sizes == 1) & (ledger.replicate == CENSUS) & np.isfinite(ledger.value)
    value = np.zeros(ledger.n_features)
    value[ledger.masks[alone].argmax(1)] = np.abs(ledger.value[alone])
    return np.where(seen, 0.0, np.maximum(value, usual) * np.minimum(1.0, 3 / n_rays))


def clear_mean(check: Array) -> float:
    """|mean| of the checksums of one ray if it is clearly not zero, else 0; a few rays show nothing.

    Parameters
    ----------
    check : array of shape (n_rows,)
        The checksum of every row of the ray.

    Returns
    -------
    float
    """
    if len(check) < _LEAST_ROWS:
        return 0.0
    mean, error = abs(float(check.mean())), float(check.std(ddof=1)) / np.sqrt(len(check))
    return mean if mean > _CLEAR_OF_FEW * error else 0.0
