"""The clock of a run: it limits the time, sizes the batches and shows the bar. Tests replace `now`."""

from __future__ import annotations

import time

__all__ = ["Stopwatch", "TimeOverError", "now"]


def now() -> float:
    """Seconds on a clock that never goes back."""
    return time.perf_counter()


class TimeOverError(Exception):
    """The time of a run has passed before a batch began. `run` turns it into a result or into a sentence."""


class Stopwatch:
    """Seconds since it was made, and whether the limit has passed."""

    def __init__(self, limit: float | None) -> None:
        self._start, self.limit = now(), limit

    @property
    def seconds(self) -> float:
        return now() - self._start

    @property
    def over(self) -> bool:
        return self.limit is not None and self.seconds >= self.limit

    def check(self) -> None:
        """Raise `TimeOverError` if the limit has passed."""
        if self.over:
            raise TimeOverError
