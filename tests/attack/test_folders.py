"""A prepared results folder destroys nothing, and a lock is what it says in every process."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import gralis
from gralis.bench.store import Store
from gralis.errors import GralisError
from gralis.many.store import ResultsFolder
from gralis.storage.folder import Entry
from gralis.storage.lock import Lock
from many import small

PRECIOUS = "precious " * 10


@pytest.fixture
def elsewhere(tmp_path) -> Path:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "file").write_text(PRECIOUS)
    (folder / ".gralis-0").write_text(PRECIOUS)  # looks like a leftover of a run
    return folder


def unharmed(elsewhere: Path) -> bool:
    names = sorted(path.name for path in elsewhere.iterdir())
    return names == [".gralis-0", "file"] and all(path.read_text() == PRECIOUS for path in elsewhere.iterdir())


def explain(out: Path):
    return gralis.explain_many(lambda z: z.prod(1), torch.ones(3, 2), out=out, budget=40, progress=False)


@pytest.mark.parametrize("kind", ["symbolic", "short and symbolic", "hard", "short and hard", "pipe", "long"])
def test_what_is_no_lock_is_left_as_it_is(tmp_path, elsewhere, kind) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (tmp_path / "short").write_text("abc")
    match kind:
        case "symbolic":
            (out / "lock").symlink_to(elsewhere / "file")
        case "short and symbolic":  # only that it is a link can tell
            (out / "lock").symlink_to(tmp_path / "short")
        case "hard":
            (out / "lock").hardlink_to(elsewhere / "file")
        case "short and hard":
            (out / "lock").hardlink_to(tmp_path / "short")
        case "pipe":
            os.mkfifo(out / "lock")
        case "long":
            (out / "lock").write_text(PRECIOUS)
    for write in (explain, lambda folder: Store(folder, {}).writing().__enter__()):
        with pytest.raises(GralisError, match=r"lock cannot be locked \(it is"):
            write(out)
    assert unharmed(elsewhere)
    assert (tmp_path / "short").read_text() == "abc"
    assert kind != "long" or (out / "lock").read_text() == PRECIOUS


@pytest.mark.parametrize("name", ["values", "inputs", "ledgers", "images"])
def test_a_linked_subfolder_is_refused(tmp_path, elsewhere, name) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / name).symlink_to(elsewhere)
    write = (lambda folder: Store(folder, {}).writing().__enter__()) if name == "images" else explain
    with pytest.raises(GralisError, match=f"{name} is a link"):
        write(out)
    assert unharmed(elsewhere)


def test_a_linked_manifest_is_not_followed(tmp_path, elsewhere) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "manifest.jsonl").symlink_to(elsewhere / "file")
    assert len(explain(out)) == 3
    assert unharmed(elsewhere)
    assert not (out / "manifest.jsonl").is_symlink()
    (out / "manifest.jsonl").unlink()
    (elsewhere / "file").write_text("")
    (out / "manifest.jsonl").symlink_to(elsewhere / "file")
    with pytest.raises(GralisError, match="Cannot write to"):
        explain(out)
    assert not (elsewhere / "file").read_text()


def test_a_folder_that_is_itself_a_link_is_the_users_choice(tmp_path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk")
    assert len(explain(tmp_path / "out")) == 3


OTHER = "from pathlib import Path; from gralis.storage.lock import Lock; Lock(Path({!r})).__enter__()"


def test_a_lock_survives_that_its_process_reads_the_file(tmp_path) -> None:
    """With lockf, closing any other file of this name gives the lock away."""
    with Lock(tmp_path):
        (tmp_path / "lock").read_bytes()
        other = subprocess.run([sys.executable, "-c", OTHER.format(str(tmp_path))], capture_output=True, text=True)
        assert f"Another run (process {os.getpid()})" in other.stderr


def in_child(folder: Path, answers) -> None:
    try:
        with Lock(folder):
            answers.put("taken")
    except GralisError as error:
        answers.put(str(error))


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_names_its_parent_and_does_not_keep_its_lock(tmp_path) -> None:
    context = multiprocessing.get_context("fork")
    answers, wait = context.Queue(), context.Event()
    sleeper = context.Process(target=wait.wait)
    with Lock(tmp_path) as held:
        sleeper.start()  # it inherits the open file and outlives the lock
        child = context.Process(target=in_child, args=(tmp_path, answers))
        child.start()
        assert f"Another run (process {os.getpid()})" in answers.get(timeout=60)
        child.join()
        leaving = context.Process(target=held.__exit__, args=(None, None, None))  # as at the end of a forked block
        leaving.start()
        leaving.join()
        assert leaving.exitcode == 0
        other = subprocess.run([sys.executable, "-c", OTHER.format(str(tmp_path))], capture_output=True, text=True)
        assert "Another run" in other.stderr  # the child has not released it either
    with Lock(tmp_path):
        pass
    wait.set()
    sleeper.join()


@pytest.mark.filterwarnings("ignore:.*was removed or changed during the run")
@pytest.mark.parametrize("name", ["manifest.jsonl", "run.json"])
@pytest.mark.parametrize("moment", [3, small.N])
def test_a_file_that_is_removed_during_the_run_loses_no_input(tmp_path, name, moment) -> None:
    def progress(done, total):
        if done >= moment and not removed:
            (tmp_path / name).unlink()
            removed.append(name)

    removed: list[str] = []
    found = small.explain(tmp_path, progress=progress)
    assert removed
    assert len(found) == small.N
    assert len(list(gralis.many.Results(tmp_path).ids)) == small.N


def test_pipes_in_a_folder_of_results_do_not_hang(tmp_path) -> None:
    for name in ("run.json", "manifest.jsonl"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(GralisError, match=r"it has no run\.json that can be read"):
        gralis.many.Results(tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for read in (gralis.load, gralis.many.Importance.load, gralis.report.content_of, gralis.report.archive_of):
        with pytest.raises(GralisError, match="There is no file"):
            read(pipe)


def test_a_pipe_in_place_of_the_manifest_or_of_a_table_does_not_stop_a_run(tmp_path) -> None:
    nothing = hashlib.sha256(b"").hexdigest()
    folder = ResultsFolder(tmp_path / "run", {})
    with folder.writing():
        os.mkfifo(folder.path / TABLE)
        folder.entries[0] = Entry(0, ["0"], 0, 0.0, {TABLE: [0, nothing]})
        assert folder.content(0, TABLE) is None
    (folder.path / "manifest.jsonl").unlink(missing_ok=True)
    os.mkfifo(folder.path / "manifest.jsonl")
    with pytest.raises(GralisError, match=r"manifest\.jsonl is not a file; remove it"), folder.writing():
        pass


TABLE = "values/00000000.parquet"
CHANGES = [{"block": [1]}, {"block": "x"}, {"ids": 3}, {"ids": [3]}, {"failed": "x"}, {"seconds": None}]
CHANGES += [{"files": {}}, {"files": {"run.json": 1}}, {"files": {TABLE: 3}}, {"files": [TABLE]}]


@pytest.mark.parametrize("change", CHANGES)
def test_a_line_of_the_manifest_with_other_types_does_not_count(tmp_path, change) -> None:
    explain(tmp_path)
    folder = ResultsFolder.read(tmp_path)
    entry = json.loads((tmp_path / "manifest.jsonl").read_text().partition(" ")[2]) | change
    text = json.dumps(entry, separators=(",", ":"))
    (tmp_path / "manifest.jsonl").write_text(f"{folder._digest(text)} {text}\n")
    found = gralis.many.Results(tmp_path)
    try:
        found.values_table()
    except GralisError:
        assert change == {"files": {}}
    else:
        assert len(found) == 0
