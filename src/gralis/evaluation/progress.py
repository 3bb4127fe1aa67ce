"""Progress: a bar on the terminal or in a notebook, phase by phase, or a callback of the user."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tqdm.auto import tqdm

from gralis.evaluation import clock

__all__ = ["SHOWN_AFTER", "Bar", "ProgressOption"]

ProgressOption = bool | Callable[[int, int], None] | None

SHOWN_AFTER = 2.0  # seconds, for a bar that nobody asked for
_BETWEEN_LOOKS = 0.5  # seconds
_BETWEEN_LINES = 10.0  # seconds, where every look is a line of a file


class Bar:
    """Shows the phase of a run and counts its points, or reports them to a callback.

    Parameters
    ----------
    progress : bool, callable or None
        True shows a bar at once and False none. None shows one after two seconds, if standard error is a terminal or
        the program runs in a notebook. A callable is called with (done, total).
    total : int
        What the callback counts: the gradients of the run, or its forwards if `counts_forwards`.
    unit : str, default="point"
        What the bar counts.
    counts_forwards : bool, default=False
        Whether the plan has no gradients.
    """

    def __init__(
        self, progress: ProgressOption, total: int, unit: str = "point", *, counts_forwards: bool = False
    ) -> None:
        self._callback = progress if callable(progress) and not isinstance(progress, bool) else None
        self._live = _somebody_looks()
        self.wanted = progress is True or (progress is None and self._live)
        self._shown_at = clock.now() + (0.0 if progress is True else SHOWN_AFTER)
        self._counts_forwards, self._unit = counts_forwards, unit
        self._done, self._total = 0, total
        self._stop: StopIteration | None = None
        self._bar: Any = None
        self._phase: tuple[str, int | None, int] = ("", total, 0)  # name, total, points done
        self._lock, self._closed = threading.RLock(), threading.Event()

    def __enter__(self) -> Bar:
        if self.wanted:
            self.look()
            threading.Thread(target=self._look_again, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()
        with self._lock:
            if self._bar is not None:
                self._bar.close()
        if self._stop is not None:  # batches are generators, in which Python replaces a StopIteration by a RuntimeError
            raise self._stop from None

    def expect(self, total: int) -> None:
        """Replace the total of the callback by a better one."""
        self._total = total

    def phase(self, name: str, total: int | None = None) -> None:
        """Begin a phase with this many points. Without a total, as in a fit, the bar shows the time alone."""
        with self._lock:
            self._phase = (name, total, 0)
            if self._bar is not None:
                self._bar.set_description_str(_title(name), refresh=False)
                self._bar.reset()
                self._bar.total = total  # `reset` keeps the total of the phase before if there is none
            self.look()

    def add(self, n_gradients: int, n_forwards: int = 0) -> None:
        """Count the points of a batch, or other units of work."""
        with self._lock:
            name, total, done = self._phase
            self._phase = (name, total, done + n_gradients + n_forwards)
            if self._bar is not None:
                self._bar.update(n_gradients + n_forwards)
            else:
                self.look()
        n = n_forwards if self._counts_forwards else n_gradients
        self._done += n
        if self._callback is not None and n:
            try:
                self._callback(self._done, max(self._total, self._done))
            except StopIteration as stop:
                self._stop = stop
                raise

    def look(self) -> None:
        """Show the bar if its time has come, and the seconds that have passed."""
        with self._lock:
            if not self.wanted or self._closed.is_set() or clock.now() < self._shown_at:
                return
            if self._bar is None:
                name, total, done = self._phase
                every = 0.1 if self._live else _BETWEEN_LINES
                bar = tqdm(
                    total=total, initial=done, unit=self._unit, desc=_title(name), leave=False, mininterval=every
                )
                self._bar = bar
            else:
                self._bar.refresh()

    def _look_again(self) -> None:
        """A fit tells nothing while it runs, so that somebody else has to look."""
        while not self._closed.wait(_BETWEEN_LOOKS if self._live else _BETWEEN_LINES):
            self.look()


def _title(phase: str) -> str:
    return f"gralis: {phase}" if phase else "gralis"


def _somebody_looks() -> bool:
    """Whether standard error is a terminal, or the program runs in a notebook."""
    if sys.stderr.isatty():
        return True
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
