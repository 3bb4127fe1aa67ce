"""Estimators as they are: rows in any form, true baselines and values, classes by name, sentences for bad input."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
import torch

import gralis
from gralis import GralisError, explain
from gralis.models.estimator_model import EstimatorModel, is_estimator

pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")
from sklearn.compose import make_column_transformer  # noqa: E402
from sklearn.ensemble import GradientBoostingClassifier, RandomForestClassifier  # noqa: E402
from sklearn.linear_model import LinearRegression, LogisticRegression  # noqa: E402
from sklearn.neighbors import KNeighborsRegressor  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import OneHotEncoder, StandardScaler  # noqa: E402
from sklearn.svm import SVC, SVR  # noqa: E402


def people(n: int = 80) -> tuple[pd.DataFrame, pd.Series]:
    """Ages, cities as text, whether married, and jobs as categories; the class depends on all of them."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 70, n),
            "city": rng.choice(["Rome", "Oslo", "Lima"], n),
            "married": rng.random(n) < 0.5,
            "income": rng.normal(3, 1, n).round(3),
            "job": pd.Categorical(rng.choice(["cook", "clerk"], n), categories=["clerk", "cook", "pilot"]),
        }
    )
    score = frame["age"] / 50 + 2 * (frame["city"] == "Rome") * frame["married"] + frame["income"] / 3
    return frame, (score > score.median()).map({True: "good", False: "bad"})


FRAME, LABELS = people()
ENCODER = make_column_transformer(
    (StandardScaler(), ["age", "income"]),
    (OneHotEncoder(handle_unknown="ignore"), ["city", "job"]),
    remainder="passthrough",
)
PIPELINE = make_pipeline(ENCODER, LogisticRegression()).fit(FRAME, LABELS)
BACKGROUND = FRAME.iloc[40:52]


def shapley(value, n: int) -> np.ndarray:
    """Shapley values of a game by the definition."""
    phi = np.zeros(n)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        for size in range(n):
            for members in combinations(others, size):
                phi[i] += (value({*members, i}) - value(set(members))) / (n * comb(n - 1, size))
    return phi


def mixed(row: pd.DataFrame, background: pd.DataFrame, members: set[int]) -> pd.DataFrame:
    """The background with these columns from the row, written without the library."""
    frame = background.copy()
    for k in members:
        frame[frame.columns[k]] = pd.Series([row.iloc[0, k]] * len(frame), index=frame.index).astype(
            frame.dtypes.iloc[k]
        )
    return frame


@pytest.fixture(scope="module")
def found() -> gralis.Explanation:
    return explain(PIPELINE, FRAME.iloc[[3]], baseline=BACKGROUND, target="good", progress=False)


def test_a_pipeline_of_text_categories_and_booleans(found) -> None:
    def value(members: set[int]) -> float:
        return float(PIPELINE.predict_proba(mixed(FRAME.iloc[[3]], BACKGROUND, members))[:, 1].mean())

    assert found.values == pytest.approx(shapley(value, 5), abs=1e-12)
    assert found.exact
    assert found.f_x == pytest.approx(PIPELINE.predict_proba(FRAME.iloc[[3]])[0, 1])
    assert found.f_baselines == pytest.approx(PIPELINE.predict_proba(BACKGROUND)[:, 1])


def test_the_explanation_knows_its_rows(found) -> None:
    row = FRAME.iloc[3]
    assert found.data.tolist() == row.tolist()
    assert found.labels[0] == f"age = {row['age']}"
    assert found.labels[1] == f"city = {row['city']}"
    text = repr(found)
    assert f"income = {row['income']:.4g}" in text
    assert "compared with 12 rows of the table" in text
    assert "of class 'good'" in text
    assert "Shapley values" in text
    assert "Gaussian" not in text
    coding = found.table
    again = coding.decode(found.endpoints.baselines[0])
    pd.testing.assert_frame_equal(again, BACKGROUND.reset_index(drop=True))


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")  # shap's own, when it is imported
def test_shap_gets_the_entries(found) -> None:
    assert found.to_shap().data.tolist() == FRAME.iloc[3].tolist()


@pytest.mark.parametrize(
    "given",
    [
        lambda: FRAME.iloc[3],
        lambda: FRAME.iloc[3].to_dict(),
        lambda: FRAME.iloc[[3]][["job", "income", "married", "city", "age"]],
        lambda: FRAME.iloc[3].to_numpy(),
    ],
    ids=["series", "dict", "other order", "array"],
)
def test_a_row_in_any_form(found, given) -> None:
    again = explain(PIPELINE, given(), baseline=BACKGROUND, target=1, progress=False)
    assert again.values == pytest.approx(found.values, abs=1e-14)
    assert list(again.names) == list(FRAME.columns)
    assert again.data.tolist() == found.data.tolist()


def test_targets_by_name(found) -> None:
    both = explain(PIPELINE, FRAME.iloc[[3]], baseline=BACKGROUND, target="all", progress=False)
    assert both.labels == ("bad", "good")
    assert both["good"].values == pytest.approx(found.values, abs=1e-14)
    predicted = explain(PIPELINE, FRAME.iloc[[3]], baseline=BACKGROUND, target="predicted", progress=False)
    assert predicted.provenance["class"] == PIPELINE.predict(FRAME.iloc[[3]])[0]
    listed = explain(PIPELINE, FRAME.iloc[[3]], baseline=BACKGROUND, target=["good", 0], progress=False)
    assert listed[0].values == pytest.approx(found.values, abs=1e-14)


def test_predicted_is_the_largest_output_of_a_network_too() -> None:
    torch.manual_seed(0)
    net, x = torch.nn.Linear(3, 4).double().eval(), torch.ones(3, dtype=torch.float64)
    found = explain(net, x, target="predicted")
    assert found.provenance["target"] == f"output[{int(net(x).argmax())}]"


def test_a_function_as_target_is_applied_to_every_row() -> None:
    square = lambda outputs: outputs[:, 1] ** 2  # noqa: E731

    def value(members: set[int]) -> float:
        return float((PIPELINE.predict_proba(mixed(FRAME.iloc[[3]], BACKGROUND, members))[:, 1] ** 2).mean())

    found = explain(PIPELINE, FRAME.iloc[[3]], baseline=BACKGROUND, target=square, progress=False)
    assert found.values == pytest.approx(shapley(value, 5), abs=1e-12)


def test_readouts_of_probabilities() -> None:
    options = {"baseline": BACKGROUND, "progress": False}
    plain = explain(PIPELINE, FRAME.iloc[[3]], target=1, **options)
    again = explain(PIPELINE, FRAME.iloc[[3]], target=gralis.targets.probability(1), **options)
    assert again.values == pytest.approx(plain.values, abs=1e-12)
    odds = explain(PIPELINE, FRAME.iloc[[3]], target=gralis.targets.log_odds(1), **options)
    assert odds.f_x == pytest.approx(PIPELINE.decision_function(FRAME.iloc[[3]])[0], abs=1e-9)


def test_missing_values_are_what_the_estimator_sees() -> None:
    lightgbm = pytest.importorskip("lightgbm")
    rng = np.random.default_rng(1)
    rows = pd.DataFrame({"a": rng.normal(size=200), "b": rng.normal(size=200)})
    rows.loc[::3, "a"] = np.nan
    y = np.where(rows["a"].isna(), 5.0, rows["a"]) + rows["b"]
    model = lightgbm.LGBMRegressor(n_estimators=10, min_child_samples=2, verbose=-1).fit(rows, y)
    box = gralis.models.estimator(model)
    found = explain(box, rows.iloc[[0]], baseline=rows.iloc[1:9], plan="values", progress=False)

    def value(members: set[int]) -> float:
        return float(model.predict(mixed(rows.iloc[[0]], rows.iloc[1:9], members)).mean())

    assert found.values == pytest.approx(shapley(value, 2), abs=1e-12)
    assert found.labels[0] == "a = missing"
    assert found.data[0] is None


@pytest.mark.parametrize("package", ["xgboost", "lightgbm", "catboost"])
def test_boosters_and_their_wrappers(package) -> None:
    module = pytest.importorskip(package)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 4))
    y = (X[:, 0] + X[:, 1] * X[:, 2] > 0).astype(int)
    kinds = {
        "xgboost": lambda: module.XGBClassifier(n_estimators=5),
        "lightgbm": lambda: module.LGBMClassifier(n_estimators=5, verbose=-1),
        "catboost": lambda: module.CatBoostClassifier(n_estimators=5, verbose=0, allow_writing_files=False),
    }
    model = kinds[package]().fit(X, y)
    names = list("abcd")
    named = kinds[package]().fit(pd.DataFrame(X, columns=names), y)
    options = {"baseline": X[:10], "plan": "values", "target": gralis.targets.probability(1), "progress": False}
    found = explain(model, X[11], **options)
    again = explain(named, X[11], **options)
    assert list(again.names) == names
    assert again.values == pytest.approx(found.values, abs=1e-9)
    assert found.f_x == pytest.approx(model.predict_proba(X[11:12])[0, 1], abs=1e-6)
    assert found.delta == pytest.approx(found.values.sum(), abs=1e-9)


def test_the_number_of_a_class_is_its_margin_under_every_plan() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    for y in (X[:, 0] + X[:, 1] > 0, np.digitize(X[:, 0] * X[:, 1], [-0.3, 0.3])):
        model = GradientBoostingClassifier(n_estimators=4, random_state=0).fit(X, y)
        options = {"baseline": X[:10], "progress": False}
        for k in range(len(model.classes_)):
            trees, values = (explain(model, X[20], target=k, plan=plan, **options) for plan in ("shared", "values"))
            assert trees.plan["name"] == "trees"
            assert values.f_x == pytest.approx(trees.f_x, abs=1e-12)
            assert values.values == pytest.approx(trees.shapley().values, abs=1e-10)
        chosen = gralis.models.estimator(model, method="predict_proba")
        found = explain(chosen, X[20], target=0, plan="values", **options)
        assert found.f_x == pytest.approx(model.predict_proba(X[20:21])[0, 0])


@pytest.mark.parametrize("package", ["xgboost", "lightgbm"])
def test_native_boosters(package) -> None:
    module = pytest.importorskip(package)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    if package == "xgboost":
        booster = module.train({"objective": "reg:squarederror"}, module.DMatrix(X, X[:, 0]), 5)
        expected = booster.predict(module.DMatrix(X[:1]))[0]
    else:
        booster = module.train({"verbose": -1}, module.Dataset(X, X[:, 0]), 5)
        expected = booster.predict(X[:1])[0]
    found = explain(gralis.models.estimator(booster), X[0], baseline=X[1:9], plan="values", progress=False)
    assert found.f_x == pytest.approx(expected, abs=1e-6)


def test_decision_functions_votes_and_regressions() -> None:
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    machine = SVC().fit(X, y)
    found = explain(machine, X[0], baseline=X[:5], target="yes", progress=False)
    assert found.f_x == pytest.approx(machine.decision_function(X[:1])[0])
    with pytest.raises(GralisError, match="'yes', whose decision function"):
        explain(machine, X[0], baseline=X[:5], target="no", progress=False)

    class Voter:
        classes_ = np.array(["no", "yes"])

        def predict(self, rows):
            return np.where(rows[:, 0] > 0, "yes", "no")

    votes = explain(Voter(), X[0], baseline=X[:20], target="yes", progress=False)
    assert votes.f_baseline == pytest.approx((X[:20, 0] > 0).mean())
    neighbours = KNeighborsRegressor().fit(X, X[:, 0])
    found = explain(neighbours, X[0], baseline=X[:5], progress=False)
    assert found.values.sum() == pytest.approx(found.delta)
    assert found.names[0] == "x[0]"


def test_an_estimator_is_told_apart_from_networks_and_functions() -> None:
    assert is_estimator(PIPELINE)
    assert not any(map(is_estimator, (torch.nn.Linear(1, 1), len, LinearRegression, 3.0, EstimatorModel)))


def test_the_fingerprint_sees_what_was_fitted() -> None:
    X = np.random.default_rng(0).normal(size=(40, 3))
    prints = {
        gralis.models.estimator(model).fingerprint()
        for model in (
            RandomForestClassifier(3, random_state=0).fit(X, X[:, 0] > 0),
            RandomForestClassifier(3, random_state=1).fit(X, X[:, 0] > 0),
            RandomForestClassifier(3, random_state=0).fit(X, X[:, 1] > 0),
        )
    }
    assert len(prints) == 3
    twice = [RandomForestClassifier(3, random_state=0).fit(X, X[:, 0] > 0) for _ in range(2)]
    assert len({gralis.models.estimator(model).fingerprint() for model in twice}) == 1


def test_a_saved_explanation_is_replayed_with_the_estimator(found, tmp_path) -> None:
    again = gralis.load(found.save(tmp_path / "row.gralis"))
    assert list(again.labels) == list(found.labels)
    assert repr(again) == repr(found)
    assert gralis.replay(again, PIPELINE).same
    other = make_pipeline(ENCODER, LogisticRegression(C=0.1)).fit(FRAME, LABELS)
    assert "model" in gralis.replay(again, other).hashes


def test_the_report_says_what_was_compared(found, tmp_path) -> None:
    page = found.report(tmp_path / "row.html").read_text(encoding="utf-8")
    assert "12 rows of the table" in page
    assert "constant 0.0" not in page
    age = BACKGROUND["age"].mean()
    assert f"{FRAME['age'].iloc[3]}, mean of the background {age:.1f}" in page
    share = (BACKGROUND["city"] == FRAME["city"].iloc[3]).mean()
    assert f"as in {100 * share:.0f} % of the background" in page


def test_batch_many_compare_and_cost(tmp_path) -> None:
    options = {"baseline": BACKGROUND, "target": 1, "progress": False}
    rows = FRAME.iloc[:4]
    alone = [explain(PIPELINE, rows.iloc[[k]], **options).values for k in range(4)]
    batch = gralis.explain_batch(PIPELINE, rows, **options)
    assert batch.values == pytest.approx(np.array(alone), abs=1e-12)
    assert batch[2].data.tolist() == rows.iloc[2].tolist()
    many = gralis.explain_many(PIPELINE, rows, out=tmp_path / "out", ledgers=True, **options)
    assert not many.failures
    assert many.explanation("2").values == pytest.approx(alone[2], abs=1e-12)
    estimate = gralis.cost(PIPELINE, rows.iloc[[0]], **options)
    assert estimate.n_gradients == 0
    assert estimate.n_forwards > 0
    other = make_pipeline(ENCODER, LogisticRegression(C=0.1)).fit(FRAME, LABELS)
    change = gralis.compare(PIPELINE, other, rows.iloc[[0]], **options).change
    direct = explain(other, rows.iloc[[0]], **options).values - alone[0]
    assert change.values == pytest.approx(direct, abs=1e-12)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_shap_agrees_on_numbers() -> None:
    pytest.importorskip("shap")
    from shap import ExactExplainer
    from shap.maskers import Independent

    X = np.random.default_rng(0).normal(size=(100, 5))
    machine = SVR().fit(X, X[:, 0] * X[:, 1] + X[:, 2])
    theirs = ExactExplainer(machine.predict, Independent(X[:20], max_samples=20))(X[:1]).values[0]
    ours = explain(machine, X[0], baseline=X[:20], progress=False)
    assert ours.exact
    assert ours.values == pytest.approx(theirs, abs=1e-10)


def test_a_network_takes_a_background_frame() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [0.0, 1.0, 5.0]})
    found = explain(lambda z: z[:, 0] * z[:, 1], frame.iloc[[0]], baseline=frame.iloc[1:], kernel=gralis.Uniform())
    assert found.f_baselines.tolist() == [2.0, 20.0]
    assert found.labels[0] == "a = 1"


BAD = {
    "other columns": (
        lambda: explain(
            PIPELINE, FRAME.iloc[[0]].drop(columns="age").assign(height=1.8), baseline=BACKGROUND, target=0
        ),
        "'x'.*5 columns of the background.*without age and with height",
    ),
    "too few numbers": (
        lambda: explain(PIPELINE, np.ones(3), baseline=BACKGROUND, target=0),
        "'x'.*5 columns of the background.*Got 3 columns",
    ),
    "background of other columns": (
        lambda: explain(PIPELINE, FRAME.iloc[[0]], baseline=BACKGROUND.drop(columns="age"), target=0),
        "'baseline'.*columns of the estimator.*without age",
    ),
    "wrong type": (
        lambda: explain(PIPELINE, FRAME.iloc[[0]].assign(age="old"), baseline=BACKGROUND, target=0),
        "in column 'age' a number.*'old'",
    ),
    "unknown category": (
        lambda: explain(PIPELINE, FRAME.iloc[[0]].assign(job="baker"), baseline=BACKGROUND, target=0),
        "column 'job'.*'baker'",
    ),
    "unknown class": (
        lambda: explain(PIPELINE, FRAME.iloc[[0]], baseline=BACKGROUND, target="ugly"),
        r"'target'.*name of a class \('bad', 'good'\).*'ugly'",
    ),
    "class of an unfitted estimator": (
        lambda: explain(LogisticRegression(), np.ones(2), baseline=0.0, target="good"),
        r"'target'.*names no classes \(is it fitted\?\).*'good'",
    ),
    "class of a network": (lambda: explain(torch.nn.Linear(2, 2), torch.ones(2), target="good"), "no names of classes"),
    "no class": (
        lambda: explain(PIPELINE, FRAME.iloc[[0]], baseline=BACKGROUND),
        r"2 classes; choose one.*'bad', 'good'",
    ),
    "empty background": (
        lambda: explain(PIPELINE, FRAME.iloc[[0]], baseline=BACKGROUND.iloc[:0], target=0),
        "'baseline'.*at least one row",
    ),
    "a number for text": (lambda: explain(PIPELINE, FRAME.iloc[[0]], target=0), "'baseline'.*rows to compare with"),
    "two rows": (lambda: explain(PIPELINE, FRAME.iloc[:2], baseline=BACKGROUND, target=0), "'x'.*2 rows"),
    "no method": (lambda: gralis.models.estimator(object()), "'model'.*predict_proba"),
    "other method": (lambda: gralis.models.estimator(PIPELINE, method="score"), "'method'.*'auto'"),
    "rays": (
        lambda: explain(PIPELINE, FRAME.iloc[[0]], baseline=BACKGROUND, target=0, plan="permutation", budget=4000),
        "has no gradient",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(case) -> None:
    call, pattern = BAD[case]
    with pytest.raises(GralisError, match=pattern) as error:
        call()
    assert len(str(error.value)) < 400
