"""A node that is lost, and an object store that is full: each in a process of its own, which it cannot take along."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import gralis
from many import ray_start, small

pytest.importorskip("ray")
SCRIPT = Path(__file__).with_name("ray_losses.py")
SECONDS = 900  # then it hangs


def run(what, folder):
    """What the script prints. Everything that Ray starts or writes stays with the process and its folder."""
    # Ray notes its latest cluster in its folder, and other tests would join it; paths of sockets must be short.
    place = tempfile.mkdtemp(prefix="ray")
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(SCRIPT), what, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=ray_start.environment(RAY_TMPDIR=place, HOME=str(folder)),
        start_new_session=True,
    )
    try:
        return process.communicate(timeout=SECONDS)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # its own group, made above
        pytest.fail(f"{what}: it took more than {SECONDS} s\n{process.communicate()[0][-2000:]}")
    finally:
        shutil.rmtree(place, ignore_errors=True)


def phi(folder):
    return gralis.many.Results(folder).values_table()["phi"].to_numpy()


def test_a_lost_node_costs_no_input(tmp_path):
    """The worker on it never answers, so its blocks are explained again, or the run does not end."""
    printed = run("node", tmp_path)
    assert "a node is lost" in printed, printed[-2000:]
    assert f"finished {small.N} 0" in printed, printed[-2000:]
    options = {"target": 0, "budget": 120, "block_size": 2, "progress": False}
    gralis.explain_many(small.network(), small.inputs(), out=tmp_path / "local", **options)
    assert phi(tmp_path / "ray") == pytest.approx(phi(tmp_path / "local"), abs=1e-6)


def test_more_inputs_than_the_object_store_holds(tmp_path):
    printed = run("store", tmp_path)
    assert "finished 6 0" in printed, printed[-2000:]


def test_a_model_that_does_not_fit_the_object_store_is_one_sentence(tmp_path):
    printed = run("full", tmp_path)
    assert "sentence The model does not fit into Ray's object store" in printed, printed[-2000:]
