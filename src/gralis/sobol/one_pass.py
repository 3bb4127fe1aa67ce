"""`term_shares`: Sobol indices of any order from explanations that exist already, without calling the model.

Each explanation of an input x holds the Moebius coefficients m_T(x) of its game, averaged over its baselines. If inputs
and baselines are independent draws of one distribution with independent features, the average is the Hoeffding term
f_T(x), and S_T = Var_x f_T(x) / Var F. With B baselines the coefficients m_T^b(x) of single baselines are known, and

    Var f_T = mean over b != c of Cov_x(m_T^b(x), m_T^c(x))

has no bias from the number of baselines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from scipy.special import stdtrit

from gralis.arrays import Array
from gralis.checks import probability, several, whole
from gralis.errors import GralisError, bad
from gralis.estimators.estimate import Estimate
from gralis.explainers.coalition_values import coalition_values_of
from gralis.explainers.transform import moebius
from gralis.results import Explanation
from gralis.sobol.input_sets import InputSet, named_sets, subsets
from gralis.sobol.share_table import TermShares

__all__ = ["term_shares"]

_LEAST = 3
_SURE = 0.999  # the level at which the mean of a term is said to differ from zero
_NOTICEABLE = 0.05  # a mean that matters, in standard deviations of F


def term_shares(
    explanations: Iterable[Explanation],
    *,
    sets: Iterable[Sequence[int | str]] | None = None,
    max_order: int = 2,
    level: float = 0.95,
) -> TermShares:
    """S_T = Var_x[m_T(x)] / Var F: the variance of every term over explained inputs, without a call of the model.

    m_T is the Moebius coefficient of the averaged game. S_T is Sobol's index if the explained inputs are draws of a
    distribution with independent features, and if either the baselines are draws of the same distribution, or there is
    one baseline at the mean and F is multilinear.

    Parameters
    ----------
    explanations : iterable of Explanation
        Explanations of different inputs by the same model, with the same features and the same number of baselines.
    sets : iterable of tuples of int or str, optional
        The sets T that are wanted, by the numbers or the names of their features. By default all sets of up to
        `max_order` features.
    max_order : int, default=2
        The largest size of a set if `sets` is not given.
    level : float, default=0.95
        The probability with which the half-widths hold.

    Returns
    -------
    TermShares
        S_T and closed S_T with half-widths from a jackknife over inputs and over baselines.

    Examples
    --------
    >>> import numpy as np, gralis
    >>> X = np.random.default_rng(0).uniform(-1, 1, (64, 2))
    >>> def product(z):
    ...     return z[:, 0] + z[:, 0] * z[:, 1]
    >>> found = term_shares([gralis.explain(product, x, baseline=[0.0, 0.0], progress=False) for x in X])
    >>> abs(found.shares[0,] - 0.75) < found.half_width[0,] < 0.3
    True
    """
    level = probability(level, "level", "term_shares")
    each = several(explanations, "explanations", "term_shares", "a list of explanations")
    _check(each)
    names = each[0].names
    if sets is None:
        largest = min(whole(max_order, "max_order", 1, "term_shares"), len(names))
        wanted = tuple(t for size in range(1, largest + 1) for t in combinations(range(len(names)), size))
    else:
        wanted = named_sets(sets, names, "term_shares")
    terms = tuple(dict.fromkeys(part for t in wanted for part in subsets(t, 1)))
    sampled = [one for one in each if not one.estimate.exact]
    if sampled:
        order = max(len(t) for t in terms)
        found = [one.moebius(order) for one in each]
        m = np.array([[[one[t] for t in terms]] for one in found])  # (n_inputs, 1, n_terms)
        noise = np.array([[one.error(t) ** 2 for t in terms] for one in found])
    else:
        m = np.stack([_by_baseline(one, terms) for one in each])  # (n_inputs, n_baselines, n_terms)
        noise = np.zeros((len(each), len(terms)))
    f_x = np.array([one.f_x for one in each])
    if np.ptp(f_x) == 0:
        raise GralisError("F is the same for all explained inputs, so its variance has no shares.")
    rounding = max(one.design.rounding for one in each) * 2.0 ** np.array([len(t) for t in terms])
    estimate = _jackknife(m, noise, f_x).with_rounding(_rounding_of_shares(m, rounding, f_x))
    rows = np.array([[float(set(part) <= set(t)) for part in terms] for t in wanted])
    own = np.array([[float(part == t) for part in terms] for t in wanted])
    doubts = (*_fit_doubts(len(sampled), len(each)), *_mean_doubts(m, terms, names, float(f_x.std())))
    both = estimate.combined(own), estimate.combined(rows)
    return TermShares(*both, wanted, names, level, len(each), m.shape[1], doubts)


def _check(each: tuple[Explanation, ...]) -> None:
    allowed = f"at least {_LEAST} explanations with the same features and the same number of baselines"
    strangers = [one for one in each if not isinstance(one, Explanation)]
    if strangers:
        raise bad("explanations", "term_shares", allowed, f"a {type(strangers[0]).__name__}")
    if len(each) < _LEAST:
        raise bad("explanations", "term_shares", allowed, f"{len(each)}")
    forms = {(tuple(one.names), len(one.baseline_weights)) for one in each}
    if len(forms) > 1:
        raise bad("explanations", "term_shares", allowed, f"{len(forms)} different kinds")


def _by_baseline(one: Explanation, terms: tuple[InputSet, ...]) -> Array:
    """The Moebius coefficients of every baseline, (n_baselines, n_terms)."""
    ledger = one.ledger.require_rows("term_shares")
    codes = [sum(1 << j for j in t) for t in terms]
    full = one.f_x - one.f_baselines
    return np.stack(
        [
            moebius(
                coalition_values_of(ledger.of_baseline(b), full[b : b + 1], np.ones(1)).rows("term_shares").table()
            )[codes]
            for b in range(len(full))
        ]
    )


def _shares(m: Array, noise: Array, f_x: Array) -> Array:
    """Var f_T / Var F from m (n_inputs, n_baselines, n_terms)."""
    n_baselines = m.shape[1]
    together = m.mean(1).var(0, ddof=1)
    if n_baselines > 1:
        alone = m.var(0, ddof=1).sum(0)
        together = (n_baselines**2 * together - alone) / (n_baselines * (n_baselines - 1))
    return np.asarray((together - noise.mean(0)) / f_x.var(ddof=1))


def _jackknife(m: Array, noise: Array, f_x: Array) -> Estimate:
    """The shares, with departures whose squares add up the variances over inputs and over baselines."""
    n, n_baselines = m.shape[:2]
    kept = ~np.eye(n, dtype=bool)
    left = [np.array([_shares(m[keep], noise[keep], f_x[keep]) for keep in kept])]
    if n_baselines > 2:
        kept = ~np.eye(n_baselines, dtype=bool)
        left.append(np.array([_shares(m[:, keep], noise, f_x) for keep in kept]))
    total = sum(len(part) for part in left)
    departures = np.concatenate(
        [(part.mean(0) - part) * np.sqrt(total * (total - 1) * (len(part) - 1) / len(part)) for part in left]
    )
    second, fourth = (departures**2).sum(0), (departures**4).sum(0)
    carriers = np.divide(second**2, fourth, out=np.full(len(fourth), np.inf), where=fourth > 0)
    return Estimate(_shares(m, noise, f_x), departures, "one pass", carriers=carriers)


def _rounding_of_shares(m: Array, rounding: Array, f_x: Array) -> Array:
    """(2 sd(m_T) r + r^2) / Var F: how far a share may move if every m_T is off by r (n_terms,)."""
    return np.asarray((2 * m.mean(1).std(0) * rounding + rounding**2) / f_x.var(ddof=1))


def _fit_doubts(n_sampled: int, n: int) -> tuple[str, ...]:
    if not n_sampled:
        return ()
    return (
        f"{n_sampled} of {n} explanations sampled their coalitions, so their terms come from a fit that absorbs terms "
        "of higher order, and draws that the explanations share make errors that no interval here shows; explain with "
        "plan='exhaustive'.",
    )


def _mean_doubts(m: Array, terms: tuple[InputSet, ...], names: Sequence[str], deviation: float) -> tuple[str, ...]:
    """Hoeffding terms have mean zero. A sentence if the mean of a term is not."""
    mean = m.mean((0, 1))
    variance = m.mean(1).var(0, ddof=1) / len(m)
    if m.shape[1] > 1:
        variance = variance + m.mean(0).var(0, ddof=1) / m.shape[1]
    sure = float(stdtrit(len(m) - 1, 1 - (1 - _SURE) / 2 / len(terms)))
    off = np.abs(mean) > np.maximum(sure * np.sqrt(variance), _NOTICEABLE * deviation)
    if not off.any():
        return ()
    worst = int(np.argmax(np.where(off, np.abs(mean), 0.0)))
    label = " x ".join(names[i] for i in terms[worst])
    return (
        f"The term of {label} has the mean {mean[worst]:.3g} over these inputs, and Hoeffding terms have the mean 0: "
        "the baselines do not represent the inputs, so these shares are not Sobol indices; use baselines that are "
        "drawn like the inputs, with independent features.",
    )
