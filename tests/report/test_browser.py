"""The report in a real browser: what it shows, what it recomputes, and what it never does."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gralis
from gralis import Gaussian, Uniform
from gralis.report import content, words
from in_browser import settled
from report_cases import HOSTILE, exhaustive, numbered, opposed, opposed_model, picture, rounded, shared

pytestmark = pytest.mark.browser
SIGMAS = (0.2, 0.4, 0.75, 2.0, math.inf)

Open = Callable[..., Any]


def table(page: Any, what: str = "value") -> np.ndarray:
    """The column behind the ranked table, in the order of the features."""
    rows = page.eval_on_selector_all(
        "#table-box tr[data-row]", f"rows => rows.map(r => [r.dataset.row, r.dataset.{what}])"
    )
    found = np.full(len(rows), np.nan)
    for i, value in rows:
        found[int(i)] = float(value) if value else np.nan
    return found


def ask(page: Any, sigma: float) -> None:
    page.fill("#sigma-number", "inf" if sigma == math.inf else repr(sigma))
    page.press("#sigma-number", "Enter")
    settled(page)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[gralis.Explanation, Path]]:
    folder = tmp_path_factory.mktemp("my reports")  # with a space
    made = {
        "exhaustive": exhaustive(),
        "shared": shared(),
        "picture": picture(),
        "rounded": rounded(),
        "opposed": opposed(),
    }
    return {name: (e, e.report(folder / f"{name} #1.html", label=HOSTILE)) for name, e in made.items()}


@pytest.mark.parametrize("name", ["exhaustive", "shared", "picture", "rounded"])
def test_the_slider_is_with_kernel(name: str, reports: Any, open_page: Open) -> None:
    explanation, path = reports[name]
    page = open_page(path)
    np.testing.assert_allclose(table(page), explanation.values, rtol=1e-12)
    for sigma in SIGMAS:
        ask(page, sigma)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a kernel that few rays cover is part of the test
            here = explanation.with_kernel(Uniform() if sigma == math.inf else Gaussian(sigma))
        largest = np.abs(here.values).max()
        assert np.abs(table(page) - here.values).max() < 1e-6 * largest
        assert np.abs(table(page, "stderr") - here.stderr).max() < 1e-6 * largest
        assert "without the model" in page.inner_text("#status")
    page.click("#sigma-reset")
    np.testing.assert_array_equal(table(page), explanation.values)


def test_dragging_the_slider_recomputes(reports: Any, open_page: Open) -> None:
    explanation, path = reports["exhaustive"]
    page = open_page(path)
    page.focus("#sigma")
    page.keyboard.press("End")
    page.wait_for_selector("#status:has-text('Recomputed for σ = ∞')")
    np.testing.assert_allclose(table(page), explanation.with_kernel(Uniform()).values, rtol=1e-9)
    page.keyboard.press("ArrowLeft")
    page.wait_for_selector("#status:has-text('Recomputed for σ = 5.00')")
    np.testing.assert_allclose(table(page), explanation.with_kernel(Gaussian(5.0)).values, rtol=1e-9)


def test_only_the_last_of_many_requests_counts(reports: Any, open_page: Open) -> None:
    explanation, path = reports["shared"]
    page = open_page(path)
    for sigma in (0.3, 0.5, 1.0, 3.0):
        page.fill("#sigma-number", str(sigma))
        page.press("#sigma-number", "Enter")
    settled(page)
    np.testing.assert_allclose(table(page), explanation.with_kernel(Gaussian(3.0)).values, rtol=1e-9)
    assert "σ = 3.00" in page.inner_text("#table-box caption")


def test_without_workers_the_page_computes_itself(reports: Any, open_page: Open) -> None:
    explanation, path = reports["shared"]
    page = open_page(path)
    page.evaluate("() => { window.Worker = function () { throw new Error('none'); }; }")
    ask(page, 0.5)
    np.testing.assert_allclose(table(page), explanation.with_kernel(Gaussian(0.5)).values, rtol=1e-9)


def test_a_wrong_sigma_is_refused(reports: Any, open_page: Open) -> None:
    explanation, path = reports["exhaustive"]
    page = open_page(path)
    for text in ("-1", "0", "wide"):
        page.fill("#sigma-number", text)
        page.press("#sigma-number", "Enter")
        assert "above 0" in page.inner_text("#status")
    np.testing.assert_array_equal(table(page), explanation.values)


@pytest.mark.parametrize("name", ["exhaustive", "shared", "picture"])
def test_the_method_switch_is_python(name: str, reports: Any, open_page: Open) -> None:
    explanation, path = reports[name]
    page = open_page(path)
    other = {"ig": explanation.integrated_gradients, "shapley": explanation.shapley, "lime": explanation.lime}
    for key, method in other.items():
        page.check(f"input[name=method][value={key}]", force=True)
        np.testing.assert_array_equal(table(page), method().values)
        np.testing.assert_array_equal(table(page, "stderr"), method().stderr)
        assert page.is_hidden("#sigma-box")
    page.check("input[name=method][value=gralis]", force=True)
    np.testing.assert_array_equal(table(page), explanation.values)


def test_pointing_at_a_region_shows_its_number(reports: Any, open_page: Open) -> None:
    explanation, path = reports["picture"]
    page = open_page(path)
    for region in (0, 5, 15):
        page.hover(f"path.region[data-region='{region}']", force=True)
        assert float(page.get_attribute("#panel-value", "data-value")) == explanation.values[region]
        assert words.signed(float(explanation.values[region])) in page.inner_text("#panel-value")
        assert page.inner_text("#panel h3") == explanation.names[region]
    page.mouse.move(5, 5)
    first = int(np.abs(explanation.values).argmax())  # back to the one that is chosen
    assert page.inner_text("#panel h3") == explanation.names[first]
    page.click("path.region[data-region='3']")
    page.mouse.move(5, 5)
    assert page.inner_text("#panel h3") == explanation.names[3]


def test_the_regions_lie_where_the_features_are(reports: Any, open_page: Open) -> None:
    explanation, path = reports["picture"]
    page = open_page(path)
    page.locator(".picture").first.scroll_into_view_if_needed()
    box = page.locator(".picture").first.bounding_box()
    labels = explanation.features.labels[0][0]
    for y, x in ((3, 3), (20, 60), (40, 8), (62, 62)):
        at = [box["x"] + (x + 0.5) * box["width"] / 64, box["y"] + (y + 0.5) * box["height"] / 64]
        found = page.evaluate("([x, y]) => document.elementFromPoint(x, y).dataset.region", at)
        assert int(found) == labels[y, x]


def test_the_keyboard_reaches_everything(reports: Any, open_page: Open) -> None:
    explanation, path = reports["picture"]
    page = open_page(path)
    order = np.argsort(-np.abs(explanation.values), kind="stable")
    page.focus("path.region[tabindex='0']")
    assert page.inner_text("#panel h3") == explanation.names[int(order[0])]
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.inner_text("#panel h3") == explanation.names[int(order[2])]
    page.keyboard.press("Enter")
    page.keyboard.press("End")
    assert page.inner_text("#panel h3") == explanation.names[int(order[-1])]
    assert page.get_attribute(f"path.region[data-region='{order[0]}']", "aria-label").startswith(
        explanation.names[int(order[0])]
    )
    stops = set()
    here = "(({ id, className, name }) => id || className.baseVal || name || '')(document.activeElement)"
    page.evaluate("document.activeElement.blur()")
    for _ in range(60):
        page.keyboard.press("Tab")
        stops.add(page.evaluate(here))
    assert {"theme", "print", "method", "sigma", "sigma-number", "region", "save-json", "save-csv"} <= stops


def test_hostile_names_stay_text(reports: Any, open_page: Open) -> None:
    explanation, path = reports["exhaustive"]
    page = open_page(path)
    assert HOSTILE in page.inner_text("h1")
    names = page.eval_on_selector_all("#table-box .name", "all => all.map(each => each.textContent)")
    assert sorted(names) == sorted(explanation.names)
    page.get_by_role("button", name=HOSTILE, exact=True).click()
    assert page.inner_text("#panel h3") == HOSTILE
    assert page.eval_on_selector_all("img", "all => all.length") == 0


def test_downloads(reports: Any, open_page: Open) -> None:
    explanation, path = reports["exhaustive"]
    page = open_page(path)

    def saved(button: str) -> bytes:
        with page.expect_download() as waiting:
            page.click(button)
        return Path(waiting.value.path()).read_bytes()

    assert json.loads(saved("#save-json"))["schema"] == "gralis.report/1"
    rows = list(csv.DictReader(io.StringIO(saved("#save-csv").decode())))
    by_name = dict(zip(explanation.names, explanation.values, strict=True))
    assert {row["feature"].lstrip("'"): float(row["phi"]) for row in rows} == by_name
    assert [row["feature"] for row in rows if row["feature"].startswith("=")] == []
    archive = saved("#save-archive")
    (path.parent / "again.gralis").write_bytes(archive)
    np.testing.assert_array_equal(gralis.load(path.parent / "again.gralis").values, explanation.values)


def test_light_and_dark(reports: Any, open_page: Open) -> None:
    _, path = reports["exhaustive"]
    ink = "getComputedStyle(document.body).color"
    light, dark = open_page(path, color_scheme="light"), open_page(path, color_scheme="dark")
    assert light.evaluate(ink) != dark.evaluate(ink)
    before = dark.evaluate(ink)
    light.click("#theme")
    assert light.evaluate(ink) == before


@pytest.mark.parametrize("name", ["shared", "picture"])
def test_it_fits_a_phone(name: str, reports: Any, open_page: Open) -> None:
    page = open_page(reports[name][1], viewport={"width": 390, "height": 800}, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    if name == "picture":
        page.tap("path.region[data-region='9']")
        assert page.inner_text("#panel h3") == reports[name][0].names[9]


@pytest.mark.parametrize("name", ["exhaustive", "shared", "picture", "rounded", "opposed"])
def test_it_prints_on_two_sides_that_stand_alone(name: str, reports: Any, open_page: Open) -> None:
    explanation, path = reports[name]
    page = open_page(path)
    sides = re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True))
    assert len(sides) <= 2
    page.emulate_media(media="print")
    for kept in ("#answers", "#reading", "#table-box", "#trust-box", "#footer"):
        assert page.is_visible(kept)
    for left in ("#theme", "#appendix", "#panel"):
        assert page.is_hidden(left)
    assert page.is_visible("#doubts") == bool(explanation.doubts)


@pytest.mark.parametrize("plan", ["endpoint", "values", "permutation", "independent"])
def test_every_plan_opens(plan: str, tmp_path: Path, open_page: Open) -> None:
    explanation = shared(plan=plan)
    page = open_page(explanation.report(tmp_path / "why.html"))
    np.testing.assert_array_equal(table(page), explanation.values)
    assert page.is_hidden("#sigma-box") == (plan == "values")


def test_a_folded_ledger_and_many_pixels_open(tmp_path: Path, open_page: Open) -> None:
    n = 30_000
    folded = gralis.explain(lambda z: torch.tanh(z.mean(1)), torch.ones(n), budget=400)
    page = open_page(folded.report(tmp_path / "folded.html"))
    assert len(table(page)) == 400
    assert "29600 more" in page.inner_text("#figure")
    heat = gralis.explain(lambda z: z.mean((1, 2, 3)) ** 2, torch.rand(1, 24, 24), features="pixels", budget=512)
    page = open_page(heat.report(tmp_path / "heat.html"))
    assert page.locator(".picture image").count() == 2


def test_two_baselines_side_by_side(tmp_path: Path, open_page: Open) -> None:
    explanation, other = shared(), shared(baseline=0.5)
    page = open_page(explanation.report(tmp_path / "why.html", beside=[other]))
    text = page.inner_text("#baseline")
    top, value, _ = explanation.top(1)[0]
    assert top in text
    assert words.signed(value) in text
    assert words.signed(float(other.values[list(other.names).index(top)])) in text


def test_a_registered_panel_is_shown_and_cannot_run_anything(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, browser: Any
) -> None:
    run = "document.title = 'run'"
    evil = (
        f'<p id=mine onclick="{run}">The <b>largest</b> value</p><script>{run}</script></section></main>'
        f'<meta http-equiv=refresh content=0><img src=x onerror="{run}"><svg><rect fill=red width=9 height=9 /></svg>'
    )
    monkeypatch.setattr("gralis.report.panels._PANELS", {"My <b>panel</b>": lambda explanation: evil})
    path = exhaustive().report(tmp_path / "why.html")
    context = browser.new_context()
    page, requests = context.new_page(), []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(path.as_uri())
    settled(page)
    section = page.locator("#panels section")
    assert section.locator("h2").inner_text() == "My <b>panel</b>"
    assert section.locator("#mine").inner_text() == "The largest value"
    section.locator("#mine").click()
    assert section.locator("rect").count() == 1
    assert section.locator("script, meta").count() == 0
    assert page.locator("main #glossary").count() == 1  # the page around it is whole
    assert page.title() != "run"
    assert not [url for url in requests if not url.startswith(("data:", "blob:", path.as_uri()))]
    assert gralis.load(path).n_features == 6
    context.close()


def test_doubts_stand_in_a_box_before_the_numbers(reports: Any, open_page: Open) -> None:
    explanation, path = reports["rounded"]
    page = open_page(path)
    assert page.is_visible("#doubts")
    assert page.eval_on_selector_all("#doubts li", "items => items.map(i => i.textContent)") == list(explanation.doubts)
    assert page.locator("#doubts").bounding_box()["y"] < page.locator("#table-box").bounding_box()["y"]
    assert "doubts" in page.inner_text("#trust-box")
    page = open_page(reports["exhaustive"][1])
    assert not page.is_visible("#doubts")


def test_rounding_is_not_shown_as_an_error(reports: Any, open_page: Open) -> None:
    """Neither as explained nor after the slider moved."""
    page = open_page(reports["exhaustive"][1])
    for sigma in (None, 0.4):
        if sigma is not None:
            ask(page, sigma)
        assert set(table(page, "half")) == {0.0}
        assert "no error above rounding" in page.inner_text("#table-box")


# --- one numbering, one meaning per colour ---------------------------------------------------------------------------

PLACES = "[each.getAttribute('x'), each.getAttribute('y')]"
TAGS = f"all => all.map(each => [Number(each.dataset.tag), each.textContent, ...{PLACES}])"


def test_a_number_means_the_same_region_everywhere(tmp_path: Path, open_page: Open) -> None:
    """On the picture, in the panel, the table, the tooltip, the answers, the CSV and the PNG; and after the slider."""
    explanation = numbered()
    page = open_page(explanation.report(tmp_path / "why.html"))
    labels = explanation.features.labels[0][0]

    def tags_are_names() -> None:
        found = page.eval_on_selector_all("#figure text[data-tag]", TAGS)
        assert len(found) == explanation.n_features
        for region, text, x, y in found:
            assert explanation.names[region] == f"region {text}"
            assert labels[int(float(y)), int(float(x))] == region  # it stands on the region itself
            label = page.get_attribute(f"path.region[data-region='{region}']", "aria-label")
            assert label.startswith(f"region {text},")

    tags_are_names()
    ask(page, 0.3)  # another order
    tags_are_names()
    first = explanation.top(1)[0][0]
    assert page.inner_text("[data-answer=counts] dd").startswith(first)
    marked = explanation.plot("heatmap", mark=16).axes[0].texts
    for text in marked:
        x, y = text.get_position()
        assert explanation.names[labels[int(y), int(x)]] == f"region {text.get_text()}"
    page.click("#sigma-reset")
    with page.expect_download() as waiting:
        page.click("#save-csv")
    rows = list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text())))
    by_name = dict(zip(explanation.names, explanation.values, strict=True))
    assert {row["feature"]: float(row["phi"]) for row in rows} == by_name
    cells = page.eval_on_selector_all("#table-box tr[data-row]", "rows => rows.map(r => r.cells[0].textContent)")
    for cell in cells:  # the name comes first, and no other number stands before it
        assert cell.startswith("region ")


def test_red_means_raises_in_every_section(reports: Any, open_page: Open) -> None:
    """Also where a feature is taken away: one that holds the output up is red, though the output falls without it."""
    explanation, path = reports["opposed"]
    page = open_page(path)
    f_x = explanation.f_x
    rows = page.eval_on_selector_all(
        "#removal-box tr",
        "rows => rows.map(r => [r.cells[0].firstChild.textContent, r.querySelector('.fill').className])",
    )
    names = list(explanation.names)
    for name, colour in rows:
        x = torch.ones(1, 4, dtype=torch.float64)
        x[0, names.index(name)] = 0
        falls = float(opposed_model(x)[0]) < f_x
        assert colour.split()[1] == ("for" if falls else "against")
    assert page.locator("#interactions-box .fill.for, #interactions-box .fill.against").count() == 0  # another quantity
    assert page.locator("#interactions-box .fill.pair").count() == 3
    red = page.evaluate("getComputedStyle(document.querySelector('#table-box .fill.for')).backgroundColor")
    boxes = page.eval_on_selector_all(
        ".box:not([hidden]), .warning, .note-box", "all => all.map(each => getComputedStyle(each).borderLeftColor)"
    )
    assert boxes
    assert red not in boxes  # a warning is no value


def test_opposite_signs_stand_at_the_top(reports: Any, open_page: Open) -> None:
    explanation, path = reports["opposed"]
    page = open_page(path)
    text = page.inner_text("#disagreements")
    assert page.locator("#disagreements").bounding_box()["y"] < page.locator("#figure").bounding_box()["y"]
    for i, name in enumerate(explanation.names):
        opposite = explanation.values[i] * explanation.shapley().values[i] < 0
        assert (f"{name} raises" in text) == opposite
        assert (page.locator(f"tr[data-row='{i}'] .flag").count() == 1) == opposite
    assert "dose" in page.inner_text("[data-answer=distrust]")
    assert "goes from 6.00 to 11.0 (measured)" in text
    assert open_page(reports["shared"][1]).is_hidden("#disagreements")


def test_pairs_have_simultaneous_intervals(reports: Any, open_page: Open) -> None:
    explanation, path = reports["shared"]
    page = open_page(path)
    found = explanation.interactions(order=2)
    half = dict(zip(found.coalitions, found.half_widths(0.95), strict=True))
    shown = content(explanation)["interactions"]["pairs"][0]
    assert shown["half_width"] == half[tuple(shown["pair"])]
    first = page.inner_text("#interactions-box tr:first-child td:last-child")
    assert first.endswith(f"±\u00a0{words.number(shown['half_width'], 2)}")
    assert "standard error" not in page.inner_text("#interactions-box")


def test_the_page_answers_without_statistics(tmp_path: Path, open_page: Open) -> None:
    """What was predicted, compared with what, which three count, which is unsure, what to distrust."""
    explanation = shared(budget=80)
    page = open_page(explanation.report(tmp_path / "why.html"))
    told = {key: page.inner_text(f"[data-answer={key}] dd") for key in ("predicted", "compared", "counts", "unsure")}
    assert words.number(explanation.f_x) in told["predicted"]
    assert "every value is 0" in told["compared"]
    assert words.number(explanation.f_baseline) in told["compared"]
    order = np.argsort(-np.abs(explanation.values), kind="stable")
    places = [told["counts"].index(f"{explanation.names[int(i)]} (") for i in order[:3]]
    assert places == sorted(places)
    low, high = explanation.interval(0.95).T
    unsure = [int(i) for i in order if low[i] <= 0 <= high[i]]
    assert f"{explanation.names[unsure[0]]} (" in told["unsure"]
    above_the_fold = page.inner_text("header")
    for alarming in ("root mean square", "rms", "adjusted rays", "residual"):
        assert alarming not in above_the_fold + page.inner_text("#trust-box")
