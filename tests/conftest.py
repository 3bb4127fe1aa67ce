"""Threads, drawing and hypothesis for all tests; no silent skips in CI, steady names, tests in fresh processes."""

import functools
import os
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
import torch
from hypothesis import settings

from in_browser import browser, open_page

__all__ = ["browser", "open_page"]  # fixtures

os.environ.setdefault("MPLBACKEND", "Agg")

if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)

settings.register_profile("local", deadline=None)
settings.register_profile("continuous", deadline=None, derandomize=True)
settings.load_profile("continuous" if os.environ.get("CI") else "local")

#: How a skip for something that is not installed reads: importorskip's own words, and those of our tests.
MISSING = re.compile(r"could not import|is not installed|needs chromium|needs node")


def fail_if_missing(report: pytest.TestReport | pytest.CollectReport) -> None:
    """In CI, turn a skip for a missing package into a failure: what is not installed was not tested."""
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    if "CI" in os.environ and report.skipped and MISSING.search(reason):
        report.outcome = "failed"
        report.longrepr = f"{reason}: in CI a missing package is a failure; add it to the extra `test`"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    fail_if_missing(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    fail_if_missing(report)
    return report


def pytest_itemcollected(item: pytest.Item) -> None:
    """Refuse a name with an address, which differs between the processes of pytest-xdist: these then run nothing."""
    if " at 0x" in item.nodeid:
        raise pytest.UsageError(f"{item.nodeid}: the name holds an address; give the parameters `ids`.")


def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """What weighs the process itself runs in a new one: a worker that ran other tests has their threads and memory."""
    if pyfuncitem.get_closest_marker("fresh_process") is None or "IN_A_FRESH_PROCESS" in os.environ:
        return None
    config = pyfuncitem.config
    told = tests_in_a_fresh_process(pyfuncitem.path, config.rootpath, config.option.markexpr)
    assert f"PASSED {pyfuncitem.nodeid}\n" in told, told
    return True


@functools.cache
def tests_in_a_fresh_process(path: Path, root: Path, chosen: str) -> str:
    """What pytest tells about the tests of a file that are marked so and chosen, all of them in one process."""
    marks = f"fresh_process and ({chosen})" if chosen else "fresh_process"
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = {**inherited, "IN_A_FRESH_PROCESS": "1", "OMP_NUM_THREADS": "1"}
    # The time limit of the test that waits holds for all of them.
    command = [sys.executable, "-m", "pytest", "-q", "-rA", "--timeout=0", "-p", "no:cacheprovider", "-m", marks]
    return subprocess.run([*command, str(path)], cwd=root, env=environment, capture_output=True, text=True).stdout
