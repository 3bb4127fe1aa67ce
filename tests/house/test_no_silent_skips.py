"""In CI a test that is skipped because something is not installed is a failure, and other skips stay skips."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
INSIDE = """
import shutil
import pytest

def test_a_package(): pytest.importorskip("a_package_that_nobody_has")
def test_in_our_words(): pytest.skip("tensorflow is not installed")
def test_a_page(browser): pass
def test_another_reason(): pytest.skip("mounting a small file system needs root")
"""
WHOLE_FILE = "import pytest\npytest.importorskip('a_package_that_nobody_has')\ndef test_never(): pass\n"


@pytest.mark.parametrize(("in_ci", "said"), [(True, "2 failed, 1 skipped, 2 errors"), (False, "5 skipped")])
def test_what_is_missing_fails_in_ci(tmp_path, in_ci, said):
    environment = {name: value for name, value in os.environ.items() if name != "CI" and "PYTEST" not in name}
    environment |= {"PYTHONPATH": f"{TESTS}:{os.environ.get('PYTHONPATH', '')}", "PATH": str(tmp_path)}  # no chromium
    if in_ci:
        environment["CI"] = "1"
    for name, content in (("test_inside.py", INSIDE), ("test_file.py", WHOLE_FILE)):
        (tmp_path / name).write_text(content)
    options = ["-q", "-p", "conftest", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    command = [sys.executable, "-m", "pytest", *options, str(tmp_path)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.stdout.splitlines()[-1].startswith(f"{said} in "), done.stdout + done.stderr
