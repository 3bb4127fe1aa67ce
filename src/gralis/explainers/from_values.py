"""Explainers that are arithmetic on coalition values: interaction indices, Moebius coefficients, KernelSHAP, LIME."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb

import numpy as np

from gralis.arrays import Array
from gralis.checks import is_whole, non_negative, one_of, positive
from gralis.errors import GralisError, bad
from gralis.estimators import Estimate
from gralis.explainers.coalition_values import CoalitionValues, Game
from gralis.explainers.indices import BANZHAF, SII, Index, k_sii, stii
from gralis.explainers.regression import faith_estimate, lasso_support, lime_fit, moebius_estimate
from gralis.explainers.sampled import index_estimate
from gralis.explainers.transform import Coalition, coalitions

__all__ = [
    "INDICES",
    "LimeFit",
    "by_index",
    "coalitions_up_to",
    "exact_estimate",
    "interactions",
    "kernel_shap",
    "lime",
    "moebius_up_to",
]

INDICES = ("SII", "STII", "k-SII", "FSII", "BII")
_MOST_COALITIONS = 200_000
_LEAST_SIGMA = 1e-12


@dataclass(frozen=True, eq=False)
class LimeFit:
    """A fitted linear model on 0/1 features.

    Attributes
    ----------
    estimate : Estimate
        The coefficients of all features; those outside the support are zero.
    intercept : float
        The intercept.
    r2 : float
        The weighted coefficient of determination.
    support : tuple of int
        The features that take part in the fit.
    note : str
        What a reader should know about the fit.
    """

    estimate: Estimate
    intercept: float
    r2: float
    support: tuple[int, ...]
    note: str


def by_index(values: Game, index: Index, sets: tuple[Coalition, ...], method: str | None = None) -> Estimate:
    """An index of these coalitions; exact if every coalition was evaluated, otherwise estimated from the rows."""
    if values.complete:
        return exact_estimate(values.index(index, sets), method or index.name)
    estimate = index_estimate(values.rows(index.name), index, sets)
    return estimate if method is None else replace(estimate, method=method)


def kernel_shap(game: Game) -> Estimate:
    """Shapley values by weighted least squares, constrained to sum to F(x) - F(x')."""
    values = game.rows("kernel_shap")
    _require_rows(values, values.n_features, "kernel_shap")
    return faith_estimate(values, coalitions(values.n_features, 1), "KernelSHAP")


def lime(game: Game, ridge: float, sigma: float, k_features: int | None, select: str) -> LimeFit:
    """A ridge fit on all 0/1 features, or on the `k_features` features that `select` chooses."""
    values, n = game.rows("lime"), game.n_features
    ridge, sigma = non_negative(ridge, "ridge", "lime"), positive(sigma, "sigma", "lime")
    if not _LEAST_SIGMA <= sigma <= 1 / _LEAST_SIGMA:
        raise bad("sigma", "lime", f"a number from {_LEAST_SIGMA:g} to {1 / _LEAST_SIGMA:g}", repr(sigma))
    if k_features is not None and not is_whole(k_features, 1, n):
        raise bad("k_features", "lime", f"None or a whole number from 1 to {n}", repr(k_features))
    n_kept = n if k_features is None else k_features
    one_of(select, ("lasso", "largest"), "select", "lime")
    rows = _with_empty(values)
    _require_rows(rows, n + 1, "lime")
    support = np.arange(n)
    if n_kept < n:
        if select == "lasso":
            support = lasso_support(rows, sigma, n_kept)
        else:
            on_all, _, _ = lime_fit(rows, sigma, ridge, support)
            support = np.sort(np.argsort(-np.abs(on_all.values), kind="stable")[:n_kept])
    estimate, intercept, r2 = lime_fit(rows, sigma, ridge, support)
    conditions = [] if k_features is None else [f"conditional on its {len(support)} features"]
    note = " ".join(part for part in (*conditions, "" if estimate.exact else FIT_IS_BIASED, rows.note) if part)
    return LimeFit(estimate, intercept, r2, tuple(int(i) for i in support), note)


#: What the notes of LIME, FSII and Moebius coefficients say if coalitions were drawn: a regression is a ratio of sums.
FIT_IS_BIASED = "(a fit to drawn coalitions: its bias may be as large as its error)"


def moebius_up_to(game: Game, sets: tuple[Coalition, ...]) -> tuple[Estimate, str]:
    """Moebius coefficients and a note. They are exact if every coalition was evaluated, otherwise a best fit."""
    if game.complete:
        return exact_estimate(game.moebius(sets), "Moebius"), game.note
    values = game.rows("moebius")
    _require_rows(values, len(sets), "moebius")
    estimate, n_known = moebius_estimate(values, sets)
    note = f"{n_known} exact, the others from the best fit of this order {FIT_IS_BIASED} {values.note}"
    return estimate, note.strip()


def interactions(values: Game, sets: tuple[Coalition, ...], order: int, index: str) -> Estimate:
    """One of INDICES for these coalitions of up to `order` features."""
    if not values.complete:
        _require_rows(values.rows("interactions"), len(sets), "interactions")
    if index == "FSII":
        if values.complete:
            return exact_estimate(values.faith(order, sets), index)
        return faith_estimate(values.rows("FSII"), sets, index)
    if index == "STII" and not values.complete and order > 2:
        raise GralisError(
            "STII of order 3 and more needs the values of all small coalitions; explain with plan='exhaustive', or "
            "use index='SII' or 'FSII'."
        )
    weights = {"SII": SII, "k-SII": k_sii(order), "BII": BANZHAF, "STII": stii(order)}
    return by_index(values, weights[index], sets)


def coalitions_up_to(n_features: int, order: object, name: str, owner: str) -> tuple[Coalition, ...]:
    """All coalitions of 1 to `order` features, if there are not too many."""
    if not is_whole(order, 1, n_features):
        raise bad(name, owner, f"a whole number from 1 to n_features = {n_features}", repr(order))
    most = int(order)  # type: ignore[call-overload]
    count = sum(comb(n_features, size) for size in range(1, most + 1))
    if count > _MOST_COALITIONS:
        raise bad(name, owner, f"small enough for at most {_MOST_COALITIONS} coalitions", f"{order}, which has {count}")
    return coalitions(n_features, most)


def exact_estimate(values: Array, method: str) -> Estimate:
    """The values as an estimate without sampling error."""
    return Estimate(values, np.zeros((1, len(values))), method, exact=True)


def _with_empty(values: CoalitionValues) -> CoalitionValues:
    """The same rows and the empty coalition, which determines the intercept of LIME."""
    none = np.zeros((1, values.n_features), dtype=bool)
    return replace(
        values,
        masks=np.concatenate([values.masks, none]),
        value=np.append(values.value, 0.0),
        log_count=np.append(values.log_count, 0.0),
        replicate=np.append(values.replicate, -1),
    )


def _require_rows(values: CoalitionValues, n_unknowns: int, owner: str) -> None:
    """Refuse a fit to fewer different coalitions than it has unknowns."""
    if not values.complete and values.n_distinct <= n_unknowns:
        raise GralisError(
            f"{owner} has {n_unknowns} unknowns here and needs more different coalitions than that; this ledger has "
            f"{values.n_distinct}. Explain with a larger budget."
        )
