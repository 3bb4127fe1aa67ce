"""Progress and time: a bar on the terminal or a callback of the user, and a clock with a limit."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tqdm.auto import tqdm

__all__ = ["Bar", "ProgressOption", "Stopwatch"]

ProgressOption = bool | Callable[[int, int], None] | None


class Bar:
    """Counts gradients, or another unit of work, on a bar or with a callback.

    `progress` says where: None shows a bar if the program runs on a terminal, True always and False never; a callable
    is called with (done, total).
    """

    def __init__(self, progress: ProgressOption, total: int, unit: str = "gradient") -> None:
        self._callback = progress if callable(progress) and not isinstance(progress, bool) else None
        shown = progress is True or (progress is None and sys.stderr.isatty())
        self._bar: Any = tqdm(total=total, unit=unit, desc="gralis", leave=False) if shown else None
        self._done, self._total = 0, total
        self._stop: StopIteration | None = None

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        if self._stop is not None:  # batches are generators, in which Python replaces a StopIteration by a RuntimeError
            raise self._stop from None

    def expect(self, total: int) -> None:
        """Replace the total by a better one."""
        self._total = total
        if self._bar is not None:
            self._bar.total = total
            self._bar.refresh()

    def add(self, n: int) -> None:
        """Count n more gradients."""
        self._done += n
        if self._bar is not None:
            self._bar.update(n)
        if self._callback is not None and n:
            try:
                self._callback(self._done, max(self._total, self._done))
            except StopIteration as stop:
                self._stop = stop
                raise


class Stopwatch:
    """Seconds since it was made, and whether the limit has passed."""

    def __init__(self, limit: float | None) -> None:
        self._start, self._limit = time.perf_counter(), limit

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    @property
    def over(self) -> bool:
        return self._limit is not None and self.seconds >= self._limit
