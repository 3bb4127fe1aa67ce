"""Shapley values, other indices and pairs of trees against the whole game, shap and shapiq."""

from __future__ import annotations

import warnings
from math import comb

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import gralis
import slow_trees
from credit_table import credit, score
from gralis.explainers.indices import BANZHAF, SII, k_sii, stii
from gralis.explainers.transform import coalitions, index_values, moebius
from gralis.trees import exact_many, indices, pairs_of_row, singles_of_rows, sum_of_values

SHARES = np.array([0.3, 0.6, 0.1])


def case(seed):
    rng = np.random.default_rng(seed)
    trees = slow_trees.random_ensemble(rng, n_trees=3, depth=1 + seed % 4, categories=seed % 3, n_outputs=1 + seed % 2)
    trees = trees.grouped([0, 1, 1, 2]) if seed % 4 == 0 else trees
    return trees, *(slow_trees.random_rows(rng, trees, 3, 0.12) for _ in range(2))


@pytest.mark.parametrize("seed", range(12))
def test_indices_of_the_whole_game(seed):
    trees, rows, baselines = case(seed)
    many = singles_of_rows(trees, rows, baselines, baseline_weights=SHARES)  # by tables over the background
    n = trees.n_features
    for number, x in enumerate(rows):
        output = seed % trees.n_outputs
        v = slow_trees.game(trees, x, baselines, SHARES, output)
        m = moebius(v)
        truth = index_values(m, SII, coalitions(n, 1))
        np.testing.assert_allclose(many[number, output], truth, atol=1e-13)
        for index in (SII, BANZHAF, stii(2), stii(3), k_sii(2)):
            one = singles_of_rows(trees, x[None], baselines, index.weight, SHARES)[0, output]
            two = pairs_of_row(trees, x, baselines, index.weight, SHARES)[output]
            found = [one[c[0]] if len(c) == 1 else two[c] for c in coalitions(n, 2)]
            np.testing.assert_allclose(found, index_values(m, index, coalitions(n, 2)), atol=1e-13)
        sizes = [bin(code).count("1") for code in range(2**n)]
        total = sum(v[code] / (t * comb(n, t)) for code, t in enumerate(sizes) if t)
        np.testing.assert_allclose(sum_of_values(trees, x, baselines, SHARES)[output], total, atol=1e-13)


def test_tables_and_pairs_of_rows_give_the_same(monkeypatch):
    trees, rows, baselines = case(3)
    by_tables = singles_of_rows(trees, rows, baselines)
    monkeypatch.setattr(indices, "_MOST_BITS", -1)
    np.testing.assert_allclose(singles_of_rows(trees, rows, baselines), by_tables, atol=1e-14)


@pytest.fixture(scope="module")
def forest():
    table = credit(300, categories=False, missing=False)
    return table, RandomForestRegressor(20, max_depth=7, random_state=0).fit(table, score(table))


def test_shapley_values_are_those_of_shap(forest):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # shap uses what matplotlib is about to remove
        import shap
    table, model = forest
    theirs = shap.TreeExplainer(model, table[:30], feature_perturbation="interventional").shap_values(table[30:60])
    ours = exact_many(gralis.models.trees(model), table[30:60], table[:30], gralis.Uniform()).shapley[:, 0]
    np.testing.assert_allclose(ours, theirs, atol=2e-5 * np.abs(theirs).max())


def test_shapley_values_and_pairs_are_those_of_shapiq(forest):
    table, _ = forest
    model = RandomForestRegressor(20, max_depth=7, random_state=0).fit(table.to_numpy(), score(table))
    data, x = table.to_numpy(), table.to_numpy()[40]
    explanation = gralis.explain(model, data[40], baseline=data[:5])

    def value(masks):
        return np.array([model.predict(np.where(mask, x, data[:5])).mean() for mask in masks])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import shapiq
    exactly = shapiq.ExactComputer(value, 4)
    for index, order in (("SV", 1), ("SII", 2), ("BV", 1)):
        theirs = exactly(index, order)
        if order == 1:
            ours = (explanation.shapley() if index == "SV" else explanation.banzhaf()).values
            np.testing.assert_allclose(ours, [theirs[(i,)] for i in range(4)], atol=1e-10)
        else:
            ours = explanation.interactions(order=2, index="SII")
            for pair in coalitions(4, 2)[4:]:
                np.testing.assert_allclose(ours[pair], theirs[pair], atol=1e-10)
