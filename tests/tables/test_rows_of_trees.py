"""Rows of tables for trees: any order and form, the entries that the user wrote, and one sentence for bad ones."""

from __future__ import annotations

from itertools import product
from math import factorial

import lightgbm
import numpy as np
import pandas as pd
import pytest
import xgboost
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, TargetEncoder

import gralis
from gralis import GralisError


def houses(n: int = 160) -> tuple[pd.DataFrame, np.ndarray]:
    """A name with a space, whole numbers, booleans, categories, gaps; and prices."""
    rng = np.random.default_rng(4)
    table = pd.DataFrame(
        {
            "living area": rng.normal(90, 30, n).round(1),
            "rooms": rng.integers(1, 6, n),
            "heating": pd.Categorical(rng.choice(["gas", "oil", "wood"], n)),
            "garden": rng.random(n) < 0.5,
            "age": np.where(rng.random(n) < 0.2, np.nan, rng.normal(40, 10, n).round(1)),
        }
    )
    price = table["living area"] + 20 * table.garden * (table.heating == "wood") - table.age.fillna(60) / 2
    return table, price.to_numpy()


TABLE, PRICE = houses()
CLASSES = np.array(["cheap", "fair", "dear"])[np.digitize(PRICE, np.quantile(PRICE, [0.3, 0.7]))]
ROW, BACKGROUND = TABLE.iloc[[3]], TABLE.iloc[40:60]
LGB = lightgbm.LGBMClassifier(n_estimators=6, verbose=-1).fit(TABLE, CLASSES)
MODELS = {
    "histogram": HistGradientBoostingClassifier(max_iter=5, categorical_features="from_dtype").fit(TABLE, CLASSES),
    "lightgbm": LGB,
    "xgboost": xgboost.XGBClassifier(n_estimators=5, enable_categorical=True).fit(TABLE, CLASSES == "fair"),
}


def explain(model, x=ROW, baseline=BACKGROUND, **options):
    return gralis.explain(model, x, baseline=baseline, **{"target": 1, **options})


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_every_form_of_row_and_background_is_the_same_question(model) -> None:
    truth = explain(model)
    assert truth.plan["name"] == "trees"
    record = ROW.iloc[0].to_dict()
    rows = [ROW.iloc[0], record, dict(reversed(list(record.items()))), ROW[ROW.columns[::-1]], ROW.to_numpy()[0]]
    for x in [*rows, list(record.values())]:
        np.testing.assert_array_equal(explain(model, x).values, truth.values)
    for background in (BACKGROUND[BACKGROUND.columns[::-1]], BACKGROUND.to_dict("records"), BACKGROUND.to_numpy()):
        np.testing.assert_array_equal(explain(model, baseline=background).values, truth.values)
    many = gralis.Explainer(model, baseline=BACKGROUND, target=1)(ROW[ROW.columns[::-1]])
    np.testing.assert_allclose(many.values[0], truth.values, atol=1e-13)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_entries_are_those_of_the_user(model) -> None:
    """Not the float32 numbers that the nodes compare, and not the code of an unknown category."""
    found = explain(model)
    assert found.names == tuple(TABLE.columns)
    assert tuple(found.data) == tuple(ROW.to_numpy()[0])
    assert found.labels[3] == f"garden = {ROW.garden.iloc[0]}"
    missing = explain(model, {**ROW.iloc[0].to_dict(), "heating": None})
    if isinstance(model, xgboost.XGBModel):  # it has no answer for a category that it has not seen
        with pytest.raises(GralisError, match="'gas', 'oil', 'wood' in column 'heating'"):
            explain(model, {**ROW.iloc[0].to_dict(), "heating": "sun"})
    else:
        unknown = explain(model, {**ROW.iloc[0].to_dict(), "heating": "sun"})
        assert "heating = sun" in repr(unknown)
        np.testing.assert_array_equal(unknown.values, missing.values)


def test_a_name_with_a_space_is_known_to_lightgbm_by_another() -> None:
    probability = explain(LGB, target=gralis.targets.probability(1))
    assert probability.f_x == pytest.approx(LGB.predict_proba(ROW)[0, 1])
    assert probability.names == tuple(TABLE.columns)
    with pytest.raises(GralisError, match=r"Got columns without age instead") as error:
        explain(LGB, ROW.drop(columns="age"))
    assert "living" in str(error.value)


def test_a_missing_text_stays_what_it_was() -> None:
    """None in a column of objects is not NaN: encoders tell them apart, and so did the training data."""
    rng = np.random.default_rng(1)
    for gap in (None, np.nan):
        town = rng.choice(np.array(["a", "b", "c", gap], dtype=object), 120)
        table = pd.DataFrame({"town": pd.Series(town, dtype=object), "size": rng.normal(size=120)})
        y = table["size"].to_numpy() + table.town.isin(["a"]) - 3.0 * table.town.isna()
        row, background = table[table.town.isna()].iloc[[0]], table.iloc[:6]
        codes = OrdinalEncoder(encoded_missing_value=-5) if gap is np.nan else OrdinalEncoder()
        for encoder in (codes, TargetEncoder()):
            encoded = make_column_transformer((encoder, ["town"]), remainder="passthrough")
            for last in (RandomForestRegressor(5, random_state=0), LinearRegression()):
                pipeline = make_pipeline(encoded, last).fit(table, y)
                for x in (row, row.iloc[0], row.iloc[0].to_dict(), row.to_numpy()[0]):
                    for past in (background, background.to_dict("records"), background.to_numpy()):
                        found = gralis.explain(pipeline, x, baseline=past)
                        assert found.f_x == pytest.approx(pipeline.predict(row)[0], abs=1e-12)
                        np.testing.assert_allclose(found.shapley().values, by_hand(pipeline, row, background))


def by_hand(pipeline, row, background) -> np.ndarray:
    """Shapley values by the definition, from the pipeline's own predictions."""
    n, v = row.shape[1], {}
    for members in product([False, True], repeat=n):
        mixed = background.copy()
        for k in np.flatnonzero(members):
            mixed[mixed.columns[k]] = pd.Series(
                [row.iloc[0, k]] * len(mixed), index=mixed.index, dtype=row.dtypes.iloc[k]
            )
        v[members] = pipeline.predict(mixed).mean()
    phi = np.zeros(n)
    for members in v:
        for k in np.flatnonzero(~np.array(members)):
            joined = (*members[:k], True, *members[k + 1 :])
            share = factorial(sum(members)) * factorial(n - 1 - sum(members)) / factorial(n)
            phi[k] += share * (v[joined] - v[members])
    return phi


def test_an_infinite_or_huge_number_is_refused() -> None:
    """It has no place on the way from the baseline, and phi would be NaN while it says that it is exact."""
    wide = TABLE.drop(columns=["heating", "garden"])
    forest = HistGradientBoostingRegressor(max_iter=3).fit(wide, PRICE)
    single = RandomForestRegressor(3).fit(wide, PRICE)
    for value, model in ((np.inf, forest), (-np.inf, single), (1e39, single)):
        rows = wide.iloc[:4].astype(float)
        rows.loc[2, "age"] = value
        with pytest.raises(GralisError, match=r"'x' parameter.*finite numbers.*column 'age'.*Got -?inf"):
            gralis.explain(model, rows.iloc[[2]], baseline=wide)
        with pytest.raises(GralisError, match=r"'x' parameter.*column 'age'"):
            gralis.explain_batch(model, rows, baseline=wide)
        with pytest.raises(GralisError, match=r"'baseline' parameter.*column 'age'"):
            gralis.explain(model, wide.iloc[[7]], baseline=rows)
    with pytest.raises(GralisError, match="squared distance overflows"):
        gralis.explain(forest, wide.iloc[[2]].assign(age=1e200), baseline=wide)


def test_a_pipeline_that_cannot_prepare_a_row_is_one_sentence() -> None:
    encoded = make_column_transformer((OrdinalEncoder(), ["heating"]), remainder="passthrough")
    pipeline = make_pipeline(encoded, HistGradientBoostingRegressor(max_iter=3)).fit(TABLE, PRICE)
    with pytest.raises(GralisError, match=r"cannot prepare these rows: Found unknown categories \['sun'\]"):
        gralis.explain(pipeline, {**ROW.iloc[0].to_dict(), "heating": "sun"}, baseline=BACKGROUND)


@pytest.mark.parametrize("background", [BACKGROUND, TABLE.iloc[9]], ids=["frame", "series"])
def test_a_saved_explanation_of_a_table_is_computed_again(background, tmp_path) -> None:
    encoded = make_column_transformer((OrdinalEncoder(), ["heating"]), remainder="passthrough")
    pipeline = make_pipeline(encoded, HistGradientBoostingRegressor(max_iter=3)).fit(TABLE, PRICE)
    for model, target in ((pipeline, None), *((model, 1) for model in MODELS.values())):
        found = explain(model, baseline=background, target=target)
        again = gralis.load(found.save(tmp_path / "row.gralis"))
        assert again.labels == found.labels
        verdict = gralis.replay(again, model)
        assert verdict.same, str(verdict)


def test_a_batch_has_one_target_for_each_row(tmp_path) -> None:
    """Class 0 was explained in place of "all"."""
    with pytest.raises(GralisError, match=r"'target' parameter of explain_many.*one target for each input"):
        gralis.explain_many(LGB, TABLE.iloc[:2], out=tmp_path / "out", baseline=BACKGROUND, target="all")
    line = LinearRegression().fit(TABLE[["rooms"]], np.stack([PRICE, -PRICE], axis=1))
    cases = [(LGB, TABLE.iloc[:2], BACKGROUND), (line, TABLE[["rooms"]].iloc[:2], BACKGROUND[["rooms"]])]
    for model, rows, background in cases:
        for target in ("all", [[0, 1], 1]):
            with pytest.raises(GralisError, match=r"'target' parameter of explain_batch.*one target for all inputs"):
                gralis.explain_batch(model, rows, baseline=background, target=target)


def test_a_row_that_equals_the_baseline_has_the_answer_zero_in_a_batch() -> None:
    found = gralis.explain_batch(LGB, TABLE.iloc[[9, 3]], baseline=TABLE.iloc[[9]], target=1)
    assert not found.values[0].any()
    assert found.values[1].any()
