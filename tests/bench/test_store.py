"""The store: whole files or none, of the same study only; a run that was killed goes on and gives the same table."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gralis
from bench.workshop import furnish
from gralis.bench import Store
from gralis.errors import GralisError


def test_a_record_counts_for_its_content_and_settings_only(tmp_path):
    store = Store(tmp_path, {"budget": 3})
    store.put("../a", "abc", {"image": "../a", "value": 0.1})
    assert Store(tmp_path, {"budget": 3}).get("../a", "abc") == {"image": "../a", "value": 0.1}
    assert store.get("../a", "other content") is None
    assert store.get("b", "abc") is None
    assert {path.parent.name for path in tmp_path.rglob("*.json")} == {tmp_path.name, "images"}
    with pytest.raises(GralisError, match="budget = 3, and now it is 4"):
        Store(tmp_path, {"budget": 4})


@pytest.mark.parametrize(
    "harm", [lambda b: b[:-20], lambda b: b.replace(b"0.1", b"0.2"), lambda b: b"", lambda b: b"[]"]
)
def test_a_torn_or_altered_file_does_not_count(tmp_path, harm):
    store = Store(tmp_path, {})
    store.put("a", "abc", {"value": 0.1})
    (path,) = (tmp_path / "images").iterdir()
    path.write_bytes(harm(path.read_bytes()))
    assert store.get("a", "abc") is None


def test_what_a_killed_run_left_is_cleared(tmp_path):
    store = Store(tmp_path, {})
    (tmp_path / "images" / ".gralis-0123").write_text("half")
    Store.read(tmp_path)  # a reader may come while another run writes: it clears nothing
    assert list((tmp_path / "images").iterdir())
    with store.writing():
        assert not list((tmp_path / "images").iterdir())


def test_a_second_run_into_the_same_folder_is_refused(tmp_path):
    with Store(tmp_path, {}).writing(), pytest.raises(GralisError, match="Another run"), Store(tmp_path, {}).writing():
        pass
    with Store(tmp_path, {}).writing():
        pass


def _command(folder: Path, out: str) -> list[str]:
    options = "--methods gralis,random,gradcam --metrics deletion,road_morf,gini --size 16 --segments 6 --budget 150"
    given = ["--images", "photos", "--labels", "labels.csv", "--model", "net.py:build", "--out", out]
    return [sys.executable, "-m", "gralis", "bench", *given, *options.split(), "--workers", "1", "--quiet"]


def test_resuming_after_a_kill_gives_the_same_table(tmp_path):
    furnish(tmp_path, n=4)
    environment = {**os.environ, "PYTHONPATH": str(Path(gralis.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    started = {"cwd": tmp_path, "env": environment, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    assert subprocess.run(_command(tmp_path, "whole"), **started, timeout=300).returncode == 0
    process = subprocess.Popen(_command(tmp_path, "killed"), **started)
    until = time.monotonic() + 240
    while not list(tmp_path.glob("killed/images/*.json")) and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    left = {path: path.stat().st_mtime_ns for path in tmp_path.glob("killed/images/*.json")}
    assert left
    assert not (tmp_path / "killed" / "scores.csv").exists() or len(left) == 4
    assert subprocess.run(_command(tmp_path, "killed"), **started, timeout=300).returncode == 0
    for name in ("scores.csv", "means.csv", "tests.csv", "curves.csv", "attributions.csv"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    assert all(path.stat().st_mtime_ns == when for path, when in left.items())  # not made again
    with (tmp_path / "whole" / "scores.csv").open() as stream:
        lines = list(csv.DictReader(stream))
    assert len(lines) == 4 * 3 * 3
    assert all(float(line["value"]) == float(line["value"]) for line in lines)
    assert json.loads((tmp_path / "whole" / "run.json").read_text())["sha256"]


def test_a_damaged_run_json_is_said_to_be_written_anew(tmp_path):
    Store(tmp_path, {"budget": 3})
    (tmp_path / "run.json").write_text("{")
    with pytest.warns(UserWarning, match=r"run.json cannot be read.*written anew"):
        Store(tmp_path, {"budget": 3})


def test_a_file_where_the_ledgers_should_be_is_one_sentence(tmp_path):
    store = Store(tmp_path, {})
    (tmp_path / "ledgers").write_text("")
    with pytest.raises(GralisError, match="Cannot write"):
        store.ledger("a")
