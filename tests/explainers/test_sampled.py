"""Every explainer on sampled ledgers, over seeds, against enumeration: right on average, and as far off as it says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from explainers.definitions import best_fit, game_of, sets_of, shapiq_index, weighted_ridge
from gralis import Explanation, Uniform, baselines, explain, models
from gralis.games import Multilinear
from reference import network, point

N_SEEDS = 16


@dataclass(frozen=True)
class Case:
    """A ReLU network of n features, and how its coalitions are sampled."""

    n: int
    options: dict[str, Any]
    n_baselines: int = 1
    blackbox: bool = False

    @property
    def background(self) -> np.ndarray:
        return 0.4 * np.random.default_rng(0).standard_normal((self.n_baselines, self.n))


CASES = {
    "shared": Case(7, {"budget": 200}),
    "independent": Case(7, {"plan": "independent", "budget": 300}),
    "permutation": Case(7, {"plan": "permutation", "n_nodes": 1, "budget": 280}),
    "endpoint": Case(8, {"plan": "endpoint", "budget": 250}),
    "black box": Case(9, {"plan": "endpoint", "budget": 350}, blackbox=True),
    "values": Case(9, {"plan": "values", "budget": 200}, blackbox=True),
    "values, several baselines": Case(8, {"plan": "values", "budget": 250}, n_baselines=3),
    "several baselines": Case(7, {"budget": 600}, n_baselines=3),
    "ray sums": Case(7, {"budget": 600, "coalition_values": False}),
}

Method = tuple[Callable[[Explanation], Any], Callable[[np.ndarray], np.ndarray]]

ATTRIBUTIONS: dict[str, Method] = {
    "shapley": (lambda e: e.shapley(), lambda v: shapiq_index(v, "SV", 1)),
    "banzhaf": (lambda e: e.banzhaf(), lambda v: shapiq_index(v, "BV", 1)),
    "kernel_shap": (lambda e: e.kernel_shap(), lambda v: best_fit(v, 1)),
    "lime": (lambda e: e.lime(ridge=0.0), lambda v: weighted_ridge(v, 0.25, 0.0)[0]),
}
INTERACTIONS: dict[str, Method] = {
    "SII": (lambda e: e.interactions(2, "SII"), lambda v: shapiq_index(v, "SII", 2)),
    "STII": (lambda e: e.interactions(2, "STII"), lambda v: shapiq_index(v, "STII", 2)),
    "k-SII": (lambda e: e.interactions(2, "k-SII"), lambda v: shapiq_index(v, "k-SII", 2)),
    "BII": (lambda e: e.interactions(2, "BII"), lambda v: shapiq_index(v, "BII", 2)),
    "FSII": (lambda e: e.interactions(2, "FSII"), lambda v: best_fit(v, 2)),
}


@cache
def explained(name: str) -> tuple[np.ndarray, list[Explanation]]:
    """The game by enumeration, and one explanation per seed."""
    case = CASES[name]
    model, x = network("relu", case.n, 3), point(case.n, 3)
    given = models.blackbox(lambda z: model(torch.from_numpy(z)).numpy()) if case.blackbox else model
    options = {"baseline": baselines.sample(case.background), **case.options}
    return game_of(model, x, case.background), [explain(given, x, seed=seed, **options) for seed in range(N_SEEDS)]


def check(name: str, method: Method) -> tuple[np.ndarray, list[Any]]:
    """Unbiased, and with errors that say how far the seeds scatter; the truth and the results."""
    v, explanations = explained(name)
    ask, expected = method
    truth, found = expected(v), [ask(e) for e in explanations]
    assert not any(result.exact for result in found)
    assert "estimated" in repr(found[0])
    assert ("ray sums" in found[0].note) == (name == "ray sums")
    values, stderr = (np.array([getattr(result.estimate, part) for result in found]) for part in ("values", "stderr"))
    spread = values.std(0, ddof=1)
    bias = np.abs(values.mean(0) - truth) / (spread / np.sqrt(N_SEEDS) + 1e-12)
    assert bias.max() < 6
    assert np.sqrt((bias**2).mean()) < 2.2
    assert np.sqrt(((values - truth) ** 2).mean()) < 0.5 * np.sqrt((truth**2).mean())  # and not by being useless
    assert 0.7 < np.sqrt((stderr**2).mean() / (spread**2).mean()) < 1.8
    assert (np.abs(values - truth) <= 3 * stderr + 1e-12).mean() > 0.92
    return truth, found


def covered(truth: np.ndarray, found: list[Any]) -> int:
    """How many of the simultaneous 95% intervals hold, all values at once."""
    low, high = np.moveaxis(np.array([result.interval() for result in found]), 2, 0)
    return int(((low - 1e-12 <= truth) & (truth <= high + 1e-12)).all(1).sum())


@pytest.mark.parametrize("method", ATTRIBUTIONS.values(), ids=ATTRIBUTIONS.keys())
@pytest.mark.parametrize("name", CASES)
def test_attributions(name: str, method: Method) -> None:
    assert covered(*check(name, method)) >= 12  # of 16; at 95% fewer has a probability of 0.1%


@pytest.mark.parametrize("method", INTERACTIONS.values(), ids=INTERACTIONS.keys())
@pytest.mark.parametrize("name", CASES)
def test_interactions(name: str, method: Method) -> None:
    truth, found = check(name, method)
    if name == "shared":
        assert covered(truth, found) >= 12


# ---- what a sampled ledger may know for certain


def test_moebius_is_exact_where_all_subsets_are_there_and_says_how_often() -> None:
    v, explanations = explained("shared")
    truth = shapiq_index(v, "Moebius", 7)[: len(sets_of(7, 2))]
    found = explanations[0].moebius(2)
    known = found.estimate.stderr == 0
    ledger = explanations[0].ledger
    drawn = {tuple(np.flatnonzero(mask)) for mask in ledger.masks[ledger.replicate != -1]}
    assert known.tolist() == [a in drawn or len(a) == 1 for a in found]
    assert 7 < known.sum() < 28
    np.testing.assert_allclose(found.estimate.values[known], truth[known], rtol=0, atol=1e-12)
    assert f"{known.sum()} exact, the others from the best fit" in found.note
    assert not found.exact


def test_moebius_by_a_fit_shows_that_it_is_one() -> None:
    """What the fit folds in from higher orders is no scatter between replicates; errors are widened by it."""
    v, explanations = explained("shared")
    truth = shapiq_index(v, "Moebius", 7)[: len(sets_of(7, 2))]
    estimates = [e.moebius(2).estimate for e in explanations]
    off = np.concatenate([((e.values - truth) / np.maximum(e.stderr, 1e-300))[e.stderr > 0] for e in estimates])
    assert len(off) > 10
    assert 0.3 < np.sqrt((off**2).mean()) < 2


@pytest.mark.parametrize("name", ["several baselines", "ray sums"])
def test_moebius_claims_nothing_exact_where_no_row_is_the_game_itself(name: str) -> None:
    found = explained(name)[1][0].moebius(2)
    assert "0 exact" in found.note
    assert (found.estimate.stderr > 0).all()


def test_fits_are_exact_for_a_game_of_their_order() -> None:
    f = Multilinear.random(9, 2, seed=1)
    coefficients = f.moebius()
    pairs = [float(coefficients.get(a, 0)) for a in sets_of(9, 2)]
    for options in ({"budget": 400}, {"plan": "endpoint", "budget": 300}):
        found = explain(f, np.ones(9), **options)
        np.testing.assert_allclose(list(found.moebius(2).values()), pairs, rtol=0, atol=1e-8)
        np.testing.assert_allclose(list(found.interactions(2, "FSII").values()), pairs, rtol=0, atol=1e-8)
        np.testing.assert_allclose(list(found.interactions(2, "k-SII").values()), pairs, rtol=0, atol=1e-3)
        np.testing.assert_allclose(found.shapley().values, f.shapley().astype(float), rtol=0, atol=1e-3)


# ---- small and large


def test_a_replicate_without_rows_counts_like_any_other() -> None:
    """It happens when all of its draws are the full coalition: what is known without them must still be counted."""
    effects = np.linspace(-2.0, 3.0, 9)
    found = explain(lambda z: z @ torch.from_numpy(effects), np.ones(9), budget=300)
    for missing in (3, found.ledger.n_replicates - 1):
        fewer = replace(found, ledger=found.ledger.take(found.ledger.replicate != missing))
        np.testing.assert_allclose(fewer.shapley().values, effects, rtol=0, atol=1e-4)


def test_few_features_drawn_again_and_again() -> None:
    """Replicates must not agree merely because a rich surrogate has learnt all coalitions that were ever drawn."""
    model, x = network("relu", 4, 3), point(4, 3)
    truth = shapiq_index(game_of(model, x, np.zeros((1, 4))), "SV", 1)
    options = {"plan": "independent", "kernel": Uniform(), "budget": 64}
    found = [explain(model, x, seed=seed, **options).shapley() for seed in range(30)]
    drawn = [result for result in found if not result.exact]  # in the others every coalition was drawn
    assert len(drawn) >= 10
    off = np.array([np.abs(result.values - truth) / result.stderr for result in drawn])
    assert off.max() < 8
    assert np.sqrt((off**2).mean()) < 1.5


def test_more_features_than_a_count_of_coalitions_has_digits() -> None:
    """2^1100 coalitions is no floating-point number; weights are, relative to the coalitions of a size."""
    n = 1100
    effects = np.linspace(-1.0, 1.0, n)
    found = explain(models.blackbox(lambda z: z @ effects), np.ones(n), plan="endpoint", budget=4500)
    np.testing.assert_allclose(found.shapley().values, effects, rtol=0, atol=0.1)
    np.testing.assert_allclose(found.kernel_shap().values, effects, rtol=0, atol=1e-6)


def test_interactions_along_permutations_hold_their_intervals() -> None:
    """Of nested rows few decide about a pair; without a floor such a pair looks certain (15% of these runs held)."""
    x = np.ones(10)

    def f(z: np.ndarray) -> np.ndarray:
        return 5 * z[:, :4].prod(1) + 5 * z[:, 4:7].prod(1) + z[:, 7] * z[:, 8]

    truth = explain(models.blackbox(f), x, plan="endpoint", budget=None).interactions(2, "STII").estimate.values
    held = 0
    for seed in range(20):
        found = explain(models.blackbox(f), x, plan="endpoint", budget=200, seed=seed).interactions(2, "STII")
        low, high = found.interval(0.95).T
        held += bool(((low - 1e-9 <= truth) & (truth <= high + 1e-9)).all())
    assert held >= 14


def test_fits_to_drawn_coalitions_say_that_they_are_biased_and_sums_do_not():
    drawn = explain(network("tanh", 9, 1), np.ones(9), budget=200)
    said = "its bias may be as large as its error"
    assert all(said in found.note for found in (drawn.lime(), drawn.moebius(2), drawn.interactions(2, "FSII")))
    assert all(said not in found.note for found in (drawn.shapley(), drawn.interactions(2), drawn.banzhaf()))
    whole = explain(network("tanh", 4, 1), np.ones(4), plan="exhaustive", budget=None)
    assert all(said not in found.note for found in (whole.lime(), whole.moebius(2), whole.interactions(2, "FSII")))
