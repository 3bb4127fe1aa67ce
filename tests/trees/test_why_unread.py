"""Trees that cannot be summed up exactly are sampled, and the result says why."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler as Scaler

import gralis


def test_categories_of_catboost_are_sampled_and_the_result_says_why() -> None:
    catboost = pytest.importorskip("catboost")
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"age": rng.normal(size=60), "job": rng.choice(["clerk", "nurse"], 60)})
    quiet = {"verbose": 0, "thread_count": 1, "allow_writing_files": False}
    model = catboost.CatBoostRegressor(iterations=4, depth=2, cat_features=["job"], **quiet)
    model.fit(table, table.age + (table.job == "nurse"))
    found = gralis.explain(model, table.iloc[[0]], baseline=table.iloc[1:6])
    assert any("not summed up exactly: this CatBoost model has categorical" in said for said in found.notes)


def test_an_estimator_without_trees_has_no_such_sentence() -> None:
    model = LinearRegression().fit(np.eye(3), [1.0, 2.0, 3.0])
    found = gralis.explain(model, np.ones(3), baseline=np.zeros((1, 3)))
    assert not any("summed up" in said for said in found.notes)


class Exponential(RandomForestRegressor):
    """A forest of logarithms that predicts what they are of."""

    def predict(self, X):
        return np.exp(super().predict(X))


class Doubled(Pipeline):
    """A pipeline that predicts twice what its last step does."""

    def predict(self, X, **params):
        return 2 * super().predict(X, **params)


class StandardScaler(Scaler):
    """Not what scikit-learn means by this name: it mixes columns."""

    def transform(self, X, copy=None):
        return np.cumsum(super().transform(X), axis=1)


def _case(name: str) -> object:
    if name == "forest":
        return Exponential(5, random_state=0)
    if name == "instance":
        forest = RandomForestRegressor(5, random_state=0)
        forest.predict = lambda X: -RandomForestRegressor.predict(forest, X)
        return forest
    forest = RandomForestRegressor(5, random_state=0)
    if name == "pipeline":
        return Doubled([("scaler", Scaler()), ("forest", forest)])
    return Pipeline([("scaler", StandardScaler()), ("forest", forest)])


@pytest.mark.parametrize("name", ["forest", "instance", "pipeline", "step"])
def test_what_somebody_redefined_is_sampled_and_adds_up_to_its_own_prediction(name: str) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    model = _case(name).fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    found = gralis.explain(model, X[0], baseline=X[1:4], progress=False)
    assert found.plan["name"] == "values"
    assert found.f_x == pytest.approx(model.predict(X[:1])[0], abs=1e-12)
    assert found.values.sum() == pytest.approx(found.f_x - model.predict(X[1:4]).mean(), abs=1e-9)
    own = "may mix columns" if name == "step" else "has a predict of its own"
    assert any(own in said for said in found.notes)
