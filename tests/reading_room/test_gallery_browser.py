"""The gallery in a real browser, opened from disk: 10 000 rows, questions, keyboard, notes, nothing from elsewhere."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gralis
from gallery_cases import CLASSES, large_run, small_run
from in_browser import settled
from report_cases import HOSTILE

pytestmark = pytest.mark.browser
Open = Callable[..., Any]
MOST_ROWS = 40  # elements of the list at any time, on a screen of 900 pixels


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[gralis.many.Results, Path]:
    folder = tmp_path_factory.mktemp("a folder #1")
    run = large_run(folder / "results")
    return run, gralis.gallery(run, folder / "gallery", classes=CLASSES)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> tuple[gralis.many.Results, Path]:
    folder = tmp_path_factory.mktemp("small")
    run = small_run(folder / "results", n=9, ledgers=True)
    return run, gralis.gallery(run, folder / "gallery", classes=CLASSES, reports=2, title=HOSTILE)


@pytest.fixture
def gallery(open_page: Open) -> Open:
    return lambda made, **options: open_page(made[1], folder=made[1].parent, **options)


def shown(page: Any) -> list[str]:
    """The names of the rows that are elements now, from top to bottom."""
    return page.eval_on_selector_all(
        ".case",
        "rows => rows.sort((a, b) => a.dataset.place - b.dataset.place)"
        ".map(r => r.querySelector('.name .strong').textContent)",
    )


def count(page: Any) -> int:
    return int(page.get_attribute("#list", "aria-rowcount"))


def test_ten_thousand_rows_are_few_elements(large: Any, gallery: Open) -> None:
    page = gallery(large)
    assert count(page) == 10_000
    assert shown(page)[0] == "case 00000"
    for part in (0.25, 0.5, 1.0):
        page.evaluate(
            "part => { const box = document.getElementById('list'); box.scrollTop = part * box.scrollHeight; }", part
        )
        page.wait_for_function(
            "part => Number([...document.querySelectorAll('.case')].at(-1).dataset.place) > 9000 * part", arg=part
        )
        assert page.locator(".case").count() <= MOST_ROWS
    assert shown(page)[-1] == "case 09999"
    assert page.evaluate("document.querySelectorAll('*').length") < 2500


def test_filters_and_sorts_are_those_of_the_tables(large: Any, gallery: Open) -> None:
    run, _ = large
    page = gallery(large)
    table = run.inputs_table().to_pandas()
    explained = table[table.failure.isna()]
    page.select_option("#by-class", "ill")
    assert count(page) == (explained.target == "output[1]").sum()
    page.select_option("#by-right", "false")
    ill = explained[explained.target == "output[1]"]
    assert count(page) == (ill.label != "1").sum()
    page.select_option("#by-label", "unclear")
    assert count(page) == (ill.label == "2").sum()
    page.click("#reset")
    assert count(page) == 10_000
    page.fill("#query", "E 0123")
    assert count(page) == 10
    page.click("#reset")
    page.select_option("#by-state", "failed")
    assert count(page) == table.failure.notna().sum()
    page.click("#reset")
    page.select_option("#sort", "width")
    widest = explained.sort_values("certificate", ascending=False, kind="stable").input.tolist()
    assert shown(page)[:5] == widest[:5]
    page.select_option("#sort", "output")
    assert shown(page)[:5] == explained.sort_values("f_x", ascending=False, kind="stable").input.tolist()[:5]


def test_the_questions_of_an_auditor(large: Any, gallery: Open) -> None:
    run, _ = large
    page = gallery(large)
    table, values = run.inputs_table().to_pandas(), run.values_table().to_pandas()
    ok = table[table.failure.isna()].set_index("input")
    predicted = ok.target.str.extract(r"\[(\d)\]")[0]
    right = predicted == ok.label
    page.click("[data-question=wrong]")
    outputs = np.sort(ok.f_x[right])
    assert count(page) == ((ok.f_x >= outputs[len(outputs) // 4]) & ~right).sum() > 0
    assert "a quarter of the right ones" in page.inner_text("#meaning")
    first = values.loc[values.groupby("input").phi.apply(lambda phi: phi.abs().idxmax())].set_index("input")
    sure = first.phi.abs() > first.half_width
    page.click("[data-question=decides]")
    page.select_option("#feature", "dose")
    assert count(page) == ((first.name == "dose") & sure).sum() > 0
    page.click("[data-question=uncertain]")
    wide = ok.certificate > (ok.f_x - ok.f_baseline).abs()
    assert count(page) == (~sure.reindex(ok.index) | wide).sum() > 0
    page.click("[data-question=failed]")
    assert count(page) == table.failure.notna().sum()
    page.click("[data-question=opposed]")
    assert count(page) == 0
    assert "kept no explanations" in page.inner_text("#meaning")
    assert page.is_visible("#nothing")


def test_the_keyboard_reads_the_list(large: Any, gallery: Open) -> None:
    page = gallery(large)
    focused = "document.activeElement.querySelector('.name .strong')?.textContent"
    page.focus(".case[tabindex='0']")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == "case 00002"
    page.keyboard.press("End")
    assert page.evaluate(focused) == "case 09999"
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) == "case 09999"
    page.keyboard.press("PageUp")
    assert page.evaluate("Number(document.activeElement.dataset.place)") < 9999
    page.keyboard.press("Home")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "detail"
    assert page.inner_text("#detail h3") == "case 00000"
    page.keyboard.press("Escape")
    assert page.evaluate(focused) == "case 00000"
    page.keyboard.press("n")
    assert page.evaluate("document.activeElement.id") == "note"
    row = page.locator(".case").first
    assert row.get_attribute("role") == "row"
    assert row.get_attribute("aria-rowindex") == "1"
    assert page.eval_on_selector_all(".case > *", "all => new Set(all.map(e => e.getAttribute('role'))).size") == 1


def test_a_note_is_kept_and_exported_safely(small: Any, gallery: Open) -> None:
    page = gallery(small)
    page.click(".case:has-text('patient 03')")
    page.fill("#note", '=HYPERLINK("http://evil"), see "ward, 3"')
    page.fill("#query", "=cmd")
    page.click(".case")
    page.fill("#note", "-2 is not possible\nask again")
    page.reload()
    settled(page)
    page.click(".case:has-text('patient 03')")
    assert page.input_value("#note") == '=HYPERLINK("http://evil"), see "ward, 3"'
    assert page.locator(".case:has-text('patient 03') .flag:has-text('note')").count() == 1
    page.select_option("#by-state", "noted")
    assert count(page) == 2
    with page.expect_download() as waiting:
        page.click("#export-notes")
    rows = list(csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text(), newline="")))
    assert {row["input"] for row in rows} == {"patient 03", "'=cmd()"}
    assert {row["note"] for row in rows} == {
        '\'=HYPERLINK("http://evil"), see "ward, 3"',
        "'-2 is not possible\nask again",
    }
    with page.expect_download() as waiting:
        page.click("#export-list")
    for row in csv.DictReader(io.StringIO(Path(waiting.value.path()).read_text(), newline="")):
        for cell in row.values():
            assert not cell.startswith(("=", "+", "@")), cell
            assert not cell.startswith("-") or re.fullmatch(r"-\d.*", cell), cell  # a number


def test_a_click_opens_the_full_report(small: Any, gallery: Open) -> None:
    run, _ = small
    page = gallery(small)
    name = page.inner_text("#detail h3")
    page.click("#open-report")
    settled(page)
    explanation = run.explanation(name)
    assert name in page.inner_text("h1")
    assert page.locator("#table-box tr[data-row]").count() == explanation.n_features


def test_hostile_names_stay_text(small: Any, gallery: Open) -> None:
    page = gallery(small)
    assert page.inner_text("h1") == HOSTILE
    names = shown(page)
    assert HOSTILE in names
    page.locator(".case", has_text=HOSTILE).first.click()
    assert page.inner_text("#detail h3") == HOSTILE
    assert page.locator("img").count() == 0
    assert page.locator("#importance-box td", has_text=HOSTILE).count() == 1


def test_statistics_have_their_intervals(small: Any, gallery: Open) -> None:
    run, _ = small
    page = gallery(small)
    importance = gralis.global_importance(run)
    first = int(np.argmax(importance.mean_abs))
    text = page.inner_text("#importance-box tr:first-child")
    assert importance.names[first] in text
    value = page.locator("#importance-box tr:first-child td:last-child").inner_text()
    assert float(value.split(" ±")[0].replace("−", "-")) == pytest.approx(importance.mean[first], rel=0.01)
    page.wait_for_selector("canvas.swarm")  # drawn a moment after the page
    assert page.locator("canvas.swarm").count() == 1
    drawn = "c => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size"
    assert page.eval_on_selector("canvas.swarm", drawn) > 10
    page.select_option("#compare-a", "1")
    page.select_option("#compare-b", "1")
    assert "two different classes" in page.inner_text("#compare-table")
    page.select_option("#compare-b", "0")
    turned = page.inner_text("#compare-table td:last-child >> nth=0")
    page.select_option("#compare-a", "0")
    page.select_option("#compare-b", "1")
    assert page.inner_text("#compare-table td:last-child >> nth=0") == turned.translate(str.maketrans("+−", "−+"))


def test_light_dark_phone_and_print(large: Any, gallery: Open) -> None:
    ink = "getComputedStyle(document.body).color"
    light, dark = gallery(large, color_scheme="light"), gallery(large, color_scheme="dark")
    assert light.evaluate(ink) != dark.evaluate(ink)
    phone = gallery(large, viewport={"width": 390, "height": 800}, has_touch=True)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    assert phone.locator(".case").count() <= MOST_ROWS
    phone.tap(".case >> nth=1")
    assert phone.inner_text("#detail h3") == "case 00001"
    light.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    light.emulate_media(media="print")
    assert light.locator(".case").count() == 60
    assert "9,940 more" in light.inner_text("#more-printed")
    assert light.is_hidden("#filters")
    boxes = [each.bounding_box() for each in light.locator(".case").all()[:20]]
    assert all(a["y"] + a["height"] <= b["y"] + 1 for a, b in pairwise(boxes))  # none over another


def test_a_lost_file_is_named(large: Any, browser: Any, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(large[1].parent, tmp_path / "copy")
    (tmp_path / "copy/data/rows-00003.js").unlink()
    page = browser.new_page()
    page.goto((tmp_path / "copy/index.html").as_uri())
    settled(page)
    assert "data/rows-00003.js cannot be read" in page.inner_text("#loading")
    page.close()
