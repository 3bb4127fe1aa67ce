"""A name never stops a job and never reaches a terminal as a control sequence, wherever it comes from."""

from __future__ import annotations

import csv
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import gralis
from attack.crafted import archive
from gralis.bench.tables import write_tables
from gralis.cli.app import run
from gralis.errors import GralisError
from gralis.report import content_of
from gralis.storage.container import read_arrays
from gralis.views.names import literal

BAD = [r"$\foo$", "$", "a\x1b[31mb", "\udcff.png", "@CONTENT@", "</script><script>alert(1)</script>", "_", "a\nb\r\0"]
BAD += ["a\u202eb\u2028c"]  # the direction of a line, and its end


def explained(names=BAD, shape=None):
    features = gralis.features.groups(np.arange(len(names)).reshape(shape or (-1,)), names=names)
    x = torch.linspace(0.5, 1.5, len(names)).reshape(shape or (-1,))
    return gralis.explain(lambda z: (z**2).flatten(1).prod(1), x, features=features, budget=300)


@pytest.mark.parametrize("kind", gralis.views.plot_kinds())
def test_every_picture_can_be_drawn_and_saved(tmp_path, kind) -> None:
    result = explained(shape=(3, 3) if kind == "heatmap" else None)
    options = {"image": np.ones((3, 3))} if kind == "heatmap" else {}
    for ending in ("png", "svg", "pdf"):
        result.plot(kind, **options).savefig(tmp_path / f"a.{ending}")
        assert (tmp_path / f"a.{ending}").stat().st_size
    result.sweep([0.5, 1.0]).plot().savefig(tmp_path / "sweep.png")


def test_a_name_is_drawn_letter_by_letter() -> None:
    figure = explained([r"$\foo$", r"\$b"]).plot("bars")
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert sorted(labels) == sorted([literal(r"$\foo$"), literal(r"\$b")])
    assert sorted(text.replace(r"\$", "$") for text in labels) == sorted([r"$\foo$", r"\$b"])


def test_no_control_character_reaches_the_terminal_from_a_name_or_a_file(tmp_path) -> None:
    result = explained()
    assert not {"\x1b", "\u202e", "\u2028"} & set(repr(result) + result._repr_html_())
    saved = result.save(tmp_path / "why.gralis")
    arrays, meta = read_arrays(saved, "explanation")
    evil = "x\x1b]0;owned\x07"
    meta["features"]["names"] = [evil] * len(BAD)
    meta["method"], meta["model_doubts"] = evil, [evil]
    meta["kernel"] = {"type": "forgotten", "name": evil}
    meta["plan"]["name"] = evil
    blobs = {}
    for name, array in arrays.items():
        with (tmp_path / "a.npy").open("wb") as stream:
            np.lib.format.write_array(stream, np.array(array))
        blobs[name] = (tmp_path / "a.npy").read_bytes()
    loaded = gralis.load(archive(tmp_path / "evil.gralis", blobs, {k: v for k, v in meta.items() if k != "kind"}))
    for text in (repr(loaded), loaded._repr_html_(), str(loaded.doubts), repr(loaded.features), str(loaded.top(3))):
        assert "\x1b" not in text
        assert "\x07" not in text
    assert r"x\x1b" in repr(loaded)


def test_importances_of_others_are_printed_without_control_characters(tmp_path) -> None:
    sums = {"n": 9, "mean": [1.0], "mean_abs": [1.0], "squares": [1.0], "noise": [0.0], "with_total": [1.0]}
    sums |= {"f_mean": 0.0, "f_squares": 1.0}
    known = {"schema": "gralis.importance/1", "names": ["\x1b[2Jx"], "everyone": sums, "classes": {"\x1b": sums}}
    (tmp_path / "sums.json").write_text(json.dumps(known))
    loaded = gralis.many.Importance.load(tmp_path / "sums.json")
    assert "\x1b" not in repr(loaded)
    assert "\x1b" not in str(loaded.by_class)


def test_names_of_inputs_are_printed_without_control_characters() -> None:
    """Sensitivity names inputs, not features."""
    rows = np.random.default_rng(0).normal(size=(50, 2))
    found = gralis.sensitivity(
        lambda z: z.sum(1), rows, names=["a\x1b[2J", "\udcff"], budget=2000, sets=[("a\x1b[2J", 1)]
    )
    for text in (repr(found), found._repr_html_(), found.to_frame().to_csv()):
        text.encode()
        assert "\x1b" not in text
    columns = pd.DataFrame(rows, columns=["a\x1b[2J", "b"])
    assert "\x1b" not in repr(gralis.sensitivity(lambda z: z.sum(1), columns, budget=2000))


def test_marks_of_the_page_are_only_text_in_a_label(tmp_path) -> None:
    result = explained()
    for mark in ("@TITLE@", "@STYLE@", "@CONTENT@", "@ARITHMETIC@", "@SCRIPT@"):
        assert content_of(result.report(tmp_path / "why.html", label=mark, title=mark))["title"] == mark
    for label in BAD:
        path = result.report(tmp_path / "why.html", label=label, title=label)
        assert content_of(path)["schema"].startswith("gralis.report/")
        assert gralis.load(path).names == result.names
        assert path.read_text().count('id="gralis-report"') == 1


NET = "import torch\ndef build():\n    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(192, 2)).eval()\n"


def test_one_picture_with_a_name_that_is_not_utf_8_does_not_stop_the_others(tmp_path, monkeypatch, capsys) -> None:
    from PIL import Image

    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(NET)
    Path("photos").mkdir()
    pixels = np.random.default_rng(0).integers(0, 255, (8, 8, 3)).astype(np.uint8)
    Image.fromarray(pixels).save("photos/good.png")
    foreign = os.path.join("photos", os.fsdecode(b"\xff$x$.png"))
    try:
        shutil.copy("photos/good.png", foreign)
    except OSError:
        pytest.skip("the file system takes no such names")
    small = ("--model", "net.py:build", "--size", "8", "--segments", "4", "--budget", "60", "--target", "0", "--quiet")
    assert run(["explain", foreign, "photos/good.png", *small, "--out", "results"]) == 0
    assert len(list(Path("results").iterdir())) == 6
    assert run(["explain", foreign, "photos/good.png", *small, "--json"]) == 0
    assert run(["batch", "photos", *small, "--out", "many"]) == 0
    for file in Path("results").glob("*.gralis"):
        assert run(["report", str(file), "--out", "again.html"]) == 0
    study = ("--methods", "random", "--metrics", "deletion", "--workers", "1", "--out", "study")
    bench = [option for option in small if option not in ("--target", "0")]
    assert run(["bench", "--images", "photos", *bench, *study]) == 0
    capsys.readouterr()


def test_a_table_with_bad_column_names_is_explained(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text("import torch\ndef build():\n    return lambda z: z.prod(1)\n")
    Path("t.csv").write_text("$\\foo$,=1+1,a\x1bb\n1,2,3\n4,5,6\n")
    assert run(["explain", "--data", "t.csv", "--row", "0", "--model", "net.py:build", "--out", "results"]) == 0
    said = capsys.readouterr()
    assert "\x1b" not in said.out + said.err
    assert len(list(Path("results").iterdir())) == 3


def test_an_unexpected_error_of_one_input_does_not_stop_the_others(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text("import torch\ndef build():\n    return lambda z: z.prod(1)\n")
    Path("t.csv").write_text("a,b\n1,2\n3,4\n")
    real = gralis.cli.explain_run.explain

    def sometimes(model, x, **options):
        if float(x[0]) == 1:
            raise RecursionError("deep")
        return real(model, x, **options)

    monkeypatch.setattr(gralis.cli.explain_run, "explain", sometimes)
    command = ["explain", "--data", "t.csv", "--row", "0", "--row", "1", "--model", "net.py:build", "--json"]
    assert run(command) == 2
    said = capsys.readouterr()
    assert [("error" in json.loads(line)) for line in said.out.splitlines()] == [True, False]
    assert "unexpected RecursionError: deep" in said.err


def test_cells_of_a_study_are_never_formulas(tmp_path) -> None:
    name = "=HYPERLINK(1)"
    record = {"image": name, "about": {"patient": "@x"}, "timings": {"-all": -1.5}, "attributions": {"+m": [-0.5]}}
    write_tables([record], tmp_path)
    for path, negative in (("timings.csv", "-1.5"), ("attributions.csv", "-0.5")):
        rows = list(csv.reader((tmp_path / path).read_text().splitlines()))
        texts = [cell for row in rows for cell in row if not cell.replace(".", "").lstrip("-").isdigit()]
        assert not any(text.startswith(("=", "+", "-", "@")) for text in texts)
        assert any(negative in row for row in rows)  # numbers stay numbers
        assert f"'{name}" in rows[1]


def test_a_name_that_is_no_text_is_refused_or_shown() -> None:
    with pytest.raises(GralisError):
        gralis.features.columns([None, "a"])
    assert replace(explained(["a", "b"])).names == ("a", "b")
