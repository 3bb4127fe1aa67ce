"""`gralis batch`: a folder or a table, again and again into the same folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import gralis
from cli.workshop import network

pytest.importorskip("pyarrow")
ROWS = ("batch", "table.csv", "--drop", "price", "--model", "net.py:rows", "--target", "output", "--out", "rows")


def test_every_row_of_a_table(gralis_run) -> None:
    code, out, error = gralis_run(*ROWS, "--budget", "60")
    assert (code, error) == (0, "")
    assert out == "3 inputs, 0 without a result, in rows\n"
    found = gralis.many.Results("rows")
    rows = np.array([[31, 1.8, 80], [45, 1.6, 55], [23, 1.7, 68]])
    alone = gralis.explain(network("rows"), rows[1], baseline=rows.mean(0), budget=None, plan="exhaustive")
    values = found.values_table().to_pydict()
    assert values["name"][:3] == ["age", "height", "weight"]
    assert values["phi"][3:6] == pytest.approx(alone.values.tolist(), abs=1e-6)
    assert gralis_run(*ROWS, "--budget", "60", "--json")[0] == 0  # nothing left to do
    code, _, error = gralis_run(*ROWS, "--budget", "61")
    assert code == 2
    assert "budget = 60, and now it is 61" in error


def test_a_folder_of_pictures_of_which_one_is_none(gralis_run) -> None:
    Path("pictures/deep").mkdir(parents=True)
    shutil.copy("photo.jpg", "pictures/photo.jpg")
    shutil.copy("other.png", "pictures/deep/other.png")
    Path("pictures/torn.png").write_bytes(b"no picture")
    options = ("batch", "pictures", "--model", "net.py:build", "--size", "24", "--segments", "4", "--budget", "60")
    code, out, error = gralis_run(*options, "--out", "results", "--json")
    told = json.loads(out)
    assert (code, told["inputs"], [one["input"] for one in told["failures"]]) == (2, 3, ["torn.png"])
    found = gralis.many.Results("results")
    assert list(found.ids) == ["deep/other.png", "photo.jpg", "torn.png"]
    code, out, error = gralis_run(*options, "--out", "strict", "--strict")
    assert code == 2
    assert "'torn.png' cannot be explained" in error
    code, _, _ = gralis_run(*options[:-4], "--grid", "12", "--budget", "60", "--out", "grid", "--ledgers")
    assert gralis.many.Results("grid").explanation("photo.jpg").n_features == 4


def test_a_bad_row_is_one_failure_and_no_part_of_the_baseline(gralis_run) -> None:
    lines = Path("table.csv").read_text().splitlines()
    Path("table.csv").write_text("\n".join([*lines, lines[1].replace("31", "Rome"), "1,2"]) + "\n")
    code, out, error = gralis_run(*ROWS, "--budget", "60")
    assert (code, out) == (2, "5 inputs, 2 without a result, in rows\n")
    assert "column 'age' is 'Rome'" in error
    rows = np.array([[31, 1.8, 80], [45, 1.6, 55], [23, 1.7, 68]])
    alone = gralis.explain(network("rows"), rows[1], baseline=rows.mean(0), budget=None, plan="exhaustive")
    values = gralis.many.Results("rows").values_table().to_pydict()
    assert values["phi"][3:6] == pytest.approx(alone.values.tolist(), abs=1e-6)


def test_a_folder_with_another_normalisation_is_another_run(gralis_run) -> None:
    Path("pictures").mkdir()
    shutil.copy("photo.jpg", "pictures/photo.jpg")
    options = ("batch", "pictures", "--model", "net.py:build", "--size", "24", "--grid", "12", "--budget", "60")
    assert gralis_run(*options, "--out", "seen")[0] == 0
    code, _, error = gralis_run(*options, "--out", "seen", "--mean", "0,0,0", "--std", "1,1,1")
    assert code == 2
    assert "inputs.mean" in error
    for change, sentence in (
        (("--target", "label"), "--target label is for tables"),
        (("--id", "a"), "--id is for tables"),
        (("--label", "a"), "--label is for tables"),
        (("--drop", "a"), "--drop is for tables"),
    ):
        code, out, error = gralis_run(*options, "--out", "new", *change)
        assert (code, out) == (2, "")
        assert sentence in error


def test_bad_calls_are_one_sentence(gralis_run) -> None:
    for change, sentence in (
        (("none.csv",), "There is no file or folder none.csv"),
        (("table.csv", "--drop", "nothing"), "no column 'nothing'"),
        (("table.csv", "--baseline", "blue"), "--baseline must be"),
        (("table.csv", "--engine", "cloud"), "one of 'local', 'ray'"),
    ):
        code, out, error = gralis_run("batch", *change, "--model", "net.py:rows", "--out", "bad")
        assert (code, out) == (2, "")
        assert sentence in error
        assert error.count("\n") == 1
