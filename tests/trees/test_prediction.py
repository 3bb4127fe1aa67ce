"""A tree ensemble predicts what its library predicts, on 10 000 rows with missing values and categories."""

from __future__ import annotations

import catboost
import lightgbm
import numpy as np
import pytest
import sklearn.ensemble as forests
import xgboost
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import gralis
from credit_table import credit, score, three_classes, two_classes

N_TRAIN, N_ROWS = 400, 10_000
QUIET = {"verbose": 0, "allow_writing_files": False, "iterations": 12}
HIST = {"max_iter": 12, "min_samples_leaf": 5}
LGB = {"n_estimators": 12, "verbose": -1, "min_child_samples": 5}
XGB = {"n_estimators": 12, "max_depth": 5, "enable_categorical": True}

#: name: (estimator, target, categories, missing values, how the library gives its raw output)
FLOAT64 = {
    "tree": (DecisionTreeRegressor(max_depth=6), score, False, True, "predict"),
    "tree of classes": (DecisionTreeClassifier(max_depth=6), three_classes, False, True, "predict_proba"),
    "forest": (forests.RandomForestRegressor(8), score, False, True, "predict"),
    "forest of classes": (forests.RandomForestClassifier(8), three_classes, False, True, "predict_proba"),
    "extra trees": (forests.ExtraTreesClassifier(8), two_classes, False, True, "predict_proba"),
    "boosting": (forests.GradientBoostingRegressor(n_estimators=8), score, False, False, "predict"),
    "boosting, 2": (forests.GradientBoostingClassifier(n_estimators=8), two_classes, False, False, "decision_function"),
    "boosting, 3": (
        forests.GradientBoostingClassifier(n_estimators=4),
        three_classes,
        False,
        False,
        "decision_function",
    ),
    "histogram": (forests.HistGradientBoostingRegressor(**HIST), score, True, True, "predict"),
    "histogram, 2": (forests.HistGradientBoostingClassifier(**HIST), two_classes, True, True, "decision_function"),
    "histogram, 3": (forests.HistGradientBoostingClassifier(**HIST), three_classes, True, True, "decision_function"),
    "lightgbm": (lightgbm.LGBMRegressor(**LGB), score, True, True, "raw_score"),
    "lightgbm, 3": (lightgbm.LGBMClassifier(**LGB), three_classes, True, True, "raw_score"),
    "lightgbm, zero": (lightgbm.LGBMClassifier(zero_as_missing=True, **LGB), two_classes, True, True, "raw_score"),
    "lightgbm, dart": (lightgbm.LGBMRegressor(boosting_type="dart", **LGB), score, True, True, "raw_score"),
    "catboost, 2": (catboost.CatBoostClassifier(**QUIET), two_classes, False, True, "RawFormulaVal"),
    "catboost, 3": (catboost.CatBoostClassifier(**QUIET), three_classes, False, True, "RawFormulaVal"),
}
ROUNDED = {
    "xgboost, 2": (xgboost.XGBClassifier(**XGB), two_classes, True, True, "output_margin"),
    "xgboost, 3": (xgboost.XGBClassifier(max_cat_to_onehot=1, **XGB), three_classes, True, True, "output_margin"),
    "xgboost": (xgboost.XGBRegressor(**XGB), score, True, True, "output_margin"),
    "xgboost, dart": (xgboost.XGBRegressor(booster="dart", rate_drop=0.4, **XGB), score, True, True, "output_margin"),
    "catboost, nan": (catboost.CatBoostRegressor(nan_mode="Max", **QUIET), score, False, True, "RawFormulaVal"),
    "catboost, leaves": (
        catboost.CatBoostRegressor(grow_policy="Lossguide", **QUIET),
        score,
        False,
        True,
        "RawFormulaVal",
    ),
}


def predictions(case):
    """What the trees predict, and what the library predicts."""
    estimator, target, categories, missing, how = case
    train = credit(N_TRAIN, categories=categories, missing=missing)
    estimator.fit(train, target(train))
    rows = credit(N_ROWS, seed=7, categories=categories, missing=missing)
    if how == "raw_score":
        theirs = estimator.predict(rows, raw_score=True)
    elif how == "output_margin":
        theirs = estimator.predict(rows, output_margin=True)
    elif how == "RawFormulaVal":
        theirs = estimator.predict(rows, prediction_type="RawFormulaVal")
    else:
        theirs = getattr(estimator, how)(rows)
    return gralis.models.trees(estimator).predict(rows), theirs


@pytest.mark.parametrize("name", FLOAT64)
def test_bit_for_bit_where_the_library_adds_in_float64(name):
    ours, theirs = predictions(FLOAT64[name])
    assert ours.shape == theirs.shape
    assert (ours == theirs).all()


@pytest.mark.parametrize("name", ROUNDED)
def test_to_rounding_where_the_library_adds_otherwise(name):
    ours, theirs = predictions(ROUNDED[name])
    assert ours.shape == theirs.shape
    eps = np.finfo(np.float64 if "catboost" in name else np.float32).eps
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=16 * eps * np.abs(theirs).max())


def test_isolation_forest_gives_the_mean_path_length():
    table = credit(N_TRAIN, categories=False, missing=False)
    forest = forests.IsolationForest(n_estimators=10, max_features=0.7, max_samples=64).fit(table)
    ours = gralis.models.trees(forest).predict(table)
    n = 64
    mean = 2 * (np.log(n - 1) + np.euler_gamma) - 2 * (n - 1) / n
    np.testing.assert_allclose(2 ** (-ours / mean), -forest.score_samples(table), rtol=1e-12)


def test_numbers_on_a_threshold_go_as_the_library_sends_them():
    """XGBoost sends x < threshold left in float32, scikit-learn x <= threshold."""
    table = np.arange(8.0)[:, None] / 8 + 0.1
    for estimator, raw in (
        (xgboost.XGBRegressor(n_estimators=3, min_child_weight=0), {"output_margin": True}),
        (DecisionTreeRegressor(), {}),
    ):
        estimator.fit(table, np.arange(8.0) ** 2)
        trees = gralis.models.trees(estimator)
        at = np.unique(trees.threshold[trees.left >= 0])
        near = np.concatenate([at, np.nextafter(at, -9), np.nextafter(at, 9), at.astype(np.float32)])[:, None]
        np.testing.assert_allclose(trees.predict(near), estimator.predict(near, **raw), rtol=1e-6)


def test_trees_beyond_the_best_iteration_do_not_count():
    table = credit(N_TRAIN, categories=False)
    target = score(table)
    estimator = xgboost.XGBRegressor(n_estimators=60, early_stopping_rounds=2, learning_rate=0.9)
    estimator.fit(table[:200], target[:200], eval_set=[(table[200:], target[200:])], verbose=False)
    trees = gralis.models.trees(estimator)
    assert trees.n_trees == estimator.best_iteration + 1 < 60
    theirs = estimator.predict(table, output_margin=True)
    np.testing.assert_allclose(trees.predict(table), theirs, atol=1e-5)


def test_a_number_may_stand_for_missing():
    table = credit(N_TRAIN, categories=False, missing=False)
    table.loc[::3, "income"] = -999.0
    estimator = xgboost.XGBRegressor(n_estimators=5, missing=-999.0).fit(table, score(table))
    ours = gralis.models.trees(estimator).predict(table)
    np.testing.assert_allclose(ours, estimator.predict(table, output_margin=True), atol=1e-5)


@pytest.mark.parametrize("objective", ["binary:logistic", "binary:logitraw", "binary:hinge"])
@pytest.mark.parametrize("base_score", [None, 0.3])
def test_every_objective_of_two_classes_has_its_own_margin(objective, base_score):
    """The base score is written as a probability or as a margin, which depends on the objective."""
    table = credit(N_TRAIN, categories=False)
    estimator = xgboost.XGBClassifier(n_estimators=3, objective=objective, base_score=base_score)
    estimator.fit(table, score(table) > 1.0)
    ours = gralis.models.trees(estimator).predict(table)
    np.testing.assert_allclose(ours, estimator.predict(table, output_margin=True), atol=1e-5)


def test_forest_of_lightgbm_is_a_mean():
    table = credit(N_TRAIN)
    forest = lightgbm.LGBMRegressor(boosting_type="rf", bagging_freq=1, bagging_fraction=0.5, **LGB)
    forest.fit(table, score(table))
    np.testing.assert_allclose(gralis.models.trees(forest).predict(table), forest.predict(table), rtol=1e-12)
