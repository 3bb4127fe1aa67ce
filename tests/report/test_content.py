"""What the report says: its numbers are the explanation's, its words are true, and nothing in it can run by itself."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import torch

import gralis
from gralis import GralisError
from gralis.estimators import removal
from gralis.report import archive_of, content, content_of, register_panel, words
from gralis.report.outline import outline
from gralis.report.png import png
from report_cases import HOSTILE, bent, exhaustive, network, opposed, picture, rounded, row, shared


@pytest.fixture(scope="module")
def sampled() -> gralis.Explanation:
    return shared()


@pytest.fixture(scope="module")
def pictured() -> gralis.Explanation:
    return picture()


class Page(HTMLParser):
    """Every element with its attributes, and the text of scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.elements and self.elements[-1][0] == "script":
            self.scripts.append(data)


# --- numbers -------------------------------------------------------------------------------------------------------


def test_the_numbers_are_those_of_the_explanation(sampled: gralis.Explanation) -> None:
    found = content(sampled)
    first = found["methods"][0]
    np.testing.assert_array_equal(first["values"], sampled.values)
    np.testing.assert_array_equal(first["stderr"], sampled.stderr)
    half = np.diff(sampled.interval(0.95), axis=1)[:, 0] / 2
    np.testing.assert_allclose(first["half_width"], half)
    by_name = {each["id"]: each for each in found["methods"]}
    np.testing.assert_array_equal(by_name["shapley"]["values"], sampled.shapley().values)
    np.testing.assert_array_equal(by_name["lime"]["values"], sampled.lime().values)
    np.testing.assert_array_equal(by_name["ig"]["values"], sampled.integrated_gradients().values)
    assert found["prediction"]["delta"] == sampled.delta
    assert found["residual"]["path"]["value"] == sampled.residual.path.value
    assert found["certificate"]["text"] == repr(sampled.certificate(0.05))
    json.dumps(found, allow_nan=False)  # strict JSON


def test_interactions_are_exact_where_everything_is_known() -> None:
    explanation = exhaustive()
    found, matrix = content(explanation)["interactions"], explanation.interactions(order=2).matrix()
    assert found["exact"]
    for pair in found["pairs"]:
        assert pair["value"] == matrix[tuple(pair["pair"])]
    strongest = np.abs(matrix[np.triu_indices(6, 1)]).max()
    assert abs(found["pairs"][0]["value"]) == strongest


def test_removal_is_measured_where_the_row_is_there() -> None:
    f, x = network(6), row(6)
    found = content(gralis.explain(f, x))["removal"]
    without = x.repeat(6, 1) * (1 - torch.eye(6, dtype=torch.float64))
    np.testing.assert_allclose(found["drop"], (f(x[None]) - f(without)).numpy(), atol=1e-9)
    alone = x * torch.eye(6, dtype=torch.float64)
    np.testing.assert_allclose(
        found["alone"], (f(alone) - f(torch.zeros(1, 6, dtype=torch.float64))).numpy(), atol=1e-9
    )
    assert all(found["measured"])
    assert set(found["half_width"]) == {0.0}


def test_removal_is_estimated_within_its_error() -> None:
    """The share of true drops within 2 standard errors, over models; and estimates are much better than nothing."""
    inside, errors, sizes = [], [], []
    for seed in range(8):
        f, x = network(9, seed), row(9, seed + 50)
        explanation = gralis.explain(f, x, budget=240, seed=seed)
        full = explanation.f_x - explanation.f_baselines
        found = removal.estimated(explanation.ledger, explanation.squared_distance, np.ones(1), full)
        truth = (f(x[None]) - f(x.repeat(9, 1) * (1 - torch.eye(9, dtype=torch.float64)))).numpy()
        inside.append(np.abs(found.values - truth) <= 2 * found.stderr)
        errors.append(found.values - truth)
        sizes.append(truth)
    assert np.mean(inside) > 0.85
    assert np.square(errors).mean() < 0.1 * np.square(sizes).mean()


def test_beside_needs_the_same_features(sampled: gralis.Explanation) -> None:
    with pytest.raises(GralisError, match="beside"):
        content(sampled, beside=[exhaustive()])
    other = shared(baseline=0.5)
    found = content(sampled, beside=[other])["beside"][0]
    np.testing.assert_array_equal(found["values"], other.values)
    assert found["prediction"]["f_baseline"] == other.f_baseline


# --- pictures ------------------------------------------------------------------------------------------------------


def test_regions_have_their_places(pictured: gralis.Explanation) -> None:
    found = content(pictured)
    assert found["features"]["noun"] == "region"
    assert found["features"]["place"][0] == "upper left"
    assert found["features"]["place"][15] == "lower right"
    assert found["features"]["where"][5].endswith("6 % of the picture")
    assert len(found["picture"]["regions"]) == 16
    assert found["picture"]["pixels"].startswith("data:image/png;base64,")


def test_an_image_must_have_the_pixels_of_x(pictured: gralis.Explanation, sampled: gralis.Explanation) -> None:
    with pytest.raises(GralisError, match="64 x 64"):
        content(pictured, image=np.zeros((32, 32, 3)))
    with pytest.raises(GralisError, match="NaN"):
        content(pictured, image=np.full((64, 64, 3), np.nan))
    grey = np.linspace(0, 1, 64 * 64).reshape(64, 64)
    shown = [
        content(pictured, image=image)["picture"]["pixels"] for image in (grey, torch.tensor(grey).repeat(3, 1, 1))
    ]
    assert shown[0] == shown[1]
    with pytest.raises(GralisError, match="no picture"):
        content(sampled, image=np.zeros((8, 8)))


@pytest.mark.parametrize("option", [{"title": 3}, {"label": 281}, {"beside": [1]}])
def test_bad_options_are_named(option: dict[str, object], sampled: gralis.Explanation) -> None:
    with pytest.raises(GralisError, match=next(iter(option))):
        content(sampled, **option)


def test_png_is_read_back_by_pillow() -> None:
    from PIL import Image

    rng = np.random.default_rng(0)
    for channels in (3, 4):
        pixels = rng.integers(0, 256, (7, 5, channels)).astype(np.uint8)
        np.testing.assert_array_equal(np.asarray(Image.open(io.BytesIO(png(pixels)))), pixels)


def test_an_outline_encloses_the_area_of_its_pixels() -> None:
    """The loop through edge middles cuts an eighth off every corner, and holes are taken off: by Green's formula."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        inside = rng.random((9, 11)) < 0.6
        inside[4, 5] = True
        area, corners = 0.0, 0
        for loop in re.findall(r"M([^Z]*)Z", outline(inside)):
            points = np.array([[float(c) for c in point.split()] for point in loop.split("L")])
            x, y = points.T
            area += float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum() / 2)
        padded = np.pad(inside, 1).astype(int)
        squares = padded[:-1, :-1] + padded[1:, :-1] + padded[:-1, 1:] + padded[1:, 1:]
        diagonal = (squares == 2) & (padded[:-1, :-1] == padded[1:, 1:])
        corners = (squares == 1).sum() + 2 * diagonal.sum() - (squares == 3).sum()
        assert area == pytest.approx(inside.sum() - corners / 8)


# --- what is missing is said ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("plan", ["endpoint", "values"])
def test_plans_without_rays(plan: str) -> None:
    found = content(shared(plan=plan))
    assert "missing" in next(each for each in found["methods"] if each["id"] == "ig")
    assert "missing" in found["residual"]
    assert ("missing" in found["rows"]) == (plan == "values")


def test_a_folded_ledger() -> None:
    n = 30_000
    weights = torch.randn(n, generator=torch.Generator().manual_seed(0))
    explanation = gralis.explain(lambda z: torch.tanh(z @ weights / n**0.5), torch.ones(n), budget=400)
    found = content(explanation)
    assert found["features"]["n"] == n
    assert len(found["features"]["names"]) == 400
    for part in ("rows", "interactions", "removal", "picture"):
        assert found[part]["missing"].endswith(".")
    strongest = np.abs(explanation.values).max()
    assert max(abs(value) for value in found["methods"][0]["values"]) == strongest


def test_many_pixels_make_a_heat_map() -> None:
    explanation = gralis.explain(lambda z: z.mean((1, 2, 3)) ** 2, torch.ones(1, 24, 24), features="pixels", budget=512)
    found = content(explanation)["picture"]
    assert "regions" not in found
    assert found["heat"].startswith("data:image/png;base64,")


def test_tokens_and_tables_say_what_they_are() -> None:
    found = content(exhaustive())
    assert found["features"]["noun"] == "column"
    assert "baseline 0" in found["features"]["where"][0]
    tokens = gralis.features.tokens([5, 7, 9], names=["a", "b", "c"])
    found = content(gralis.explain(network(3), row(3), features=tokens))
    assert found["features"]["where"] == ["token 1 of 3", "token 2 of 3", "token 3 of 3"]


def test_embedded_tokens_are_no_picture() -> None:
    tokens = gralis.features.tokens(np.arange(9))
    explanation = gralis.explain(lambda z: (z**2).mean((1, 2)), torch.ones(9, 16), features=tokens, budget=300)
    found = content(explanation)
    assert found["features"]["noun"] == "token"
    assert "missing" in found["picture"]


def test_a_run_that_stopped_early_says_so() -> None:
    remarks = content(shared(tolerance=1e-4, budget=200))["remarks"]
    assert any("not reached" in remark for remark in remarks)


# --- sections from outside -----------------------------------------------------------------------------------------


def test_a_registered_panel_is_a_section_of_the_report(sampled: gralis.Explanation) -> None:
    def refuse(explanation: gralis.Explanation) -> str:
        raise GralisError("This model has no layers.")

    register_panel("Sum", lambda explanation: f"<p>{explanation.values.sum():.3f}</p>")
    register_panel("Nothing", lambda explanation: None)
    register_panel("Layers", refuse)
    assert content(sampled)["panels"] == [
        {"title": "Sum", "html": f"<p>{sampled.values.sum():.3f}</p>"},
        {"title": "Layers", "missing": "This model has no layers."},
    ]
    register_panel("Layers", None)
    assert [panel["title"] for panel in content(sampled)["panels"]] == ["Sum"]
    register_panel("Sum", lambda explanation: 3)
    with pytest.raises(GralisError, match="The panel 'Sum' must return HTML"):
        content(sampled)
    for title, panel, name in ((3, print, "title"), ("Sum", "<p>", "panel")):
        with pytest.raises(GralisError, match=f"'{name}' parameter of register_panel"):
            register_panel(title, panel)


def test_an_estimator_from_outside_has_no_slider(sampled: gralis.Explanation) -> None:
    class Mine(type(sampled.design.estimator)):
        name, title, page_formula = "mine", "Mine", None

    foreign = replace(sampled, design=replace(sampled.design, estimator=Mine()))
    assert "cannot recompute the values of the estimator 'mine'" in content(foreign)["rows"]["missing"]
    assert content(foreign)["methods"][0]["name"] == "Mine"


# --- words ---------------------------------------------------------------------------------------------------------


def test_the_summary_states_the_numbers(sampled: gralis.Explanation) -> None:
    text = " ".join(content(sampled, label="benign")["summary"])
    top, value, _ = sampled.top(1)[0]
    assert "benign" in text
    assert top.lower() in text.lower()
    assert words.signed(value) in text
    low, high = sampled.interval(0.95).T
    assert f"{(low > 0).sum() or 'none'} clearly raise" in text
    assert f"{(high < 0).sum() or 'none'} clearly lower" in text


def test_values_that_add_up_are_said_to() -> None:
    linear = gralis.explain(lambda z: z.sum(1), torch.ones(5))
    assert "account for the whole difference" in content(linear)["summary"][-1]
    assert "Do not add the values up" in content(opposed())["summary"][-1]


# --- the file ------------------------------------------------------------------------------------------------------


def test_the_report_holds_the_explanation(tmp_path: Path, sampled: gralis.Explanation) -> None:
    path = sampled.report(tmp_path / "why.html")
    saved = sampled.save(tmp_path / "why.gralis")
    assert archive_of(path) == saved.read_bytes()
    again = gralis.load(path)
    np.testing.assert_array_equal(again.values, sampled.values)
    np.testing.assert_array_equal(again.sweep([0.4]).values, sampled.sweep([0.4]).values)
    (tmp_path / "why.json").write_text(json.dumps(content_of(path)))
    np.testing.assert_array_equal(gralis.load(tmp_path / "why.json").values, sampled.values)


def test_an_altered_report_is_refused(tmp_path: Path, sampled: gralis.Explanation) -> None:
    path = sampled.report(tmp_path / "why.html")
    found = content_of(path)
    data = bytearray(zlib.decompress(base64.b64decode(found["archive"]["data"])))
    data[-100] ^= 1
    found["archive"]["data"] = base64.b64encode(zlib.compress(bytes(data))).decode()
    (tmp_path / "altered.json").write_text(json.dumps(found))
    with pytest.raises(GralisError, match="altered"):
        gralis.load(tmp_path / "altered.json")
    text = path.read_text()
    (tmp_path / "half.html").write_text(text[: len(text) // 2])
    for name in ("half.html", "missing.html"):
        with pytest.raises(GralisError):
            gralis.load(tmp_path / name)
    (tmp_path / "other.html").write_text("<!doctype html><p>hello")
    with pytest.raises(GralisError, match="not a gralis report"):
        gralis.load(tmp_path / "other.html")


def test_writing_is_all_or_nothing(
    tmp_path: Path, sampled: gralis.Explanation, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(GralisError, match="does not exist"):
        sampled.report(tmp_path / "nowhere" / "why.html")
    path = sampled.report(tmp_path / "why.html")
    before = path.read_bytes()

    rename = os.replace

    def full(source: Path, target: Path) -> None:
        if target == path:
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(GralisError, match="No space left"):
        sampled.report(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["why.html"]


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    hostile = f"</script>{HOSTILE}<!--"
    path = exhaustive().report(tmp_path / "why.html", label=hostile, title=hostile)
    page = Page(path.read_text())
    assert not [tag for tag, _ in page.elements if tag == "img"]
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on")]
    assert content_of(path)["features"]["names"][2] == HOSTILE
    assert content_of(path)["title"] == hostile


def test_nothing_is_fetched_from_anywhere(tmp_path: Path, pictured: gralis.Explanation) -> None:
    page = Page(pictured.report(tmp_path / "why.html").read_text())
    assert not [attrs for _, attrs in page.elements if "src" in attrs]
    assert [attrs["href"] for _, attrs in page.elements if "href" in attrs] == ["#why"]
    policy = next(attrs["content"] for _, attrs in page.elements if attrs.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    assert "http" not in policy


def test_the_same_explanation_makes_the_same_bytes(tmp_path: Path, sampled: gralis.Explanation) -> None:
    first, second = (sampled.report(tmp_path / name).read_bytes() for name in ("a.html", "b.html"))
    assert first == second


def test_size_of_a_photograph(tmp_path: Path) -> None:
    """224 pixels, 25 regions, budget 768: below 3 MB even for pure noise, which nothing compresses."""
    x = torch.tensor(np.random.default_rng(0).standard_normal((3, 224, 224)), dtype=torch.float32)
    patches = gralis.features.grid((3, 224, 224), 45)
    assert patches.n_features == 25
    explanation = gralis.explain(lambda z: z.mean((1, 2, 3)), x, features=patches, budget=768)
    assert explanation.report(tmp_path / "why.html").stat().st_size < 3_000_000


# --- doubts --------------------------------------------------------------------------------------------------------


def test_doubts_are_in_the_content_and_in_the_summary() -> None:
    doubted, trusted = rounded(), exhaustive()
    found = content(doubted)
    assert found["doubts"] == list(doubted.doubts) != []
    assert f"There are {len(doubted.doubts)} doubts" in " ".join(found["summary"])
    found = content(trusted, beside=())
    assert found["doubts"] == []
    assert "doubt" not in " ".join(found["summary"])
    other = content(trusted, beside=[replace(trusted, model_doubts=("F is random.",))])
    assert other["beside"][0]["doubts"] == ["F is random."]


def test_no_error_is_claimed_only_where_there_is_none() -> None:
    """Exact values say so; those whose fixed nodes leave an error do not, although every coalition was evaluated."""
    exact, fixed = exhaustive(), gralis.explain(bent, row(4).abs() + 0.3, quadrature="midpoint", n_nodes=5)
    found = content(exact)
    assert "error above rounding" in " ".join(found["summary"])
    assert set(found["methods"][0]["half_width"]) == {0.0}  # rounding is not shown
    assert found["certificate"]["exact"]
    found = content(fixed)
    assert "error above rounding" not in " ".join(found["summary"])
    assert not found["certificate"]["exact"]
    assert not found["certificate"]["sampled"]
    assert "replicates" not in found["certificate"]["ground"]
    assert found["certificate"]["widest"] == fixed.half_widths().max() > 0


def test_an_unknown_error_has_no_widest() -> None:
    single = gralis.explain(network(3), row(3), quadrature="midpoint", n_nodes=1, coalition_values=False)
    found = content(single)["certificate"]
    assert found["widest"] is None
    assert not found["quadrature_known"]


# --- what the top of the page says -----------------------------------------------------------------------------------


def test_disagreements_are_beyond_both_errors(sampled: gralis.Explanation) -> None:
    """By the definition: the two intervals lie on opposite sides of zero."""
    for explanation in (opposed(), sampled, shared(plan="values")):
        found = content(explanation)
        told = {(each["feature"], each["method"]) for each in found["disagreements"]}
        others = {"ig": explanation.integrated_gradients, "shapley": explanation.shapley, "lime": explanation.lime}
        low, high = explanation.interval(0.95).T
        for method in (each["id"] for each in found["methods"][1:] if "missing" not in each):
            their_low, their_high = others[method]().interval(0.95).T
            apart = ((low > 0) & (their_high < 0)) | ((high < 0) & (their_low > 0))
            assert {i for i, key in told if key == method} == set(np.flatnonzero(apart))
    told = {each["feature"] for each in content(opposed())["disagreements"] if each["method"] == "shapley"}
    assert told == {conflict.feature for conflict in opposed().sign_conflicts} == {0, 3}


def test_rounding_is_no_disagreement() -> None:
    """Two methods that differ only by rounding around zero agree."""
    idle = gralis.explain(lambda z: torch.sin(z[:, 0]) + 1e-17 * z[:, 1], torch.ones(3, dtype=torch.float64))
    assert content(idle)["disagreements"] == []
    assert content(idle)["methods"][0]["sign"] == [1, 0, 0]


def test_the_title_names_the_class() -> None:
    x = torch.randn(4, generator=torch.Generator().manual_seed(0))
    model = torch.nn.Linear(4, 3).eval()
    assert content(gralis.explain(model, x, target=2))["title"] == "Why class 2?"
    assert content(gralis.explain(model, x, target=2), label="tumour")["title"] == "Why tumour?"
    assert content(gralis.explain(lambda z: z.sum(1), x))["title"] == "Why this output?"


def test_the_baseline_is_in_words(sampled: gralis.Explanation) -> None:
    rows = np.stack([row(10, seed).numpy() for seed in range(4)])
    told = {
        "every value is 0": sampled,
        "every value is 0.5": shared(baseline=0.5),
        "3 inputs drawn from 4 rows": shared(baseline=gralis.baselines.sample(rows, 3), budget=500),
        "another input": shared(baseline=rows[0]),
    }
    for words_, explanation in told.items():
        assert words_ in content(explanation)["prediction"]["compared_with"]
        assert words_ in content(explanation)["summary"][1]


def test_a_run_with_a_price_widens_the_removal_too() -> None:
    """A run that looked at its errors to stop divides 1 - level by its price, for every interval on the page."""
    explanation = shared(budget=2000, tolerance=0.02)
    assert explanation.price > 2
    plain = content(replace(explanation, price=1.0))["removal"]
    paid = content(explanation)["removal"]
    estimated = [i for i, measured in enumerate(paid["measured"]) if not measured]
    assert estimated
    assert all(paid["half_width"][i] > plain["half_width"][i] for i in estimated)


def test_the_page_says_what_was_decided_for_the_user() -> None:
    picture = torch.linspace(0, 1, 3 * 40 * 40).reshape(3, 40, 40)
    explanation = gralis.explain(lambda z: z.flatten(1).sum(1), picture, budget=200)
    told = {each["id"]: each["answer"] for each in content(explanation)["answers"]}
    assert explanation.choices
    assert all(choice.removeprefix("note: ") in told["compared"] for choice in explanation.choices)
