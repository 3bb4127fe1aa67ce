"""Many rows as one value: the explainer, slices, frames, files and pictures; trees are summed up together."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gralis
from gralis import Explainer, GralisError, explain
from gralis.views.row_parts import error_caption, error_share, ranked, text_colours
from gralis.views.row_relations import strongest_partner

pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")
pytest.importorskip("matplotlib")
from matplotlib.colors import to_hex  # noqa: E402
from sklearn.compose import make_column_transformer  # noqa: E402
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor  # noqa: E402
from sklearn.linear_model import LinearRegression  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import OneHotEncoder  # noqa: E402

RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {"a": RNG.normal(size=40), "b": RNG.normal(size=40), "town": RNG.choice(["Rome", "Oslo"], 40)},
    index=[f"row {k}" for k in range(40)],
)
TARGET = 2 * FRAME["a"] - FRAME["b"] + 3 * (FRAME["town"] == "Rome")
ENCODER = make_column_transformer((OneHotEncoder(), ["town"]), remainder="passthrough")
PIPELINE = make_pipeline(ENCODER, LinearRegression()).fit(FRAME, TARGET)
NUMBERS = FRAME[["a", "b"]].assign(c=RNG.normal(size=40))
FOREST = RandomForestRegressor(5, max_depth=3, random_state=0).fit(NUMBERS, NUMBERS["a"] * NUMBERS["b"])


@pytest.fixture(scope="module")
def rows() -> gralis.Explanations:
    return Explainer(PIPELINE, baseline=FRAME, budget=None, progress=False)(FRAME.iloc[:12])


def test_the_values_of_a_linear_model(rows) -> None:
    shown = FRAME.iloc[:12]
    expected = np.column_stack(
        [
            2 * (shown["a"] - FRAME["a"].mean()),
            -(shown["b"] - FRAME["b"].mean()),
            3 * ((shown["town"] == "Rome") - (FRAME["town"] == "Rome").mean()),
        ]
    )
    assert rows.values == pytest.approx(expected, abs=1e-9)
    assert rows.exact
    assert rows.names == ("a", "b", "town")
    assert rows.data.tolist() == shown.to_numpy().tolist()
    assert rows.f_x == pytest.approx(PIPELINE.predict(shown))
    assert rows.labels[3] == "row 3"
    assert rows.shapley().values == pytest.approx(expected, abs=1e-9)


def test_slices_masks_and_lists(rows) -> None:
    assert len(rows[2:5]) == 3
    assert rows[2:5].labels == ("row 2", "row 3", "row 4")
    assert rows[[0, -1]].labels == ("row 0", "row 11")
    assert len(rows[rows.f_x > np.median(rows.f_x)]) == 6
    assert rows["row 4"] is rows[4]
    assert isinstance(rows[np.int64(1)], gralis.Explanation)
    for wrong in ([40], [0.5], np.ones(3, dtype=bool)):
        with pytest.raises(GralisError, match="a number, a slice, a list of numbers or a mask"):
            rows[wrong]
    for none in (slice(3, 3), np.zeros(12, dtype=bool), []):
        with pytest.raises(GralisError, match="No row is chosen"):
            rows[none]


def test_frames_of_rows(rows) -> None:
    wide = rows.to_frame()
    assert wide.shape == (12, 3)
    assert list(wide.columns) == ["a", "b", "town"]
    assert wide.loc["row 3", "b"] == rows.values[3, 1]
    long = rows.to_frame("long")
    assert long.shape == (36, 7)
    assert long["data"][2] == FRAME["town"].iloc[0]
    with pytest.raises(GralisError, match="'layout'"):
        rows.to_frame("tall")


def test_rows_come_back_from_a_file(rows, tmp_path) -> None:
    path = rows.save(tmp_path / "rows.gralis")
    again = gralis.load(path)
    assert (again.values == rows.values).all()
    assert again.labels == rows.labels
    assert again.data.tolist() == rows.data.tolist()
    assert again[2].shapley().values.tolist() == rows[2].shapley().values.tolist()
    alone = rows[0].save(tmp_path / "one.gralis")
    assert path.stat().st_size < 12 * alone.stat().st_size  # the background is written once
    torn = tmp_path / "torn.gralis"
    torn.write_bytes(path.read_bytes()[:2000])
    with pytest.raises(GralisError, match="not a whole gralis file"):
        gralis.load(torn)


@pytest.mark.parametrize("kind", gralis.views.row_plot_kinds())
def test_every_picture_says_what_is_sampling_error(rows, kind) -> None:
    figure = rows.plot(kind)
    assert "no sampling error" in figure.axes[0].get_xlabel()
    assert figure._repr_png_()[:4] == b"\x89PNG"


def test_sampled_rows_have_their_share_of_error() -> None:
    net = torch.nn.Sequential(torch.nn.Linear(12, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double().eval()
    x = torch.from_numpy(np.random.default_rng(1).normal(size=(6, 12)))
    found = Explainer(net, budget=200, progress=False)(x)
    every = np.arange(12)
    share = (found.stderr**2).mean() / ((found.values - found.values.mean(0)) ** 2).mean()
    assert error_share(found, every) == pytest.approx(share)
    assert error_caption(found, every).startswith("sampling error: ")
    assert "of the spread" in found.plot("beeswarm").axes[0].get_xlabel()


def test_trees_are_summed_up_together() -> None:
    found = Explainer(FOREST, baseline=NUMBERS.iloc[:8], progress=False)(NUMBERS.iloc[:6])
    for k in range(6):
        alone = explain(FOREST, NUMBERS.iloc[[k]], baseline=NUMBERS.iloc[:8], progress=False)
        assert found[k].values == pytest.approx(alone.values, abs=1e-13)
        assert found[k].f_x == alone.f_x
    assert found.exact
    assert found[0].plan["name"] == "trees"
    assert found.data == pytest.approx(NUMBERS.iloc[:6].to_numpy())
    assert gralis.replay(found[2], FOREST).same
    classes = RandomForestClassifier(4, random_state=0).fit(NUMBERS, np.where(NUMBERS["a"] > 0, "yes", "no"))
    predicted = Explainer(classes, baseline=NUMBERS.iloc[:8], target="predicted", progress=False)(NUMBERS.iloc[:6])
    assert [e.provenance["class"] for e in predicted] == classes.predict(NUMBERS.iloc[:6]).tolist()
    assert predicted.f_x == pytest.approx(classes.predict_proba(NUMBERS.iloc[:6]).max(1))


def test_many_trees_are_summed_up_too(tmp_path) -> None:
    pytest.importorskip("pyarrow")
    options = {"baseline": NUMBERS.iloc[:8], "progress": False}
    many = gralis.explain_many(FOREST, NUMBERS.iloc[:3], out=tmp_path / "trees", ledgers=True, **options)
    assert not many.failures
    for k in range(3):
        alone = explain(FOREST, NUMBERS.iloc[[k]], **options)
        assert many.explanation(str(k)).values.tolist() == alone.values.tolist()
        assert many.explanation(str(k)).plan["name"] == "trees"


def test_the_partner_is_the_one_that_interacts() -> None:
    found = Explainer(FOREST, baseline=NUMBERS.iloc[:8], progress=False)(NUMBERS)
    partner, how = strongest_partner(found, 0)
    assert found.names[partner] == "b"
    assert "SII" in how
    assert "coloured by c, chosen by you" in found.plot("scatter", feature="a", partner="c").axes[0].get_title()


def test_texts_of_the_partner_have_colours_with_names(rows) -> None:
    ax = rows.plot("scatter", feature="a", partner="town").axes[0]
    legend = {
        text.get_text(): to_hex(dot.get_color())
        for text, dot in zip(ax.get_legend().get_texts(), ax.get_legend().legend_handles, strict=True)
    }
    assert set(legend) == {"Oslo", "Rome"}
    assert len(set(legend.values())) == 2
    shown = [to_hex(colour) for colour in ax.collections[0].get_facecolors()]
    assert shown == [legend[town].lower() for town in FRAME["town"].iloc[:12]]
    assert len(ax.figure.axes) == 1, "a bar from low to high says nothing about texts"


def test_rare_texts_and_missing_entries_share_a_colour() -> None:
    entries = np.array([*"aabbccddeeffg", None, np.nan, 3.0], dtype=object)
    assert list(text_colours(entries)) == list("abcdef")
    assert text_colours(np.array([1.0, np.nan])) == {}


def test_colours_follow_ranks_and_leave_texts_out() -> None:
    entries = np.array([1.0, 1000.0, None, "Rome", 2.0], dtype=object)
    assert np.array_equal(ranked(entries), [0.0, 1.0, np.nan, np.nan, 0.5], equal_nan=True)


def test_bars_of_the_data_set_and_of_global_importance(rows, tmp_path) -> None:
    bars = rows.plot("bar").axes[0].patches
    order = np.argsort(-np.abs(rows.values).mean(0))
    assert [bar.get_width() for bar in bars] == pytest.approx(np.abs(rows.values).mean(0)[order])
    pytest.importorskip("pyarrow")
    options = {"baseline": FRAME, "budget": None, "progress": False}
    results = gralis.explain_many(PIPELINE, FRAME.iloc[:6], out=tmp_path / "r", **options)
    importance = gralis.global_importance(results)
    assert len(importance.plot().axes[0].patches) == 3
    assert importance.to_frame()["mean_abs"].tolist() == importance.mean_abs.tolist()
    assert len(results.to_frame()) == 18


BAD = {
    "kind": (lambda rows: rows.plot("pie"), "'kind'"),
    "feature": (lambda rows: rows.plot("scatter", feature="z"), "no feature 'z'"),
    "number": (lambda rows: rows.plot("scatter", feature=7), "'feature'"),
    "ax": (lambda rows: rows.plot(ax=3), "'ax'"),
    "option": (lambda rows: Explainer(PIPELINE, bugdet=3), "'bugdet' parameter of Explainer"),
    "empty": (lambda rows: Explainer(PIPELINE, baseline=FRAME)(FRAME.iloc[:0]), "'xs'"),
    "empty trees": (lambda rows: Explainer(FOREST, baseline=NUMBERS)(NUMBERS.iloc[:0]), "'xs'"),
    "columns": (lambda rows: Explainer(PIPELINE, baseline=FRAME)(FRAME[["a"]]), "columns of the background"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_sentence(rows, case) -> None:
    call, pattern = BAD[case]
    with pytest.raises(GralisError, match=pattern):
        call(rows)
