"""Every explainer that a ledger gives, from an explanation; each function is one method of `Explanation`."""

from __future__ import annotations

from dataclasses import replace
from math import comb
from typing import TYPE_CHECKING

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError, bad
from gralis.estimators import Estimate
from gralis.explainers import paths
from gralis.explainers.coalition_values import Game, game
from gralis.explainers.indices import BANZHAF, SII, Index, k_sii, stii
from gralis.explainers.regression import faith_estimate, lasso_support, lime_fit, moebius_estimate
from gralis.explainers.sampled import index_estimate
from gralis.explainers.transform import Coalition, coalitions, faith, index_values, moebius
from gralis.results.attribution import Attribution, Interactions, Surrogate

if TYPE_CHECKING:
    from gralis.results.explanation import Explanation

INDICES = ("SII", "STII", "k-SII", "FSII", "BII")
_MOST_COALITIONS = 200_000


def integrated_gradients(e: Explanation) -> Attribution:
    found = paths.integrated_gradients(e.ledger, _full(e), e.baseline_weights, e.estimate.exact)
    return Attribution(found, e.names, e.delta, features=e.features)


def singles(e: Explanation) -> Attribution:
    return Attribution(paths.singles(e.ledger, e.baseline_weights), e.names, e.delta, features=e.features)


def shapley(e: Explanation) -> Attribution:
    if e.plan["estimator"] == "shapley":  # the plan made for it
        return Attribution(e.estimate, e.names, e.delta, features=e.features)
    return _by_index(e, SII, "Shapley values")


def banzhaf(e: Explanation) -> Attribution:
    return _by_index(e, BANZHAF, "Banzhaf values")


def kernel_shap(e: Explanation) -> Attribution:
    g = _game(e)
    _require_rows(g, e.n_features, "kernel_shap")
    found = faith_estimate(g, coalitions(e.n_features, 1), "KernelSHAP")
    return Attribution(found, e.names, e.delta, g.note, e.features)


def lime(e: Explanation, ridge: float, sigma: float, k_features: int | None, select: str) -> Surrogate:
    for value, name, least in ((ridge, "ridge", 0.0), (sigma, "sigma", 1e-12)):
        number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
        if not number or not least <= value < np.inf:
            raise bad(name, "lime", "a number >= 0" if name == "ridge" else "a number > 0", repr(value))
    n = e.n_features
    whole = isinstance(k_features, int | np.integer) and not isinstance(k_features, bool) and 1 <= k_features <= n
    if k_features is not None and not whole:
        raise bad("k_features", "lime", f"None or a whole number from 1 to {n}", repr(k_features))
    if select not in ("lasso", "largest"):
        raise bad("select", "lime", "'lasso' or 'largest'", repr(select))
    g = _with_empty(_game(e))
    _require_rows(g, n + 1, "lime")
    support = np.arange(n)
    if k_features is not None and k_features < n:
        if select == "lasso":
            support = lasso_support(g, sigma, k_features)
        else:
            whole_fit, _, _ = lime_fit(g, sigma, ridge, support)
            support = np.sort(np.argsort(-np.abs(whole_fit.values), kind="stable")[:k_features])
    found, intercept, r2 = lime_fit(g, sigma, ridge, support)
    note = g.note if k_features is None else f"conditional on its {len(support)} features {g.note}".strip()
    kept = tuple(int(i) for i in support)
    return Surrogate(found, e.names, e.delta, note, e.features, intercept=intercept, r2=r2, support=kept)


def moebius_of(e: Explanation, max_order: int) -> Interactions:
    """Exact from all coalitions; else the best fit of that order, which is said."""
    sets = _sets(e, max_order, "max_order", "moebius")
    g = _game(e)
    if g.complete:
        m = moebius(g.table())
        return _interactions(e, Estimate(_pick(m, sets), np.zeros((1, len(sets))), "Moebius", True), sets, max_order, g)
    _require_rows(g, len(sets), "moebius")
    found, n_known = moebius_estimate(g, sets)
    note = f"{n_known} exact, the others from the best fit of this order {g.note}".strip()
    return Interactions(found, sets, "Moebius", max_order, e.names, note)


def interactions(e: Explanation, order: int, index: str) -> Interactions:
    if index not in INDICES:
        raise bad("index", "interactions", f"one of {', '.join(map(repr, INDICES))}", repr(index))
    sets = _sets(e, order, "order", "interactions")
    g = _game(e)
    _require_rows(g, len(sets), "interactions")
    if index == "FSII":
        if g.complete:
            found = Estimate(faith(moebius(g.table()), order, sets), np.zeros((1, len(sets))), index, True)
        else:
            found = faith_estimate(g, sets, index)
    elif index == "STII":
        if not g.complete and order > 2:
            raise GralisError(
                "STII of order 3 and more needs the values of all small coalitions; explain with plan='exhaustive', or "
                "use index='SII' or 'FSII'."
            )
        found = _index(g, stii(order), sets)
    else:
        found = _index(g, {"SII": SII, "k-SII": k_sii(order), "BII": BANZHAF}[index], sets)
    return _interactions(e, found, sets, order, g, index)


def _index(g: Game, index: Index, sets: tuple[Coalition, ...]) -> Estimate:
    if g.complete:
        return Estimate(index_values(moebius(g.table()), index, sets), np.zeros((1, len(sets))), index.name, True)
    return index_estimate(g, index, sets)


def _by_index(e: Explanation, index: Index, method: str) -> Attribution:
    g = _game(e)
    found = _index(g, index, coalitions(e.n_features, 1))
    named = Estimate(found.values, found.departures, method, found.exact, found.carriers)
    return Attribution(named, e.names, e.delta, g.note, e.features)


def _interactions(
    e: Explanation, found: Estimate, sets: tuple[Coalition, ...], order: int, g: Game, index: str = "Moebius"
) -> Interactions:
    return Interactions(found, sets, index, order, e.names, g.note)


def _game(e: Explanation) -> Game:
    return game(e.ledger, _full(e), e.baseline_weights, e.estimate.exact)


def _full(e: Explanation) -> Array:
    return e.f_x - e.f_baselines


def _with_empty(g: Game) -> Game:
    """The game with the empty coalition as a row: LIME's intercept sees it."""
    none = np.zeros((1, g.n_features), dtype=bool)
    return replace(
        g,
        masks=np.concatenate([g.masks, none]),
        value=np.append(g.value, 0.0),
        log_count=np.append(g.log_count, 0.0),
        replicate=np.append(g.replicate, -1),
    )


def _pick(m: Array, sets: tuple[Coalition, ...]) -> Array:
    return np.array([m[sum(1 << j for j in members)] for members in sets])


def _sets(e: Explanation, order: object, name: str, owner: str) -> tuple[Coalition, ...]:
    n = e.n_features
    if isinstance(order, bool) or not isinstance(order, int | np.integer) or not 1 <= order <= n:
        raise bad(name, owner, f"a whole number from 1 to n_features = {n}", repr(order))
    count = sum(comb(n, size) for size in range(1, int(order) + 1))
    if count > _MOST_COALITIONS:
        raise bad(name, owner, f"small enough for at most {_MOST_COALITIONS} coalitions", f"{order}, which has {count}")
    return coalitions(n, int(order))


def _require_rows(g: Game, n_unknowns: int, owner: str) -> None:
    """A fit to some of the coalitions needs more of them than unknowns."""
    if not g.complete and g.n_distinct <= n_unknowns:
        raise GralisError(
            f"{owner} has {n_unknowns} unknowns here and needs more different coalitions than that; this ledger has "
            f"{g.n_distinct}. Explain with a larger budget."
        )
