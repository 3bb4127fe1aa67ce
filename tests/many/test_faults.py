"""Killed, tampered with, run twice, out of disk: what was finished stays, nothing is missing, nothing is twice."""

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import gralis
from gralis.errors import GralisError
from gralis.many.store import ResultsFolder
from many import small

SCRIPT = Path(__file__).with_name("small.py")


def start(folder, *arguments, env=None, **options):
    environment = env or {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, str(SCRIPT), str(folder), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
        **options,
    )


def contents(folder):
    """Every result file by its bytes; the manifest without the seconds that blocks took."""
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.glob("*/*"))}
    entries = {n: (entry.ids, entry.failed, entry.files) for n, entry in ResultsFolder.read(folder).entries.items()}
    return files, dict(sorted(entries.items()))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    assert small.explain(folder).n_failures == 0
    torch.set_num_threads(threads)
    return contents(folder)


def read_all(folder):
    found = gralis.many.Results(folder)
    return found.values_table(), found.inputs_table(), [found.explanation(k) for k in found.ids]


def kill_after(folder, steps, moment):
    """Kill a slow run -9 some time after its n-th step that touches the disk; how it ended."""
    process = start(folder, "0.02")
    for line in process.stdout:
        steps -= line == "step\n"
        if steps <= 0 or line == "done\n":
            break
    time.sleep(moment)
    process.kill()
    process.communicate()
    return process.returncode


def check_killed(folder, undisturbed, rng):
    kills = 0
    for _ in range(2):  # kill the run that goes on as well
        kills += kill_after(folder, rng.randrange(1, 70), rng.random() * 0.05) == -signal.SIGKILL
    small.explain(folder)
    assert contents(folder) == undisturbed
    assert not list(folder.rglob(".gralis-*"))
    return kills


@pytest.mark.parametrize("seed", range(2))
def test_killed_at_any_moment_and_run_again_it_is_the_undisturbed_run(seed, tmp_path, undisturbed):
    assert check_killed(tmp_path / "out", undisturbed, random.Random(seed)) >= 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 22))
def test_killed_at_twenty_more_moments(seed, tmp_path, undisturbed):
    assert check_killed(tmp_path / "out", undisturbed, random.Random(seed)) >= 1


def test_finished_blocks_are_not_computed_again(tmp_path, monkeypatch):
    net, asked = small.network(), []
    counted = lambda points: asked.append(len(points)) or net(points)  # noqa: E731
    options = {"out": tmp_path, "target": 0, "budget": 120, "block_size": 5, "progress": False}

    def stopping(done, total):
        if done == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gralis.explain_many(counted, small.inputs(), **{**options, "progress": stopping})
    spent = sum(asked)
    gralis.explain_many(counted, small.inputs(), **options)
    assert 0 < sum(asked) - spent < spent  # 4 inputs were left of 14
    asked.clear()
    found = gralis.explain_many(counted, small.inputs(), **options)
    assert not asked
    assert list(found.ids) == [str(k) for k in range(14)]


def test_every_truncated_or_altered_file_is_named_and_made_again(tmp_path, undisturbed):
    small.explain(tmp_path)
    rng = random.Random(1)
    for name in [*rng.sample(sorted(undisturbed[0]), 5), "inputs/00000002.parquet", "values/00000000.parquet"]:
        path = tmp_path / name
        content = bytearray(path.read_bytes())
        match rng.randrange(3):
            case 0:
                path.write_bytes(content[: rng.randrange(len(content))])
            case 1:
                content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
                path.write_bytes(content)
            case 2:
                path.unlink()
        with pytest.raises(GralisError, match=f"{path.name} is missing, truncated or altered"):
            read_all(tmp_path)
        with pytest.warns(UserWarning, match=f"{path.name} is missing, truncated or altered; . inputs are explained"):
            small.explain(tmp_path)
        assert contents(tmp_path) == undisturbed


def test_an_altered_manifest_costs_at_most_the_work_of_its_lines(tmp_path, undisturbed):
    small.explain(tmp_path)
    manifest = tmp_path / "manifest.jsonl"
    whole = manifest.read_bytes()
    rng = random.Random(2)
    for _ in range(25):
        content = bytearray(whole)
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        manifest.write_bytes(content)
        intact = ResultsFolder.read(tmp_path).entries
        assert set(intact) <= set(undisturbed[1])
        for number, entry in intact.items():  # what is left is what was written: no line is believed that was altered
            assert (entry.ids, entry.failed, entry.files) == undisturbed[1][number]
    small.explain(tmp_path)
    assert contents(tmp_path) == undisturbed
    manifest.write_bytes(whole[:-7])
    small.explain(tmp_path)
    assert contents(tmp_path) == undisturbed


def test_a_manifest_cannot_point_out_of_the_folder(tmp_path):
    small.explain(tmp_path / "out")
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    store = ResultsFolder.read(tmp_path / "out")
    entry = store.entries[0]
    entry.files["../secret"] = [6, "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"]
    (tmp_path / "out" / "manifest.jsonl").write_bytes(store._line(entry))
    assert 0 not in ResultsFolder.read(tmp_path / "out").entries


def test_ids_that_look_like_paths_stay_inside(tmp_path):
    names = ["../../escape", "/etc/passwd", "a\0b", "<script>alert(1)</script>", "..", "x" * 5000, "ä\n"]
    found = gralis.explain_many(
        small.network(), small.inputs()[:7], ids=names, out=tmp_path / "out", ledgers=True, target=0, budget=120
    )
    assert sorted(found.ids) == sorted(names)
    assert {path.name for path in tmp_path.iterdir()} == {"out"}
    assert len(list((tmp_path / "out" / "ledgers").iterdir())) == 7
    for name in names:
        assert found.explanation(name).n_features == 6


def test_the_second_of_two_runs_is_refused_and_a_dead_one_is_no_hindrance(tmp_path):
    process = start(tmp_path / "out", "0.5")
    try:
        assert process.stdout.readline() == "ready\n"
        assert process.stdout.readline() == "step\n"
        with pytest.raises(GralisError, match=f"Another run \\(process {process.pid}\\) is writing"):
            small.explain(tmp_path / "out")
    finally:
        process.kill()
        process.communicate()
    small.explain(tmp_path / "out")

    def again(done, total):
        with pytest.raises(GralisError, match="Another run"):
            small.explain(tmp_path / "here")
        refused.append(done)

    refused = []
    small.explain(tmp_path / "here", progress=again)  # within one process
    assert refused


def test_other_settings_another_model_or_other_inputs_do_not_mix(tmp_path):
    small.explain(tmp_path)
    with pytest.raises(GralisError, match="a run with budget = 120, and now it is 150"):
        small.explain(tmp_path, budget=150)
    with pytest.raises(GralisError, match="a run with baseline"):
        small.explain(tmp_path, baseline=torch.ones(6))
    options = {**small.OPTIONS, "out": tmp_path}
    other = small.network()
    with torch.no_grad():
        other[0].weight[0, 0] += 1e-3
    with pytest.raises(GralisError, match="a run with model"):
        gralis.explain_many(other, small.inputs(), **options)
    with pytest.raises(GralisError, match="not those of the run"):
        gralis.explain_many(small.network(), small.inputs(), ids=[f"other {k}" for k in range(14)], **options)
    with pytest.raises(GralisError, match="more inputs than there are now"):
        gralis.explain_many(small.network(), small.inputs()[:6], **options)
    more = torch.cat([small.inputs(), torch.ones(5, 6)])
    found = gralis.explain_many(small.network(), more, **options)
    assert list(found.ids) == [str(k) for k in range(19)]


def test_a_seed_that_was_drawn_is_kept(tmp_path):
    first = small.explain(tmp_path, seed=None).values_table()
    assert small.explain(tmp_path, seed=None).values_table().equals(first)


def test_failures_can_be_tried_again(tmp_path):
    broken = tmp_path / "broken"  # a file, because a variable of the model would make it another model
    broken.touch()

    def moody(points):
        if broken.exists() and (points[:, 0] > 50).any():
            raise RuntimeError("not today")
        return points.sum(1)

    x = torch.cat([small.inputs()[:4], torch.full((1, 6), 60.0)])
    options = {"out": tmp_path / "run", "budget": 120, "block_size": 2, "progress": False}
    assert [f.id for f in gralis.explain_many(moody, x, **options).failures] == ["4"]
    broken.unlink()
    assert gralis.explain_many(moody, x, **options).n_failures == 1
    assert gralis.explain_many(moody, x, retry=True, **options).n_failures == 0


LIMITED = """
import resource, sys, pathlib
from many import small
def limited(done, total):
    resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))
small.explain(pathlib.Path(sys.argv[1]), block_size=7, progress=limited)
"""


def test_a_disk_that_refuses_is_one_sentence_and_what_was_there_stays(tmp_path):
    """The limit on file sizes fails a write as a full disk does, from the second block on."""
    assert hasattr(resource, "RLIMIT_FSIZE")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "OMP_NUM_THREADS": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "out")], capture_output=True, text=True, env=environment
    )
    assert ended.returncode
    last = ended.stderr.strip().splitlines()[-1]
    assert "GralisError: Cannot write to" in last
    assert "What was finished before is intact" in last
    assert not list((tmp_path / "out").rglob(".gralis-*"))
    assert list(gralis.many.Results(tmp_path / "out").ids) == [str(k) for k in range(7)]
    assert small.explain(tmp_path / "out", block_size=7).n_failures == 0


def test_a_full_disk(tmp_path):
    """The same on a file system of a few kilobytes, where one can be mounted."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        with pytest.raises(GralisError, match=r"No space left on device. What was finished before is intact"):
            small.explain(disk / "out")
        kept = gralis.many.Results(disk / "out")
        assert 0 < len(kept) < small.N
        assert kept.values_table().num_rows == 6 * len(kept)
        subprocess.run(["mount", "-o", "remount,size=4m", str(disk)], check=True)
        assert len(small.explain(disk / "out")) == small.N
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_run_json_is_checked_and_written_again(tmp_path, undisturbed):
    small.explain(tmp_path)
    known = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps({**known, "schema": "gralis.many/7"}))
    with pytest.raises(GralisError, match=r"gralis.many/7.*update"):
        small.explain(tmp_path)
    (tmp_path / "run.json").write_text(json.dumps(known)[:40])
    with pytest.raises(GralisError, match=r"no run.json that can be read"):
        gralis.many.Results(tmp_path)
    with pytest.warns(UserWarning, match="run.json is truncated or altered"):
        small.explain(tmp_path)
    assert contents(tmp_path) == undisturbed
