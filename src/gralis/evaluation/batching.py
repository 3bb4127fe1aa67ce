"""How many points at once, and in which memory layout: measured on the work itself, within a memory limit."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from gralis.errors import ModelError
from gralis.evaluation.points import Layout
from gralis.models.failures import out_of_memory

Result = TypeVar("Result")

_FIRST = 8
_MOST = 8192
_BRIEF = 0.02  # seconds: a batch this short is doubled at once
_WORTH = 1.03  # a larger batch must be this much faster per point to be kept


@dataclass
class BatchSizer:
    """Batch size and layout: fixed, or found by climbing while the rate improves, every trial doing real work.

    A trial is timed on its second batch: the first one pays for set-up inside the framework.
    """

    size: int
    fixed: bool
    layouts: tuple[Layout, ...] = ("contiguous",)
    limit: int = _MOST
    layout: Layout = "contiguous"
    _rates: dict[tuple[Layout, int], list[float]] = field(default_factory=dict)
    _trial: tuple[Layout, int] | None = None

    @classmethod
    def start(cls, batch_size: int | None, layouts: tuple[Layout, ...]) -> BatchSizer:
        """A fixed batch size keeps the first layout; None searches."""
        if batch_size is not None:
            return cls(batch_size, True, layouts, layout=layouts[0])
        sizer = cls(_FIRST, False, layouts)
        sizer._trial = (layouts[0], _FIRST)
        return sizer

    def next(self) -> tuple[Layout, int]:
        """What to use for the next batch."""
        layout, size = self._trial or (self.layout, self.size)
        return layout, max(1, min(size, self.limit))

    def note(self, layout: Layout, n_points: int, asked: int, seconds: float) -> None:
        """A batch took this long; a batch cut short at the end of the work says nothing."""
        if self.fixed or self._trial is None or n_points < asked:
            return
        if seconds < _BRIEF and 2 * asked <= min(self.limit, _MOST):  # mostly the cost of calling: no need to compare
            self.layout, self.size = layout, asked
            self._trial = (layout, 2 * asked)
            return
        rates = self._rates.setdefault((layout, asked), [])
        rates.append(n_points / max(seconds, 1e-9))
        if len(rates) >= 2:
            self._trial = self._climb()

    def through(
        self, n_points: int, call: Callable[[slice, Layout], Result], use: Callable[[slice, Layout, Result], None]
    ) -> None:
        """`call` the model on points 0 .. n_points batch by batch, and `use` what it says, once.

        A call that runs out of memory is made again with half the points; one that fails in another layout is made
        again in the plain one: `x.view(len(x), -1)` works there only.
        """
        start = 0
        while start < n_points:
            layout, asked = self.next()
            part = slice(start, min(start + asked, n_points))
            began = time.perf_counter()
            try:
                found = call(part, layout)
            except Exception as error:
                if not out_of_memory(error):
                    if layout == "contiguous":
                        raise
                    self._keep_plain()
                    continue
                if part.stop - part.start == 1:
                    raise ModelError("The model runs out of memory on a single point: use a smaller input.") from error
                self.shrink()
                continue
            use(part, layout, found)
            self.note(layout, part.stop - part.start, asked, time.perf_counter() - began)
            start = part.stop

    def shrink(self) -> int:
        """Out of memory: half the batch from now on; the new limit."""
        self.limit = max(1, self.next()[1] // 2)
        self.size, self._trial = min(self.size, self.limit), None
        return self.limit

    def _keep_plain(self) -> None:
        """The plain layout from now on."""
        self.layouts, self.layout, self._rates = ("contiguous",), "contiguous", {}
        self._trial = None if self._trial is None else ("contiguous", self._trial[1])

    def _climb(self) -> tuple[Layout, int] | None:
        """The next trial: the other layouts at the first size compared, then doubled sizes; None: settled."""
        first = min(size for _, size in self._rates)
        for layout in self.layouts:
            if len(self._rates.get((layout, first), ())) < 2:
                return layout, first
        best = max(self._rates, key=lambda trial: self._rates[trial][-1])
        self.layout, self.size = best
        doubled = (best[0], 2 * best[1])
        if doubled in self._rates or doubled[1] > min(self.limit, _MOST):
            return None
        smaller = self._rates.get((best[0], best[1] // 2))
        climbing = smaller is None or self._rates[best][-1] > _WORTH * smaller[-1]
        return doubled if climbing else None
