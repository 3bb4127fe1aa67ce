"""Ray for tests on a busy machine: it inherits nothing, waits long, and starts again if its own start fails."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

Started = TypeVar("Started")

#: What Ray's processes read when they start. The defaults are those of a machine that has nothing else to do.
SETTINGS = {
    # Otherwise Ray writes a token into the home folder; two processes that start at once would overwrite each other's.
    "RAY_AUTH_MODE": "disabled",
    "RAY_gcs_server_port_wait_time_s": "120",
    "RAY_worker_register_timeout_seconds": "300",
    "RAY_health_check_timeout_ms": "60000",  # of a node that answers slowly; a lost one does not answer at all
    "RAY_worker_niceness": "0",  # otherwise everything else comes first, and a worker takes a minute to start
    "RAY_memory_monitor_refresh_ms": "0",  # it would kill our workers if the others fill the memory
}
TRIES = 3


def environment(**changes: str) -> dict[str, str]:
    """The variables of this process, without what an earlier cluster has left in them, and what workers import."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    places = [str(Path(__file__).parents[1]), *(path for path in sys.path if path)]
    return {**inherited, **SETTINGS, "PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1", **changes}


@contextlib.contextmanager
def in_this_process() -> Iterator[None]:
    """These variables for a cluster of this process; at the end, nothing that Ray has set is left."""
    before, wanted = dict(os.environ), environment()
    try:
        _become(wanted)
        yield
    finally:
        _become(before)


def _become(wanted: dict[str, str]) -> None:
    for name in set(os.environ) - set(wanted):
        if name.startswith("RAY_") or name in ("PYTHONPATH", "OMP_NUM_THREADS"):
            del os.environ[name]
    for name in ("PYTHONPATH", "OMP_NUM_THREADS", *(name for name in wanted if name.startswith("RAY_"))):
        if name in wanted:
            os.environ[name] = wanted[name]


def started(start: Callable[[], Started]) -> Started:
    """What `start` returns. It calls only Ray, so an error is Ray's own (mostly a timeout) and it is tried again."""
    import ray

    for left in reversed(range(TRIES)):
        try:
            return start()
        except Exception as error:  # Ray raises plain ones, too
            ray.shutdown()
            if not left:
                raise
            print(f"Ray did not start, trying again: {error}", flush=True)
    raise AssertionError("unreachable")
