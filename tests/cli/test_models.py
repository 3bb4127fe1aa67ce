"""--model and --weights: every way to name a model, and no code from a file unless it was allowed."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path

import joblib
import pandas
import pytest
import torch

from cli.workshop import network
from gralis.cli.model import load_model, load_weights
from gralis.errors import GralisError

POINTS = torch.linspace(-1, 1, 2 * 3 * 24 * 24).reshape(2, 3, 24, 24)


class Evil:
    """Unpickling this makes a folder, in the working folder."""

    def __reduce__(self):
        return os.mkdir, ("owned",)


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    """dynamic.pt2 and fixed.pt2."""
    folder = tmp_path_factory.mktemp("programs")
    free = ({0: torch.export.Dim("batch")},)
    torch.export.save(torch.export.export(network(), (POINTS,), dynamic_shapes=free), folder / "dynamic.pt2")
    torch.export.save(torch.export.export(network(), (POINTS[:1],)), folder / "fixed.pt2")
    return folder


def agrees(model) -> bool:
    with torch.no_grad():
        return torch.allclose(model(POINTS), network()(POINTS), atol=1e-6)


# --- code ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["net.py:build", "net:build", "./net.py:build"])
def test_a_factory_in_a_file_or_a_module_makes_the_model(folder, name) -> None:
    with torch.random.fork_rng():
        model = load_model(name)
    assert agrees(model)
    assert not model.training


def test_a_model_itself_will_do(folder) -> None:
    Path("made.py").write_text("import torch\nnet = torch.nn.Linear(2, 1)\nclass Holder:\n    inner = net\n")
    assert isinstance(load_model("made.py:net"), torch.nn.Linear)
    assert isinstance(load_model("made.py:Holder.inner"), torch.nn.Linear)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("net", "must be pkg.module:factory"),
        (":build", "must be pkg.module:factory"),
        ("missing.py:build", "there is no file missing.py"),
        ("no.such.package:build", "no.such.package cannot be imported"),
        ("net.py:bild", "has no 'bild'; its names are build, rows"),
        ("broken.py:build", "broken.py cannot be imported (SyntaxError"),
        ("fails.py:build", "calling build() failed (RuntimeError: no luck); it must take no arguments"),
        ("fails.py:number", "number is a int, not a function"),
        ("fails.py:none", "none() returned a NoneType, not a model"),
        ("missing.pt2", "there is no file missing.pt2"),
    ],
)
def test_a_model_that_cannot_be_made_is_one_sentence(folder, name, sentence) -> None:
    Path("broken.py").write_text("def build(:\n")
    Path("fails.py").write_text("number = 3\ndef build():\n    raise RuntimeError('no luck')\ndef none(): pass\n")
    with pytest.raises(GralisError) as caught:
        load_model(name)
    assert sentence in str(caught.value)


# --- estimators ------------------------------------------------------------------------------------------------------


def test_an_estimator_is_loaded_without_running_code(folder) -> None:
    assert type(load_model("forest.skops")).__name__ == "RandomForestRegressor"
    Path("torn.skops").write_bytes(Path("forest.skops").read_bytes()[:400])
    with pytest.raises(GralisError, match=r"not a whole \.skops file"):
        load_model("torn.skops")


def test_types_that_may_run_code_are_refused(folder) -> None:
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer
    from skops.io import dump

    step = FunctionTransformer(func=os.path.join)
    model = make_pipeline(step, LinearRegression())
    dump(model, "code.skops")
    with pytest.raises(GralisError, match=r"types that may run code when they are loaded \(.*join.*--allow-pickle"):
        load_model("code.skops")
    assert load_model("code.skops", allow_pickle=True).steps[1][0] == "linearregression"


def test_pipelines_and_categories_are_loaded_without_the_permission(folder) -> None:
    """An encoder keeps a type of NumPy, and histogram boosting keeps a function with its arguments."""
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LinearRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from skops.io import dump

    table = pandas.DataFrame({"city": pandas.Categorical(["Rome", "Oslo"] * 20), "age": [31.0, None, 50.0, 22.0] * 10})
    encode = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), ["city"]), (SimpleImputer(), ["age"]))
    steps = (
        make_pipeline(encode, LinearRegression()),
        HistGradientBoostingRegressor(categorical_features="from_dtype"),
    )
    for number, model in enumerate(steps):
        dump(model.fit(table, range(40)), f"{number}.skops")
        assert load_model(f"{number}.skops").predict(table).tolist() == model.predict(table).tolist()


def test_texts_of_a_file_are_categories_to_boosters(gralis_run) -> None:
    """A CSV file has no categories, with which LightGBM and XGBoost were trained."""
    import lightgbm
    import xgboost

    table = pandas.DataFrame({"city": ["Rome", "Oslo", "Lima", "Oslo"] * 20, "rooms": [1, 2, 3, 2] * 20})
    table["size"] = range(80)
    table.to_csv("cities.csv", index=False)
    table.assign(size="large").to_csv("words.csv", index=False)
    trained = table.assign(city=table.city.astype("category"), rooms=table.rooms.astype("category"))
    kinds = (lightgbm.LGBMClassifier(verbose=-1), xgboost.XGBClassifier(enable_categorical=True, n_estimators=5))
    for number, model in enumerate(kinds):
        joblib.dump(model.fit(trained, (table.city == "Oslo").to_numpy() ^ (table["size"] > 40)), f"{number}.joblib")
        asked = ("explain", "--data", "cities.csv", "--row", "1", "--model", f"{number}.joblib", "--allow-pickle")
        for target in ((), ("--target", "1"), ("--target", "probability(1)", "--budget", "400")):
            code, out, err = gralis_run(*asked, *target, "--json")
            assert (code, err) == (0, "")
            found = json.loads(out)
        assert found["f_x"] == pytest.approx(float(model.predict_proba(trained)[1, 1]))
        code, _, err = gralis_run(*asked[:2], "words.csv", *asked[3:])
        assert (code, err.count("\n")) == (2, 1)
        assert "dtypes" in err  # the library's own words, and not that the categories do not match


def test_a_pickled_estimator_needs_the_permission(folder) -> None:
    model = load_model("forest.skops")
    for name in ("forest.pkl", "forest.joblib"):
        joblib.dump(model, name)
        with pytest.raises(GralisError, match="is a pickle, which can run any code"):
            load_model(name)
        assert type(load_model(name, allow_pickle=True)) is type(model)
    joblib.dump([1, 2], "list.pkl")
    with pytest.raises(GralisError, match="holds a list, not an estimator"):
        load_model("list.pkl", allow_pickle=True)
    Path("text.pkl").write_text("no pickle")
    with pytest.raises(GralisError, match=r"text\.pkl cannot be unpickled"):
        load_model("text.pkl", allow_pickle=True)


def test_rows_of_a_table_reach_an_estimator(gralis_run) -> None:
    from sklearn.compose import make_column_transformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder
    from skops.io import dump

    Path("people.csv").write_text("city,age,fine\nRome,31,yes\nOslo,45,no\nRome,50,no\nOslo,22,yes\n")
    table = pandas.read_csv("people.csv")
    encode = make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough")
    dump(make_pipeline(encode, LogisticRegression()).fit(table[["city", "age"]], table["fine"]), "people.skops")
    asked = ("explain", "--data", "people.csv", "--row", "1", "--drop", "fine", "--model", "people.skops")
    code, out, _ = gralis_run(*asked, "--target", "yes", "--out", "out")
    assert code == 0
    assert "city = Oslo" in out
    assert "(yes)" in out
    code, _, err = gralis_run(*asked, "--target", "maybe")
    assert code == 2
    assert "no output is called 'maybe' among the classes of the estimator (no, yes)" in err
    code, out, _ = gralis_run(*asked, "--json")
    assert json.loads(out)["provenance"]["baseline"] == "sample(4 rows, n=4, seed=0)"
    assert json.loads(out)["label"] == "no"
    code, out, err = gralis_run("batch", "people.csv", "--drop", "fine", "--model", "people.skops", "--out", "many")
    assert (code, err) == (0, "")
    assert "4 inputs, 0 without a result" in out


# --- weights ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", ["net.pt", "net.safetensors", "checkpoint.pt"])
def test_weights_fill_the_model(folder, file) -> None:
    torch.save({"state_dict": network().state_dict(), "epoch": 3}, "checkpoint.pt")
    Path("other.py").write_text(Path("net.py").read_text().replace("manual_seed(0)", "manual_seed(9)"))
    with torch.random.fork_rng():
        assert not agrees(load_model("other.py:build"))
        assert agrees(load_model("other.py:build", Path(file)))


def test_weights_that_do_not_fit_or_cannot_be_read_are_one_sentence(folder) -> None:
    whole = Path("net.safetensors").read_bytes()
    Path("torn.safetensors").write_bytes(whole[: len(whole) // 2])
    Path("torn.pt").write_bytes(Path("net.pt").read_bytes()[:300])
    Path("text.pt").write_text("weights")
    torch.save([1, 2], "list.pt")
    for file, sentence in (
        ("torn.safetensors", "not a whole safetensors file"),
        ("torn.pt", "not a file that torch.load can read"),
        ("text.pt", "not a file that torch.load can read"),
        ("list.pt", "holds a list, not the state_dict"),
        ("none.pt", "there is no file none.pt"),
    ):
        with pytest.raises(GralisError) as caught:
            load_model("net.py:build", Path(file))
        assert sentence in str(caught.value)
    with pytest.raises(GralisError, match="do not fit the model: Missing key"):
        load_model("net.py:rows", Path("net.pt"))


# --- pickles ---------------------------------------------------------------------------------------------------------


def test_a_pickle_is_not_executed_unless_it_is_allowed(folder, gralis_run) -> None:
    torch.save({"weight": Evil()}, "evil.pt")
    Path("plain.pt").write_bytes(pickle.dumps(Evil()))
    for arguments in (
        ("--model", "net.py:build", "--weights", "evil.pt"),
        ("--model", "net.py:build", "--weights", "plain.pt"),
        ("--model", "evil.pt"),
    ):
        code, out, error = gralis_run("explain", "photo.jpg", *arguments)
        assert (code, out) == (2, "")
        assert error.count("\n") == 1
        assert not Path("owned").exists()
    assert "--allow-pickle" in error
    gralis_run("explain", "photo.jpg", "--model", "evil.pt", "--allow-pickle")
    assert Path("owned").exists()  # the trap works: it is the refusal that protects


def test_a_whole_pickled_model_works_where_it_is_allowed(folder) -> None:
    torch.save(network(), "whole.pt")
    assert agrees(load_model("whole.pt", allow_pickle=True))
    with pytest.raises(GralisError, match="can run any code"):
        load_weights(Path("whole.pt"))
    torch.save(network().state_dict(), "state.pt")
    with pytest.raises(GralisError, match="a state_dict goes to --weights"):
        load_model("state.pt", allow_pickle=True)


# --- programs --------------------------------------------------------------------------------------------------------


def test_an_exported_program_gives_the_same_explanation(programs, gralis_run) -> None:
    small = ("--size", "24", "--segments", "5", "--budget", "120", "--json")
    program = ("--model", str(programs / "dynamic.pt2"), "--allow-pickle")
    code, out, error = gralis_run("explain", "photo.jpg", *program, *small)
    assert (code, error) == (0, "")
    expected = json.loads(gralis_run("explain", "photo.jpg", "--model", "net.py:build", *small)[1])
    assert json.loads(out)["values"] == pytest.approx(expected["values"], abs=1e-6)


def test_a_program_for_one_row_only_is_refused_with_the_way_out(programs) -> None:
    with pytest.raises(GralisError, match=r"batches of exactly 1.*dynamic_shapes=\(\{0: torch.export.Dim"):
        load_model(str(programs / "fixed.pt2"), allow_pickle=True)
    with pytest.raises(GralisError, match="holds its own weights"):
        load_model(str(programs / "dynamic.pt2"), Path("net.pt"), allow_pickle=True)


def test_a_file_that_is_no_program_is_one_sentence(folder, programs) -> None:
    Path("text.pt2").write_text("no zip")
    torch.save({}, "dict.pt2")
    whole = (programs / "dynamic.pt2").read_bytes()
    Path("torn.pt2").write_bytes(whole[: len(whole) // 2])
    for name in ("text.pt2", "torn.pt2", "dict.pt2"):
        with pytest.raises(GralisError, match="not a whole"):
            load_model(name, allow_pickle=True)
