"""What the report draws for texts, series, volumes and rows of a table, and that it draws it in the right place."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import gralis
from gralis.report import content
from report_cases import HOSTILE, picture, sentence, series, shared, table_row, volume

Open = Callable[..., Any]


def test_a_text_is_its_words_in_order() -> None:
    explanation = sentence()
    view = content(explanation)["view"]
    assert view["type"] == "text"
    assert [explanation.names[i] for i, _ in view["pieces"] if i is not None] == list(explanation.names)
    assert "".join(text for _, text in view["pieces"]) == " ".join(explanation.names)


def test_a_text_is_compared_with_the_text_without_its_words() -> None:
    words = gralis.features.tokens(range(2), names=["not", "bad"])
    spans = {"text": "not so bad", "spans": [[0, 3], [7, 10]], "grain": "words"}
    present = gralis.features.Features(words.labels, words.names, "tokens", spans)
    found = content(gralis.explain(lambda z: z.sum(1), torch.ones(2), features=present))
    assert found["view"]["pieces"] == [[0, "not"], [None, " so "], [1, "bad"]]
    assert found["prediction"]["compared_with"] == "the same text in which all words are absent"


@pytest.mark.parametrize("layout", ["flat", "channels_first", "channels_last"])
def test_a_series_has_its_signal_and_windows(layout: str) -> None:
    signal = torch.sin(torch.arange(30.0, dtype=torch.float64))
    both = torch.stack([signal, 2 * signal])
    x = {"flat": signal, "channels_first": both, "channels_last": both.T.contiguous()}[layout]
    options = {} if layout == "flat" else {"channels": 2, "layout": layout}
    windows = gralis.features.windows(30, 8, **options, rate=10.0, unit="ms")
    found = content(gralis.explain(lambda z: z.flatten(1).sum(1), x, baseline=0.5, features=windows))
    view = found["view"]
    np.testing.assert_allclose(view["signals"], signal[None] if layout == "flat" else both)
    np.testing.assert_allclose(view["baselines"], np.full((1 if layout == "flat" else 2, 30), 0.5))
    assert view["windows"] == [[0, 8], [8, 16], [16, 24], [24, 30]]
    assert (view["rate"], view["unit"], view["length"]) == (10.0, "ms", 30)
    assert found["features"]["where"][3] == "steps 25 to 30"


@pytest.mark.parametrize(("layout", "shape"), [("channels_first", (2, 30)), ("channels_last", (30, 2))])
def test_one_window_over_all_channels_runs_along_time(layout: str, shape: tuple[int, int]) -> None:
    windows = gralis.features.windows(30, 30, 2, layout, rate=10.0)
    x = torch.arange(60.0).reshape(shape)
    view = content(gralis.explain(lambda z: z.flatten(1).sum(1), x, features=windows))["view"]
    assert (view["length"], view["n_channels"], view["windows"]) == (30, 2, [[0, 30]])
    np.testing.assert_array_equal(view["signals"], x.numpy() if layout == "channels_first" else x.numpy().T)


def test_a_long_series_is_thinned() -> None:
    windows = gralis.features.windows(5000, 1000)
    view = content(gralis.explain(lambda z: z.sum(1), torch.arange(5000.0), features=windows))["view"]
    assert view["step"] == 5
    assert view["signals"][0] == list(np.arange(0.0, 5000.0, 5))


def test_a_volume_has_its_voxels_and_regions() -> None:
    explanation = volume()
    found = content(explanation)
    view = found["view"]
    labels = np.frombuffer(base64.b64decode(view["labels"]["base64"]), "<i4").reshape(view["shape"])
    np.testing.assert_array_equal(labels, explanation.features.labels[0][0])
    voxels = np.frombuffer(base64.b64decode(view["voxels"]["base64"]), "u1").reshape(view["shape"])
    x = explanation.endpoints.x[0][0]
    np.testing.assert_array_equal(voxels, (255 * (x - x.min()) / (x.max() - x.min())).astype(np.uint8))
    assert view["centres"][0] == [2.5, 3.0, 3.5]
    assert found["features"]["noun"] == "region"
    assert found["features"]["where"][0] == "336 voxels"


def test_other_inputs_have_no_view() -> None:
    assert content(picture())["view"] is None
    assert content(shared())["view"] is None


def test_a_row_has_value_baseline_and_range() -> None:
    explanation = table_row()
    columns = content(explanation)["features"]["columns"]
    rows = explanation.endpoints.baselines[0]
    for i, value in enumerate(explanation.endpoints.x[0]):
        assert float(columns["value"][i]) == pytest.approx(value, rel=0.01)
        assert float(columns["baseline"][i].removeprefix("mean ")) == pytest.approx(rows[:, i].mean(), rel=0.01)
        low, high = columns["range"][i].split(" to ")
        assert (float(low), float(high)) == pytest.approx((rows[:, i].min(), rows[:, i].max()), rel=0.01)
    assert content(shared())["features"]["columns"]["range"] == [None] * 10


# --- in the browser --------------------------------------------------------------------------------------------------


@pytest.mark.browser
def test_the_sentence_is_in_colour(tmp_path: Path, open_page: Open) -> None:
    explanation = sentence()
    page = open_page(explanation.report(tmp_path / "why.html"))
    assert HOSTILE in page.inner_text(".sentence")
    worst = int(np.argmin(explanation.values))
    blue = page.evaluate(f"getComputedStyle(document.querySelector('.piece[data-region=\"{worst}\"]')).backgroundColor")
    parts = [float(part) for part in blue.replace("color(srgb ", "").rstrip(")").replace("/", " ").split()[:3]]
    assert parts[2] > parts[0]  # more blue than red
    page.click(".piece[data-region='3']")
    assert page.inner_text("#panel h3") == "not"
    page.focus(".piece[tabindex='0']")
    page.keyboard.press("ArrowRight")
    order = np.argsort(-np.abs(explanation.values), kind="stable")
    assert page.inner_text("#panel h3") == explanation.names[int(order[1])]
    assert page.locator("img").count() == 0


@pytest.mark.browser
def test_the_signal_lies_on_its_windows(tmp_path: Path, open_page: Open) -> None:
    explanation = series()
    page = open_page(explanation.report(tmp_path / "why.html"))
    assert page.locator("polyline.signal:not(.base)").count() == 2
    assert "time (s)" in page.inner_text("#figure")
    box, band = page.locator("svg.series").bounding_box(), page.locator(".region[data-region='2']").bounding_box()
    left = box["x"] + box["width"] * 46 / 720
    wide = box["width"] * (720 - 46 - 8) / 720
    assert band["x"] - left == pytest.approx(wide * 0.2, abs=3)
    page.click(".region[data-region='2']")
    assert page.inner_text("#panel h3") == explanation.names[2] == "0.2-0.3 s"


@pytest.mark.browser
def test_the_slices_are_scrolled_and_pointed_at(tmp_path: Path, open_page: Open) -> None:
    explanation = volume()
    page = open_page(explanation.report(tmp_path / "why.html"))
    labels = explanation.features.labels[0][0]
    assert page.locator(".volume canvas").count() == 3
    page.fill(".volume input >> nth=0", "1")
    page.click("canvas[data-plane='0']", position={"x": 3, "y": 3})
    assert page.inner_text("#panel h3") == explanation.names[labels[1, 0, 0]]
    sides = page.locator("canvas[data-plane='0']").bounding_box()
    page.click("canvas[data-plane='0']", position={"x": sides["width"] - 4, "y": sides["height"] - 4})
    assert page.inner_text("#panel h3") == explanation.names[labels[3, -1, -1]]
    page.locator("canvas[data-plane='2']").hover()
    before = page.inner_text(".volume label >> nth=2")
    page.mouse.wheel(0, 100)
    page.wait_for_function("text => document.querySelectorAll('.volume label')[2].textContent !== text", arg=before)
    first = "document.querySelector(\"canvas[data-plane='0']\").getContext('2d')"
    pixel = f"([x, y]) => [...{first}.getImageData(x, y, 1, 1).data]"
    page.fill(".volume input >> nth=0", "2")
    red, _, blue, _ = page.evaluate(pixel, [3, 3])
    assert red > blue  # the first block raises the output
    page.fill(".volume input >> nth=0", "9")
    red, _, blue, _ = page.evaluate(pixel, [11, 9])
    assert blue > red


@pytest.mark.browser
def test_the_table_shows_value_baseline_and_range(tmp_path: Path, open_page: Open) -> None:
    page = open_page(table_row().report(tmp_path / "why.html"))
    head = page.inner_text("#table-box thead")
    assert "range of the data" in head
    assert page.locator("#table-box tbody tr:first-child td.column").count() == 3
    phone = open_page(tmp_path / "why.html", viewport={"width": 390, "height": 800})
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
