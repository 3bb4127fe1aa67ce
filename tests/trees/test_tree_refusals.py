"""Estimators that are not plain trees are refused with one sentence each."""

from __future__ import annotations

import json
from dataclasses import replace

import catboost
import lightgbm
import numpy as np
import pandas
import pytest
import xgboost
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression

import gralis
from credit_table import credit, score
from gralis import GralisError, Uniform
from gralis.models import TreeEnsemble, trees
from gralis.trees import exact_many
from gralis.trees.columns import Columns

X = credit(80, categories=False, missing=False)
Y = score(X)


class OtherVersion:
    """A booster whose dump says that another version wrote it."""

    def __init__(self, booster, version):
        self.booster, self.version = booster, version

    def save_raw(self, form):
        model = json.loads(self.booster.save_raw(form))
        return json.dumps({**model, "version": self.version}).encode()

    def dump_model(self):
        return {**self.booster.dump_model(), "version": self.version}


def version(reader, model, number):
    return lambda: reader(OtherVersion(model, number))


def test_refusals():
    from gralis.trees.lightgbm_dump import read_lightgbm
    from gralis.trees.xgboost_json import read_xgboost

    xgb = xgboost.XGBRegressor(n_estimators=2).fit(X, Y)
    lgb = lightgbm.LGBMRegressor(n_estimators=2, verbose=-1).fit(X, Y)
    table = credit(80, missing=False)
    quiet = {"verbose": 0, "allow_writing_files": False, "iterations": 3}
    cat = catboost.CatBoostRegressor(cat_features=["job", "town"], **quiet).fit(table, score(table))
    several = np.stack([Y, -Y], axis=1)
    cases = [
        (lambda: trees(LinearRegression().fit(X, Y)), "a fitted decision tree, forest or gradient boosting"),
        (lambda: trees(RandomForestRegressor()), "fit it first"),
        (lambda: trees(RandomForestRegressor(2).fit(X, several)), "several outputs at once"),
        (lambda: trees(GradientBoostingRegressor(init=LinearRegression(), n_estimators=2).fit(X, Y)), "is not a tree"),
        (lambda: trees(xgboost.XGBRegressor(booster="gblinear", n_estimators=2).fit(X, Y)), "linear booster"),
        (lambda: trees(xgboost.XGBRegressor(n_estimators=2).fit(X, several)), "several targets at once"),
        (version(read_xgboost, xgb.get_booster(), [9, 1, 0]), "version 9.1, which is not known"),
        (lambda: trees(lightgbm.LGBMRegressor(n_estimators=2, verbose=-1, linear_tree=True).fit(X, Y)), "linear trees"),
        (version(read_lightgbm, lgb.booster_, "v9"), "'v9', and known are v3, v4"),
        (lambda: trees(cat), "categorical, text or embedding columns"),
        (
            lambda: trees(catboost.CatBoostRegressor(loss_function="MultiRMSE", **quiet).fit(X, several)),
            "several targets",
        ),
        (
            lambda: trees(catboost.CatBoostClassifier(loss_function="MultiLogloss", **quiet).fit(X, several > 0)),
            "several targets",
        ),
    ]
    for ask, sentence in cases:
        with pytest.raises(GralisError, match=sentence) as caught:
            ask()
        assert str(caught.value).endswith(".")


def test_a_category_that_xgboost_refuses_is_refused():
    """LightGBM and HistGradientBoosting take it for a missing value, and so do their trees."""
    table = pandas.DataFrame({"dose": np.arange(60.0), "kind": pandas.Categorical(list("uvw") * 20)})
    row = pandas.DataFrame({"dose": [1.0], "kind": pandas.Categorical(["z"])})
    strict = xgboost.XGBRegressor(n_estimators=3, enable_categorical=True).fit(table, table["dose"])
    with pytest.raises(xgboost.core.XGBoostError, match="not in the training set"):
        strict.predict(row)
    with pytest.raises(GralisError, match=r"must be one of the categories 'u', 'v', 'w' in column 'kind'\. Got 'z'"):
        gralis.explain(strict, row, baseline=table[:9])
    mild = lightgbm.LGBMRegressor(n_estimators=3, min_child_samples=2, verbose=-1).fit(table, table["dose"])
    np.testing.assert_allclose(trees(mild).predict(row).ravel(), mild.predict(row))


def test_bad_arrays_are_refused():
    nodes = {"left": [-1], "right": [-1], "column": [0], "threshold": [0.0], "default_left": [True], "roots": [0]}
    about = {"columns": Columns.plain(1), "base": [0.0], "divisor": 1.0, "inclusive": True, "single": False}
    with pytest.raises(GralisError, match="not finite"):
        TreeEnsemble.of_nodes({**nodes, "values": [[np.nan]]}, **about)
    with pytest.raises(GralisError, match="each parent before its children"):
        TreeEnsemble.of_nodes({**nodes, "left": [0], "right": [0], "values": [[0.0]]}, **about)
    with pytest.raises(GralisError, match="where each tree begins"):
        TreeEnsemble.of_nodes({**nodes, "roots": [1], "values": [[0.0]]}, **about)
    three = {"left": [1, -1, -1], "right": [9, -1, -1], "column": [0] * 3, "threshold": [0.5] * 3, "roots": [0]}
    three |= {"default_left": [True] * 3, "values": [[0.0]] * 3}
    with pytest.raises(GralisError, match="each parent before its children"):
        TreeEnsemble.of_nodes(three, **about)
    three["right"] = [2, -1, -1]
    with pytest.raises(GralisError, match="lie inside its table"):
        TreeEnsemble.of_nodes({**three, "category_start": [0, -1, -1], "category_stop": [2, -1, -1]}, **about)
    with pytest.raises(GralisError, match=r"numbers 0, 1, \.\.\. without gaps"):
        replace(TreeEnsemble.of_nodes(three, **about), column=np.array([7, 0, 0]))
    ensemble = TreeEnsemble.of_nodes({**nodes, "values": [[1.0]]}, **about)
    with pytest.raises(GralisError, match="without gaps"):
        ensemble.grouped([1])
    with pytest.raises(GralisError, match="rows of 1 columns"):
        ensemble.predict(np.zeros((2, 3)))
    with pytest.raises(GralisError, match="numbers in column 'x0'"):
        ensemble.predict(np.array([["a"]], dtype=object))


def test_infinite_numbers_have_no_place_on_a_ray():
    forest = trees(RandomForestRegressor(2).fit(X, Y))
    infinite = X.iloc[:2].assign(debt=np.inf)
    for rows, background, name in ((infinite, X, "X"), (X.iloc[:2], infinite, "background")):
        with pytest.raises(GralisError, match=f"'{name}' parameter of exact_many.*finite"):
            exact_many(forest, rows, background, Uniform())
