"""Pipelines that prepare each column by itself: a column of the table is one feature, and the sums stay exact."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import gralis
import slow_trees
from credit_table import credit, score, two_classes
from gralis import Gaussian, GralisError

NUMBERS, NAMES = ["income", "age", "debt", "owner"], ["job", "town"]


def prepared(last, table, target, codes=None):
    """A pipeline that imputes, marks and scales numbers, and codes categories."""
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    codes = codes or make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder(handle_unknown="ignore"))
    before = ColumnTransformer([("categories", codes, NAMES), ("numbers", numbers, NUMBERS)])
    return make_pipeline(before, last).fit(table, target)


@pytest.fixture(scope="module")
def table():
    plain = credit(200)
    return plain.astype({"job": object, "town": object})


@pytest.fixture(scope="module")
def pipeline(table):
    return prepared(RandomForestRegressor(4, max_depth=4, random_state=0), table, score(credit(200)))


def test_the_trees_predict_what_the_pipeline_predicts(pipeline, table):
    trees = gralis.models.trees(pipeline)
    assert trees.n_features == 6
    assert trees.columns.names == tuple(table.columns)
    np.testing.assert_array_equal(trees.predict(table), pipeline.predict(table))
    owners = [trees.columns.names[i] for i in trees.groups]
    assert owners == ["job"] * 7 + ["town"] * 3 + [*NUMBERS, "income", "age"]
    assert trees.jumping.tolist() == [True] * 10 + [False] * 4 + [True] * 2


def test_values_are_those_of_the_definition(pipeline, table):
    explanation = gralis.explain(pipeline, table.iloc[[3]], baseline=table[:3], kernel=Gaussian(0.6))
    ledger = explanation.ledger
    truth = slow_trees.phi(ledger.trees, ledger.x, ledger.baselines, ledger.weights, Gaussian(0.6))
    np.testing.assert_allclose(explanation.values, truth, atol=1e-12)
    assert explanation.exact
    assert explanation.names == tuple(table.columns)
    assert explanation.features.discrete.tolist() == [False] * 4 + [True] * 2
    v = np.zeros(2**6)
    for code in range(2**6):
        rows = table[:3].copy()
        for i, name in enumerate(table.columns):
            if code >> i & 1:
                rows[name] = table[name].iloc[3]
        v[code] = (pipeline.predict(rows) - pipeline.predict(table[:3])).mean()
    np.testing.assert_allclose(explanation.singles().values, v[1 << np.arange(6)], atol=1e-12)
    np.testing.assert_allclose(explanation.shapley().values.sum(), v[-1], atol=1e-12)


def test_the_result_shows_the_entries_of_the_table(pipeline, table, tmp_path):
    explanation = gralis.explain(pipeline, table.iloc[3].to_dict(), baseline=table[:5])
    assert f"town = {table.town[3]}" in repr(explanation)
    loaded = gralis.load(explanation.save(tmp_path / "pipeline.gralis"))
    assert repr(loaded) == repr(explanation)
    np.testing.assert_array_equal(loaded.shapley().values, explanation.shapley().values)


def test_ordinal_codes_and_classes(table):
    codes = make_pipeline(SimpleImputer(strategy="most_frequent"), OrdinalEncoder())
    model = prepared(GradientBoostingClassifier(n_estimators=3), table, two_classes(credit(200)), codes)
    explanation = gralis.explain(model, table.iloc[3], baseline=table[:3])
    assert explanation.f_x == model.decision_function(table.iloc[[3]])[0]
    ledger = explanation.ledger
    truth = slow_trees.phi(ledger.trees, ledger.x, ledger.baselines, ledger.weights, Gaussian(0.75))
    np.testing.assert_allclose(explanation.values, truth, atol=1e-12)


def test_steps_that_mix_columns_are_sampled():
    table = credit(200, categories=False, missing=False)
    mixed = make_pipeline(PCA(3), RandomForestRegressor(3)).fit(table, score(table))
    with pytest.raises(GralisError, match="PCA of this pipeline may mix columns"):
        gralis.models.trees(mixed)
    assert gralis.explain(mixed, table.iloc[0], baseline=table[:4]).plan["name"] == "values"


def test_a_pipeline_needs_rows_as_background(pipeline, table):
    with pytest.raises(GralisError, match="rows of the table that the pipeline takes"):
        gralis.explain(pipeline, table.iloc[0], baseline=0.0)


def test_a_batch_of_rows_knows_each_row(pipeline, table):
    together = gralis.explain_batch(pipeline, table[5:9], baseline=table[:10])
    for place, explanation in enumerate(together):
        alone = gralis.explain(pipeline, table.iloc[[5 + place]], baseline=table[:10])
        assert explanation.labels == alone.labels
        np.testing.assert_allclose(explanation.values, alone.values, atol=1e-13)


def test_a_search_stands_for_its_best_estimator(pipeline, table):
    """GridSearchCV around a pipeline, and as its last step."""
    wanted = {"randomforestregressor__max_depth": [2, 3]}
    search = GridSearchCV(pipeline, wanted, cv=2).fit(table, score(credit(200)))
    last = GridSearchCV(RandomForestRegressor(3, random_state=0), {"max_depth": [2, 3]}, cv=2)
    inside = prepared(last, table, score(credit(200)))
    for model in (search, inside):
        found = gralis.explain(model, table.iloc[[3]], baseline=table[:3], progress=False)
        assert found.plan["name"] == "trees"
        assert found.f_x == pytest.approx(model.predict(table.iloc[[3]])[0], abs=1e-12)
        assert found.names == tuple(table.columns)
    unfitted = GridSearchCV(RandomForestRegressor(3), {"max_depth": [2]})
    with pytest.raises(GralisError, match="Got a GridSearchCV instead"):
        gralis.models.trees(unfitted)
