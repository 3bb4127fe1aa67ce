"""Run checks on a copy of gralis: 0 if they pass, 1 if one fails, 2 if they cannot be run.

A check is a group of rows of the verification ("verify:library_laws._weights"), a whole module of it
("verify:library_laws"), or a test file ("tests/test_laws.py", perhaps with "::test_name").
"""

from __future__ import annotations

import importlib
import os
import resource
import sys
import traceback
from pathlib import Path

PASSED, FAILED, TROUBLE = 0, 1, 2

#: What the checks import besides gralis. A process that has imported it is copied for every mutant.
HEAVY = ("numpy", "scipy.stats", "scipy.linalg", "scipy.sparse.linalg", "scipy.optimize", "torch", "pytest")


def judge(copy: Path, root: Path, checks: tuple[str, ...], seconds: float) -> None:
    """Run the checks on copy/src in this process, print into copy/said, and exit with the code of the verdict.

    After so many seconds of computing (time on the clock does not count) the process is stopped by SIGXCPU.
    """
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, resource.RLIM_INFINITY))
    said = os.open(copy / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(said, stream)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(copy / "hypothesis")
    os.environ["CI"] = "1"  # hypothesis draws the same examples every time
    os.chdir(root)
    sys.dont_write_bytecode = True
    places = [str(copy / "src"), str(root / "tests")]
    sys.path[:0] = places
    os.environ["PYTHONPATH"] = os.pathsep.join(places)  # a test may start a process, which must see the mutant too
    try:
        code = _verdict(copy, checks)
    except BaseException:
        traceback.print_exc()
        code = TROUBLE
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _verdict(copy: Path, checks: tuple[str, ...]) -> int:
    """The first check that fails decides."""
    try:
        import gralis
    except Exception:
        traceback.print_exc(limit=1)
        return FAILED
    if not Path(gralis.__file__).is_relative_to(copy):
        print(f"gralis was imported from {gralis.__file__}, not from {copy}")
        return TROUBLE
    for check in checks:
        kind, _, name = check.partition(":")
        code = _rows(name) if kind == "verify" else _tests(check)
        if code != PASSED:
            return code
    return PASSED


def _rows(name: str) -> int:
    from gralis.paper.claim_row import collect

    module, _, group = name.partition(".")
    failed = [
        row
        for row in collect(getattr(importlib.import_module(f"gralis.paper.{module}"), group or "rows"))
        if not row.holds
    ]
    for row in failed[:1]:
        print(row)
    return FAILED if failed else PASSED


def _tests(path: str) -> int:
    import pytest

    code = pytest.main(["-q", "-x", "-p", "no:cacheprovider", "--no-header", "--tb=line", path])
    if code == pytest.ExitCode.OK:
        return PASSED
    # INTERRUPTED is an error at collection: the module under test cannot be imported.
    return FAILED if code in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED) else TROUBLE
