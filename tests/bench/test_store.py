"""The store: whole files or none, of the same study only; a run that was killed goes on and gives the same table."""

from __future__ import annotations

import csv
import json
import os
import shutil
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

GOLDEN = Path(__file__).with_name("golden")


def test_a_record_counts_for_its_content_and_settings_only(tmp_path):
    with Store(tmp_path, {"budget": 3}).writing() as store:
        store.put("../a", "abc", {"image": "../a", "value": 0.1})
    for again in (store, Store.read(tmp_path)):
        assert again.get("../a", "abc") == {"image": "../a", "value": 0.1}
        assert again.get("../a", "other content") is None
        assert again.get("b", "abc") is None
    assert {path.parent.name for path in tmp_path.rglob("*.json")} == {tmp_path.name, "images"}
    with pytest.raises(GralisError, match="budget = 3, and now it is 4"), Store(tmp_path, {"budget": 4}).writing():
        pass


@pytest.mark.parametrize(
    "harm", [lambda b: b[:-20], lambda b: b.replace(b"0.1", b"0.2"), lambda b: b"", lambda b: b"[]"]
)
def test_a_torn_or_altered_file_does_not_count(tmp_path, harm):
    with Store(tmp_path, {}).writing() as store:
        store.put("a", "abc", {"value": 0.1})
    (path,) = (tmp_path / "images").iterdir()
    path.write_bytes(harm(path.read_bytes()))
    assert store.get("a", "abc") is None


@pytest.mark.timeout(60)  # without the check it waits for ever
def test_a_pipe_in_place_of_a_record_is_no_record(tmp_path):
    with Store(tmp_path, {}).writing() as store:
        store.put("a", "abc", {"value": 0.1})
    (path,) = (tmp_path / "images").iterdir()
    path.unlink()
    os.mkfifo(path)
    assert store.get("a", "abc") is None


def test_what_a_killed_run_left_is_cleared(tmp_path):
    with Store(tmp_path, {}).writing():
        pass
    (tmp_path / "images" / ".gralis-0123").write_text("half")
    Store.read(tmp_path)  # a reader may come while another run writes: it clears nothing
    assert list((tmp_path / "images").iterdir())
    with Store(tmp_path, {}).writing():
        assert not list((tmp_path / "images").iterdir())


def test_a_second_run_into_the_same_folder_is_refused(tmp_path):
    with Store(tmp_path, {}).writing(), pytest.raises(GralisError, match="Another run"), Store(tmp_path, {}).writing():
        pass
    with Store(tmp_path, {}).writing():
        pass


def _finished(folder: Path) -> list[Path]:
    """The images that are in the manifest; its last line may be half written."""
    manifest = folder / "manifest.jsonl"
    lines = manifest.read_text().splitlines(keepends=True) if manifest.exists() else []
    entries = [json.loads(line.partition(" ")[2]) for line in lines if line.endswith("\n")]
    return [folder / name for entry in entries for name in entry["files"]]


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
    while not _finished(tmp_path / "killed") and time.monotonic() < until:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    left = {path: path.stat().st_mtime_ns for path in _finished(tmp_path / "killed")}
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
    assert json.loads((tmp_path / "whole" / "run.json").read_text())["settings"]["budget"] == 150


def test_a_damaged_run_json_is_written_again_and_the_records_count(tmp_path):
    with Store(tmp_path, {"budget": 3}).writing() as store:
        store.put("a", "abc", {"value": 0.1})
    (tmp_path / "run.json").write_text("{")
    with (
        pytest.warns(UserWarning, match=r"run.json is truncated or altered; it is written again"),
        Store(tmp_path, {"budget": 3}).writing() as store,
    ):
        assert store.get("a", "abc") == {"value": 0.1}


def test_a_file_where_the_ledgers_should_be_is_one_sentence(tmp_path):
    (tmp_path / "ledgers").write_text("")
    with pytest.raises(GralisError, match="Cannot write"), Store(tmp_path, {}).writing():
        pass


def test_a_study_of_schema_1_is_continued(tmp_path):
    """golden/ is never written again. Schema 1 had no manifest: every file carried its checksum."""
    shutil.copytree(GOLDEN / "study-1", tmp_path / "study")
    settings = json.loads(json.loads((tmp_path / "study" / "run.json").read_text())["content"])["settings"]
    names = ["image 0", "image 1"]
    with Store(tmp_path / "study", settings).writing() as store:
        records = [store.get(name, f"{index} True") for index, name in enumerate(names)]
        assert [record["image"] for record in records] == names
        assert len(records[0]["scores"]) == 4
        assert store.get("image 0", "1 True") is None
        store.put("image 2", "2 True", {"image": "image 2"})
    again = Store.read(tmp_path / "study")
    assert again.get("image 1", "1 True") == records[1]
    assert again.get("image 2", "2 True") == {"image": "image 2"}
    (path, *_) = [path for path in (tmp_path / "study" / "images").iterdir() if b"content" in path.read_bytes()]
    path.write_bytes(path.read_bytes().replace(b"gini", b"tiny"))
    assert None in [again.get(name, f"{index} True") for index, name in enumerate(names)]
    with pytest.raises(GralisError, match="n_repeats = 5, and now it is 6"):
        Store(tmp_path / "study", {**settings, "n_repeats": 6}).writing().__enter__()
