"""One run at a time in a folder; whatever keeps a folder from being locked is one sentence."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

from gralis.errors import GralisError
from gralis.storage.lock import Lock


def test_a_second_holder_is_refused_in_this_process_and_in_another(tmp_path):
    code = f"from pathlib import Path; from gralis.storage.lock import Lock; Lock(Path({str(tmp_path)!r})).__enter__()"
    with Lock(tmp_path):
        with pytest.raises(GralisError, match=f"process {os.getpid()}"):
            Lock(tmp_path).__enter__()
        other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert f"Another run (process {os.getpid()})" in other.stderr
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    with Lock(tmp_path):
        pass


def test_what_cannot_be_locked_gets_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "lock").mkdir()
    with pytest.raises(GralisError, match="cannot be locked"):
        Lock(tmp_path).__enter__()
    with pytest.raises(GralisError, match="cannot be locked"):
        Lock(tmp_path / "absent").__enter__()

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "other").mkdir()
    monkeypatch.setattr(os, "write", full)
    with pytest.raises(GralisError, match="No space left"):
        Lock(tmp_path / "other").__enter__()
    monkeypatch.undo()
    with Lock(tmp_path / "other"):  # and nothing is held
        pass


def test_gralis_can_be_imported_where_unix_modules_are_missing():
    code = "import sys; sys.modules['resource'] = None; sys.modules['fcntl'] = None; sys.platform = 'win32'\n"
    code += "import types; sys.modules['msvcrt'] = types.ModuleType('msvcrt')\nimport gralis.run, gralis.storage.lock\n"
    code += "from gralis.evaluation.cost import peak_bytes; assert peak_bytes() == 0"
    import_torch_first = "import torch, numpy, scipy, tqdm, multiprocessing, subprocess, zipfile, importlib.metadata\n"
    done = subprocess.run([sys.executable, "-c", import_torch_first + code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
