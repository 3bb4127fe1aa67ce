"""What keeps a fuzz test from harm: a limit of the memory of this process, and a folder of its own to write into."""

from __future__ import annotations

import contextlib
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

GIB = 3


@pytest.fixture(autouse=True, scope="module")
def bounded_memory() -> Iterator[None]:
    """3 GiB more than now: what asks for more gets a MemoryError, which is a raw error."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    now = Path("/proc/self/statm")
    if now.exists():
        pages = int(now.read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + GIB * 2**30, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture(autouse=True, scope="module")
def own_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Paths drawn at random are written here, and not where pytest was started."""
    with contextlib.chdir(tmp_path_factory.mktemp("fuzz")):
        yield
