"""Trees that cannot be summed up exactly are sampled, and the result says why."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

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
    from sklearn.linear_model import LinearRegression

    model = LinearRegression().fit(np.eye(3), [1.0, 2.0, 3.0])
    found = gralis.explain(model, np.ones(3), baseline=np.zeros((1, 3)))
    assert not any("summed up" in said for said in found.notes)
