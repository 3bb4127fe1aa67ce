"""How many points one batch holds, and in which memory layout: measured on the work itself, within a memory limit."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, isnan
from typing import Literal

from gralis.errors import ModelError
from gralis.models.failures import out_of_memory

__all__ = ["BatchSizer", "Layout"]

#: The order of the numbers in an image: channels outermost, or innermost as convolutions often prefer.
Layout = Literal["contiguous", "channels_last"]

_FIRST_SIZE = 8
_FIRST_WITHOUT_GRADIENTS = 1024  # of a black box, for which a call usually costs more than its rows
_SECONDS_FIRST = 1.0  # that it may take, by the time of F(x) and F(x')
_LARGEST_SIZE = 8192
_BRIEF_SECONDS = 0.02  # a batch that takes no longer is doubled at once
#: If a batch of a black box takes no longer, or hardly longer than the one before, the next is eight times as large.
_VERY_BRIEF_SECONDS, _NO_LONGER = 0.0025, 1.3
_PART = 0.8  # of a memory limit is used, because looks at the memory of a process miss a part of it
_GROWTH = 2  # a batch is at most this many times larger than one that was weighed
_WEIGHINGS = 2  # of a single point: the first also pays for what a library sets up once
_LEAST_GAIN = 1.03  # a larger batch is kept if it evaluates this many times more points per second


@dataclass
class BatchSizer:
    """Chooses the size and the layout of every batch: fixed, or doubled as long as the points per second improve.

    Every trial does real work. A trial is timed on its second batch, because the first one pays for the set-up inside
    the framework. With a memory limit, the first batch has one point, and what was weighed limits later ones.

    Attributes
    ----------
    size : int
        The size that was best so far.
    fixed : bool
        Whether the user chose the size; it is then only made smaller.
    layouts : tuple of Layout
        The layouts to try.
    limit : int
        The largest size after a batch ran out of memory.
    layout : Layout
        The layout that was best so far.
    most_seconds : float
        No batch should take longer.
    room : int
        The largest size that the memory limit allows, as far as batches were weighed.
    bytes_per_point : float
        The memory that a point needs, from the largest batch that was weighed.
    seconds_per_point : float
        The time of a point in the last full batch after the first; NaN before it.
    largest : int
        The points in the largest batch so far.
    """

    size: int
    fixed: bool
    layouts: tuple[Layout, ...] = ("contiguous",)
    limit: int = _LARGEST_SIZE
    layout: Layout = "contiguous"
    most_seconds: float = inf
    room: int = _LARGEST_SIZE
    bytes_per_point: float = 0.0
    seconds_per_point: float = float("nan")
    largest: int = 0
    _rates: dict[tuple[Layout, int], list[float]] = field(default_factory=dict)
    _trial: tuple[Layout, int] | None = None
    _weighed_size: int = 0
    _n_weighed: int = 0
    _n_batches: int = 0
    _seconds_before: float = 0.0
    _leaps: bool = False

    @classmethod
    def start(cls, batch_size: int | None, layouts: tuple[Layout, ...], gradients: bool = True) -> BatchSizer:
        """A fixed batch size keeps the first layout; None starts a search, with more points if no gradients follow."""
        if batch_size is not None:
            return cls(batch_size, True, layouts, layout=layouts[0])
        first = _FIRST_SIZE if gradients else _FIRST_WITHOUT_GRADIENTS
        return cls(first, False, layouts, _trial=(layouts[0], first), _leaps=not gradients)

    def next(self) -> tuple[Layout, int]:
        """The layout and the size of the next batch."""
        layout, size = self._trial or (self.layout, self.size)
        return layout, max(1, min(size, self.limit, self.room))

    @property
    def searching(self) -> bool:
        """Whether larger batches or other layouts are still to be tried."""
        return self._trial is not None and not self.fixed

    def unweighed(self, n_points: int) -> bool:
        """Whether a batch of this size tells more about the memory that points need."""
        again = n_points == self._weighed_size == 1 and self._n_weighed < _WEIGHINGS
        return again or n_points > self._weighed_size

    @property
    def knows_one_point(self) -> bool:
        """Whether `bytes_per_point` was weighed on a single point, and will not be weighed on one again."""
        return self._weighed_size == 1 and not self.unweighed(1)

    def weigh(self, n_points: int, n_bytes: int, most_bytes: int, *, careful: bool) -> None:
        """Learn how much memory a batch held. If `careful`, larger batches are tried step by step.

        For a single point the second one counts, because the first was not compared with a set-up process.
        """
        self._n_weighed = self._n_weighed + 1 if n_points == self._weighed_size else 1
        self._weighed_size = n_points
        self.bytes_per_point = n_bytes / n_points
        self.room = max(1, int((_PART if careful else 1.0) * most_bytes / self.bytes_per_point))
        if careful:
            self.room = 1 if self.unweighed(1) and n_points == 1 else min(self.room, _GROWTH * n_points)

    def note(self, layout: Layout, size: int, n_points: int, seconds: float) -> None:
        """Learn from the time of a batch; a last batch with fewer points than `size` teaches nothing."""
        self._n_batches, self.largest = self._n_batches + 1, max(self.largest, n_points)
        if self._n_batches > 1 and (n_points == size or isnan(self.seconds_per_point)):
            self.seconds_per_point = seconds / n_points
        before, self._seconds_before = self._seconds_before, seconds
        if seconds > self.most_seconds:
            self.limit = max(1, int(size * self.most_seconds / seconds))
        if self.fixed or self._trial is None:
            return
        if n_points < size:
            if self._n_batches == 1:
                suits = int(min(_SECONDS_FIRST, self.most_seconds) * n_points / max(seconds, 1e-9))
                self._trial = (layout, max(min(_FIRST_SIZE, size), min(self._trial[1], suits)))
            return
        if size < self._trial[1] and self.room > size:  # the trial waits until its memory is known
            return
        if seconds < _BRIEF_SECONDS and 2 * size <= self._most:  # mostly the overhead of a call
            self.layout, self.size = layout, size
            leaps = self._leaps and seconds < max(_VERY_BRIEF_SECONDS, _NO_LONGER * before)
            self._trial = (layout, min((8 if leaps else 2) * size, self._most))
            return
        rates = self._rates.setdefault((layout, size), [])
        rates.append(n_points / max(seconds, 1e-9))
        if len(rates) >= 2:
            self._trial = self._next_trial()

    def recover(self, error: Exception, layout: Layout, n_points: int) -> bool:
        """After a batch that failed, choose another size or layout; False if neither can help.

        A batch that ran out of memory is halved. A batch that failed in another layout is made again in the
        contiguous one: `x.view(len(x), -1)` works only there.
        """
        if out_of_memory(error):
            if n_points == 1:
                raise ModelError("The model runs out of memory on a single point: use a smaller input.") from error
            self.limit = max(1, self.next()[1] // 2)
            self.size, self._trial = min(self.size, self.limit), None
            return True
        if layout == "contiguous":
            return False
        self.layouts, self.layout, self._rates = ("contiguous",), "contiguous", {}
        self._trial = None if self._trial is None else ("contiguous", self._trial[1])
        return True

    @property
    def _most(self) -> int:
        """The largest size that a trial may have."""
        return min(self.limit, self.room, _LARGEST_SIZE)

    def _next_trial(self) -> tuple[Layout, int] | None:
        """First every other layout at the smallest size measured, then doubled sizes; None ends the search."""
        first = min(size for _, size in self._rates)
        for layout in self.layouts:
            if len(self._rates.get((layout, first), ())) < 2:
                return layout, first
        best = max(self._rates, key=lambda trial: self._rates[trial][-1])
        self.layout, self.size = best
        doubled = (best[0], 2 * best[1])
        if doubled in self._rates or doubled[1] > self._most:
            return None
        smaller = self._rates.get((best[0], best[1] // 2))
        climbing = smaller is None or self._rates[best][-1] > _LEAST_GAIN * smaller[-1]
        return doubled if climbing else None
