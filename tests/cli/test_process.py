"""The command as its users start it: a process of its own, with pipes that close, disks that fill up and Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import gralis
from cli.workshop import command

ROW = ("explain", "--data", "table.csv", "--row", "0", "--drop", "price", "--model", "net.py:rows")


def environment(**more: str) -> dict[str, str]:
    """This source tree first, whatever is installed."""
    return {**os.environ, "PYTHONPATH": str(Path(gralis.__file__).parents[1]), "OMP_NUM_THREADS": "1", **more}


def start(*arguments: str, **options) -> subprocess.CompletedProcess[str]:
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
    return subprocess.run([*command(), *arguments], text=True, env=environment(), timeout=300, **streams)


def one_sentence(error: str) -> str:
    assert error.startswith("gralis: "), error
    assert error.count("\n") == 1, error
    return error


def test_the_command_explains_in_a_folder_with_spaces(folder) -> None:
    done = start(*ROW, "--json", "--out", "results of today")
    assert (done.returncode, done.stderr) == (0, "")  # nothing on stderr where it is no terminal
    found = json.loads(done.stdout)
    assert found["features"] == ["age", "height", "weight"]
    assert (folder / "results of today" / "table row 0.gralis").is_file()
    assert (folder / "results of today" / "table row 0.png").is_file()
    again = start("replay", "results of today/table row 0.gralis", "--model", "net.py:rows")
    assert (again.returncode, again.stdout[:5]) == (0, "Same:")


def test_a_wrong_model_is_two_and_one_sentence(folder) -> None:
    done = start("explain", "photo.jpg", "--model", "no/such/file.py:build")
    assert (done.returncode, done.stdout) == (2, "")
    assert "there is no file no/such/file.py" in one_sentence(done.stderr)


def test_the_tolerance_decides_the_exit_code(folder) -> None:
    small = ("--size", "24", "--segments", "12", "--budget", "200", "--tolerance", "1e-9")
    done = start("explain", "photo.jpg", "--model", "net.py:build", *small)
    assert done.returncode == 3
    assert "not reached" in done.stdout


def test_a_closed_pipe_ends_with_one_sentence(folder) -> None:
    read, written = os.pipe()
    os.close(read)
    done = start(*ROW, stdout=written)
    os.close(written)
    assert done.returncode == 141
    assert "standard output was closed" in one_sentence(done.stderr)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_standard_output_ends_with_one_sentence(folder) -> None:
    with open("/dev/full", "w") as full:
        done = start(*ROW, stdout=full)
    assert done.returncode == 2
    assert "standard output cannot be written: No space left on device" in one_sentence(done.stderr)


@pytest.fixture
def tiny_disk(tmp_path) -> Iterator[Path]:
    """A file system of 24 kB."""
    place = tmp_path / "tiny"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24k", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting a small file system needs root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_ends_with_one_sentence_and_no_half_file(folder, tiny_disk) -> None:
    small = ("--size", "48", "--budget", "120", "--segments", "5")
    done = start("explain", "photo.jpg", "--model", "net.py:build", *small, "--out", str(tiny_disk))
    assert done.returncode == 2
    assert "No space left on device" in one_sentence(done.stderr)
    assert "sum of phi" in done.stdout  # the numbers are not lost with the disk
    left = [path for path in tiny_disk.iterdir() if path.suffix != ".gralis"]
    assert left == []


def _heed_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_ctrl_c_ends_with_one_sentence(folder) -> None:
    (folder / "slow.py").write_text(
        "import pathlib, time\ndef build():\n    pathlib.Path('begun').touch()\n    time.sleep(60)\n"
    )
    line = [*command(), "explain", "photo.jpg", "--model", "slow.py:build"]
    pipes = {"stderr": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    # A test run in the background of a shell ignores the signal, and its children would too.
    with subprocess.Popen(line, env=environment(), **pipes, preexec_fn=_heed_ctrl_c) as process:
        while not (folder / "begun").exists() and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "interrupted" in one_sentence(error)


def test_a_completion_script_is_printed(folder) -> None:
    done = subprocess.run(command(), env=environment(_GRALIS_COMPLETE="source_bash"), capture_output=True, text=True)
    assert done.returncode == 0
    assert "complete" in done.stdout
    assert "_GRALIS_COMPLETE" in done.stdout
