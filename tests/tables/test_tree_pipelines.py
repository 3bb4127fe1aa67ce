"""Pipelines of preprocessing and trees: phi by enumeration over the columns of the table, where they act by column."""

from __future__ import annotations

from itertools import combinations
from math import comb, factorial

import numpy as np
import pytest

import gralis
from gralis import GralisError, Uniform, explain

pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")
from sklearn.compose import make_column_transformer  # noqa: E402
from sklearn.decomposition import PCA  # noqa: E402
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor  # noqa: E402
from sklearn.impute import SimpleImputer  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler  # noqa: E402

RNG = np.random.default_rng(0)
N = 150
FRAME = pd.DataFrame(
    {
        "town": RNG.choice(["Lima", "Oslo", "Rome"], N),
        "grade": RNG.choice(["low", "mid", "high"], N),
        "job": RNG.choice(["cook", "clerk"], N),
    }
)
SCORE = (
    2.0 * (FRAME["town"] == "Rome") * (FRAME["grade"] == "high")
    + (FRAME["job"] == "cook")
    + 0.5 * (FRAME["town"] == "Oslo")
)
ENCODER = make_column_transformer(
    (OneHotEncoder(), ["town", "job"]), (OrdinalEncoder(categories=[["low", "mid", "high"]]), ["grade"])
)
PIPELINE = make_pipeline(ENCODER, RandomForestRegressor(6, max_depth=4, random_state=0)).fit(FRAME, SCORE)
KEPT = ["town", "grade", "job"]


def phi_of_jumps(value, n: int) -> np.ndarray:
    """phi under the uniform kernel of a game on n jumping features, over all coalitions and orders."""
    phi = np.zeros(n)
    for size in range(1, n + 1):
        for members in combinations(range(n), size):
            outer = factorial(size - 1) * factorial(n - size) / factorial(n)
            for i in members:
                for k in range(size):
                    for before in combinations([j for j in members if j != i], k):
                        inner = factorial(k) * factorial(size - k - 1) / factorial(size)
                        phi[i] += outer * inner * (value({*before, i}) - value(set(before)))
    return phi


def shapley(value, n: int) -> np.ndarray:
    phi = np.zeros(n)
    for i in range(n):
        for size in range(n):
            for members in combinations([j for j in range(n) if j != i], size):
                phi[i] += (value({*members, i}) - value(set(members))) / (n * comb(n - 1, size))
    return phi


def game(row: pd.DataFrame, background: pd.DataFrame, columns: list[str]):
    def value(members: set[int]) -> float:
        mixed = background.copy()
        for k in members:
            mixed[columns[k]] = row[columns[k]].iloc[0]
        return float(PIPELINE.predict(mixed).mean())

    return value


def test_encoded_columns_cross_together() -> None:
    row, background = FRAME.iloc[[3]], FRAME.iloc[20:29]
    found = explain(PIPELINE, row, baseline=background, kernel=Uniform(), progress=False)
    value = game(row, background, KEPT)
    assert found.plan["name"] == "trees"
    assert found.exact
    assert list(found.names) == KEPT
    order = [KEPT.index(name) for name in found.names]
    assert found.values == pytest.approx(phi_of_jumps(value, 3)[order], abs=1e-9)
    assert found.shapley().values == pytest.approx(shapley(value, 3)[order], abs=1e-9)
    assert found.f_x == pytest.approx(PIPELINE.predict(row)[0])
    assert found.labels[0] == f"{found.names[0]} = {row[found.names[0]].iloc[0]}"
    assert "compared with 9 rows of the table" in repr(found)


def test_a_scaler_and_an_imputer_change_nothing_but_the_scale() -> None:
    numbers = pd.DataFrame(RNG.normal(size=(N, 3)) * [1, 100, 0.01], columns=list("abc"))
    y = numbers["a"] * numbers["b"] + 100 * numbers["c"]
    scaled = make_pipeline(StandardScaler(), SimpleImputer(), RandomForestRegressor(5, max_depth=4, random_state=0))
    found = explain(scaled.fit(numbers, y), numbers.iloc[[0]], baseline=numbers.iloc[1:6], kernel=Uniform())
    assert found.plan["name"] == "trees"
    forest, scaler = scaled[-1], scaled[0]
    array = scaler.transform(numbers)
    direct = explain(forest, array[0], baseline=array[1:6], kernel=Uniform())
    assert found.values == pytest.approx(direct.values, abs=1e-12)
    assert found.data == pytest.approx(numbers.iloc[0].to_numpy())
    with_gap = numbers.iloc[[0]].assign(b=np.nan)
    assert explain(scaled, with_gap, baseline=numbers.iloc[1:6]).labels[1] == "b = missing"


def test_classes_groups_batches_and_files(tmp_path) -> None:
    model = make_pipeline(ENCODER, GradientBoostingClassifier(n_estimators=4, random_state=0))
    model.fit(FRAME, np.where(SCORE > 1, "yes", "no"))
    options = {"baseline": FRAME.iloc[20:29], "target": "yes", "progress": False}
    found = explain(model, FRAME.iloc[[3]], **options)
    assert found.f_x == pytest.approx(model.decision_function(FRAME.iloc[[3]])[0])
    rows = gralis.Explainer(model, **options)(FRAME.iloc[:5])
    assert rows[3].values == pytest.approx(found.values, abs=1e-13)
    assert rows.data[3].tolist() == list(found.data)
    together = gralis.features.columns(list(FRAME.columns), groups={"place": ["town", "grade"]})
    grouped = explain(model, FRAME.iloc[[3]], features=together, **options)
    assert set(grouped.names) == {"place", "job"}
    again = gralis.load(found.save(tmp_path / "p.gralis"))
    assert repr(again) == repr(found)
    found.report(tmp_path / "p.html")
    with pytest.raises(GralisError, match=r"'x'.*2 rows"):
        explain(model, FRAME.iloc[:2], **options)


def test_what_mixes_columns_is_sampled() -> None:
    numbers = pd.DataFrame(RNG.normal(size=(N, 3)), columns=list("abc"))
    for step in (PCA(2), MinMaxScaler(clip=True)):
        mixing = make_pipeline(step, RandomForestRegressor(3, max_depth=3)).fit(numbers, numbers["a"])
        found = explain(mixing, numbers.iloc[[0]], baseline=numbers.iloc[1:6], progress=False)
        assert found.plan["name"] == "values"


def test_a_dropped_column_is_a_feature_that_contributes_nothing(tmp_path) -> None:
    """A ColumnTransformer drops what is left over unless it is told otherwise."""
    wide = FRAME.assign(number=np.arange(float(N)), **{"customer": [f"c{k}" for k in range(N)]})[
        ["customer", "town", "number", "grade", "job"]
    ]
    encoder = make_column_transformer(
        (OneHotEncoder(), ["town", "job"]), (OrdinalEncoder(), ["grade"]), ("drop", ["number"])
    )
    pipeline = make_pipeline(encoder, RandomForestRegressor(6, max_depth=4, random_state=0)).fit(wide, SCORE)
    row, background = wide.iloc[[3]], wide.iloc[20:29]
    found = explain(pipeline, row, baseline=background, progress=False)
    without = FRAME.loc[:, KEPT]
    kept = make_column_transformer((OneHotEncoder(), ["town", "job"]), (OrdinalEncoder(), ["grade"]))
    same = make_pipeline(kept, RandomForestRegressor(6, max_depth=4, random_state=0)).fit(without, SCORE)
    truth = explain(same, without.iloc[[3]], baseline=without.iloc[20:29], progress=False)
    assert found.plan["name"] == "trees"
    assert found.exact
    for ours, theirs in ((found, truth), (found.shapley(), truth.shapley())):
        assert ours.values == pytest.approx([0.0, theirs.values[0], 0.0, *theirs.values[1:]], abs=1e-12)
    assert found.labels[0] == "customer = c3"
    again = gralis.load(found.save(tmp_path / "wide.gralis"))
    assert again.with_kernel(Uniform()).values.tolist() == found.with_kernel(Uniform()).values.tolist()
    assert gralis.replay(again, pipeline).same
