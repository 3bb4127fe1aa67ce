"""The page: every text escaped, nothing fetched, the numbers of the tables; and the command that writes it."""

from __future__ import annotations

import re
import shlex
import xml.etree.ElementTree as ElementTree
from html.parser import HTMLParser

import numpy as np
import pytest

from bench.workshop import Generated, furnish, network
from gralis.bench import Study, page, run
from gralis.bench.charts import MethodCurve, curves, intervals
from gralis.bench.study_page import mean_curves
from gralis.bench.tables import write_tables


class Tags(HTMLParser):
    """Every element, and that each is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_the_page_is_whole_escaped_and_alone(tmp_path):
    evil = "<script>alert(1)</script>&\"'"
    records = run(
        Study(methods=("occlusion", "random"), metrics=("deletion", "gini")), Generated(4), network, tmp_path, workers=1
    )
    for record in records:
        record["image"] = evil + record["image"]
    records.append({"image": evil, "error": evil})
    text = page(records, title=evil, about=[evil], facts={evil: evil}, sections=[("more " + evil, "<p>mine</p>")])
    tags = Tags()
    tags.feed(text)
    assert not tags.open
    assert "script" not in {tag for tag, _ in tags.seen}
    assert not [a for _, a in tags.seen if {"src", "href", "onload", "style"} & set(a)]
    assert text.count("&lt;script&gt;") >= 6
    assert "What failed" in text
    assert "<p>mine</p>" in text


def test_tables_say_what_the_page_says(tmp_path):
    records = run(
        Study(methods=("occlusion", "random"), metrics=("deletion",)), Generated(4), network, tmp_path, workers=1
    )
    written = write_tables(records, tmp_path, "patient")
    assert {path.name for path in written} >= {"scores.csv", "means.csv", "tests.csv", "curves.csv"}
    values = [s["value"] for r in records for s in r["scores"] if s["method"] == "occlusion"]
    assert re.search(rf"occlusion</td><td class=\"right\">{np.mean(values):.3g}</td>", page(records))
    parquet = pytest.importorskip("pyarrow.parquet")
    assert parquet.read_table(tmp_path / "scores.parquet").num_rows == 8


def test_mean_curves_of_different_places_are_read_off_a_grid():
    def record(at, values):
        return {"image": "a", "scores": [{"method": "m", "metric": "deletion", "curve": {"at": at, "values": values}}]}

    (line,) = mean_curves([record([0.0, 1.0], [1.0, 0.0]), record([0.0, 0.5, 1.0], [1.0, 1.0, 1.0])], "deletion", ["m"])
    assert line.values == pytest.approx(1 - line.at / 2)
    (line,) = mean_curves([record([0.0, 1.0], [1.0, 0.0]), record([0.0, 1.0], [3.0, 0.0])], "deletion", ["m"])
    assert line.values.tolist() == [2.0, 0.0]


def test_charts_are_well_formed_and_to_scale():
    drawn = curves([MethodCurve("m", np.array([0.0, 1.0]), np.array([0.0, 1.0]))], ["m"], "a < b", "F")
    root = ElementTree.fromstring(drawn)
    (line,) = [one for one in root.iter() if one.tag.endswith("polyline")]
    (x0, y0), (x1, y1) = (map(float, point.split(",")) for point in line.get("points").split())
    assert x1 > x0
    assert y1 < y0  # larger is higher
    root = ElementTree.fromstring(intervals({"m": (1.0, 0.5, 1.5), "n": (2.0, np.nan, np.nan)}, ["m", "n"], "deletion"))
    first, second = (float(one.get("cx")) for one in root.iter() if one.tag.endswith("circle"))
    assert second > first
    assert curves([], ["m"], "x", "y") == intervals({}, [], "x") == ""


def test_the_command_and_the_examples_of_its_help(tmp_path, monkeypatch, capsys):
    from gralis.cli.app import run as command
    from gralis.cli.bench import EXAMPLES

    furnish(tmp_path)
    monkeypatch.chdir(tmp_path)
    small = shlex.split("--size 16 --segments 4 --budget 120 --workers 1 --repeats-on 1 --n-repeats 2")
    for _, line in EXAMPLES:
        code = command([*shlex.split(line)[1:], *small, *(["--limit", "2"] if "--planted" in line else [])])
        said = capsys.readouterr()
        assert (code, said.err) == (0, ""), line
        assert ("evidence is ranked first" if "--planted" in line else "deletion") in said.out
    assert (tmp_path / "study" / "page.html").is_file()
    (tmp_path / "photos" / "p1.png").write_bytes(b"")
    code = command([*shlex.split(EXAMPLES[2][1])[1:], *small, "--json"])
    said = capsys.readouterr()
    assert code == 2
    assert said.err.count("\n") == 1
    assert "p1.png" in said.err
    assert command([*shlex.split(EXAMPLES[2][1])[1:], *small, "--metrics", "no"]) == 2
    assert "'metrics'" in capsys.readouterr().err
