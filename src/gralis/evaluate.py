"""The only module that calls the model: sheets in, ledger rows out, in batches.

Points are built on the device, one forward and one backward per batch, gradients of the inputs only; each batch is
reduced to features at once and accumulated in float64, so memory does not grow with the budget beyond the rows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gralis.canvas import Canvas, Layout
from gralis.errors import ModelError
from gralis.laws import Array, Masks
from gralis.ledger import Ledger
from gralis.models.blame import blame, out_of_memory
from gralis.models.points import leaves, shapes
from gralis.models.protocol import Guarded, Points
from gralis.pace import Pace
from gralis.problem import Problem
from gralis.sheet import Sheet

#: Called after every batch with the number of gradients in it; may raise to stop.
Progress = Callable[[int], None]
#: Takes the gradients of the points in a slice, (rows, n_features).
Consumer = Callable[[slice, Array], None]


@dataclass
class Cost:
    """What was spent. A gradient includes its own forward; n_forwards are forward-only evaluations."""

    n_gradients: int = 0
    n_forwards: int = 0
    n_rays: int = 0
    n_batches: int = 0
    seconds: float = 0.0
    peak_bytes: int = 0
    batch_size: int = 0
    bytes_per_point: int = 0
    layout: str = "contiguous"


class Evaluator:
    """Evaluates sheets of one problem; remembers v(T) of every coalition it has seen, so none is evaluated twice."""

    def __init__(
        self,
        problem: Problem,
        *,
        batch_size: int | None = None,
        max_memory: int | None = None,
    ) -> None:
        self.problem = problem
        self.cost = Cost()
        self._progress: Progress = lambda n: None
        images = any(leaf.ndim == 3 and leaf.shape[0] <= 16 and leaf.shape[-1] > 16 for leaf in problem.x)
        layouts: tuple[Layout, ...] = ("channels_last", "contiguous") if images else ("contiguous",)
        self._pace = {True: Pace.start(batch_size, layouts), False: Pace.start(batch_size, layouts)}
        self._max_memory = max_memory if max_memory is not None else _spare_memory(problem.device)
        own = sum(leaf.numel() * dtype.itemsize for leaf, dtype in zip(problem.x, problem.dtypes, strict=True))
        self._limit(6 * own)
        self._canvases: dict[Layout, Canvas] = {}
        self._values: dict[tuple[int, bytes], float] = {}
        self._weighed = False

    def report_to(self, progress: Progress) -> None:
        """Call `progress` after every batch from now on."""
        self._progress = progress

    def session(self) -> AbstractContextManager[None]:
        """Around all calls of one explanation: the model prepares once, and is restored once."""
        return self.problem.model.session() if isinstance(self.problem.model, Guarded) else nullcontext()

    def endpoints(self) -> tuple[float, Array]:
        """F(x) and F(x') of every baseline; v(full) and v(empty) are known from here on."""
        n, n_baselines = self.problem.n_features, self.problem.baselines.n_baselines
        masks = np.concatenate([np.ones((1, n), dtype=bool), np.zeros((n_baselines, n), dtype=bool)])
        values = self._forward(masks, np.concatenate([[0], np.arange(n_baselines)]))
        self._f_baseline = values[1:]
        everyone = np.arange(n_baselines)
        full, empty = np.ones((n_baselines, n), dtype=bool), np.zeros((n_baselines, n), dtype=bool)
        self._values.update(zip(self._keys(full, everyone), (values[0] - values[1:]).tolist(), strict=True))
        self._values.update(dict.fromkeys(self._keys(empty, everyone), 0.0))
        return float(values[0]), self._f_baseline

    def evaluate(self, sheet: Sheet, *, values: bool) -> Ledger:
        """The ledger rows of a sheet: gradients at its points, and v(T) if `values`."""
        gradient = np.empty((sheet.n_points, self.problem.n_features))

        def keep(part: slice, rows: Array) -> None:
            gradient[part] = rows

        self.stream(sheet, keep)
        known = self.values(sheet.masks, sheet.baseline) if values else np.full(sheet.n_rays, np.nan)
        return Ledger.record(sheet, gradient, known)

    def again(self, ledger: Ledger) -> Ledger:
        """The same rows, evaluated with this problem's model; values where the ledger has them."""
        gradient = np.empty_like(ledger.gradient)

        def keep(part: slice, rows: Array) -> None:
            gradient[part] = rows

        self._stream(ledger.masks, ledger.baseline, ledger.ray, ledger.node, keep)
        value, known = np.full(ledger.n_rays, np.nan), np.isfinite(ledger.value)
        value[known] = self.values(ledger.masks[known], ledger.baseline[known])
        return replace(ledger, gradient=gradient, value=value)

    def stream(self, sheet: Sheet, consume: Consumer) -> None:
        """Hand every batch of gradients, reduced to features, to `consume` and forget it."""
        ray = np.repeat(np.arange(sheet.n_rays), sheet.nodes.shape[1])
        nodes = np.ascontiguousarray(sheet.nodes, dtype=np.float64).ravel()
        self._stream(sheet.masks, sheet.baseline, ray, nodes, consume)

    def _stream(
        self, masks: Masks, baseline: NDArray[np.int64], ray: NDArray[np.int64], nodes: Array, consume: Consumer
    ) -> None:

        def one_batch(part: slice, points: Points, canvas: Canvas) -> None:
            values, gradients = self._weigh_once(points)
            _require_rows(values, points)
            _require_like(gradients, points)
            rows = canvas.to_features(gradients, self._on_device(baseline[ray[part]])).cpu().numpy()
            where = (masks[ray[part]], nodes[part])
            _require_finite(values.double().cpu().numpy(), "output", *where)
            _require_finite(rows, "gradient", *where)
            consume(part, rows)
            self.cost.n_gradients += len(rows)
            self._progress(len(rows))

        self._in_batches(masks, ray, nodes, baseline, one_batch, gradient=True)
        self.cost.n_rays += len(np.unique(ray))

    def values(self, masks: Masks, baseline: NDArray[np.int64]) -> Array:
        """v(T) = F(x_T) - F(x') of every row, each distinct coalition evaluated once."""
        keys = self._keys(masks, baseline)
        fresh = {key: row for row, key in enumerate(keys) if key not in self._values}
        if fresh:
            rows = np.fromiter(fresh.values(), dtype=np.int64)
            found = self._forward(masks[rows], baseline[rows]) - self._f_baseline[baseline[rows]]
            self._values.update(zip(fresh, found.tolist(), strict=True))
        return np.array([self._values[key] for key in keys])

    def _keys(self, masks: Masks, baseline: NDArray[np.int64]) -> list[tuple[int, bytes]]:
        """What tells coalitions apart: the members that move. A feature with x = x' makes no difference to F."""
        moving = masks & (self.problem.squared_distance > 0)[baseline]
        return [(int(number), row.tobytes()) for number, row in zip(baseline, moving, strict=True)]

    def _forward(self, masks: Masks, baseline: NDArray[np.int64]) -> Array:
        """F(x_T) of every row."""
        values, ones = np.empty(len(masks)), np.ones(len(masks))

        def one_batch(part: slice, points: Points, canvas: Canvas) -> None:
            with blame(f"The model {type(self.problem.model).__name__}", points):
                found = self.problem.model.value(points)
            _require_rows(found, points)
            values[part] = found.double().cpu().numpy()
            _require_finite(values[part], "output", masks[part], ones[part])
            self.cost.n_forwards += part.stop - part.start
            self._progress(0)

        self._in_batches(masks, np.arange(len(masks)), ones, baseline, one_batch, gradient=False)
        return values

    def _in_batches(
        self,
        masks: Masks,
        ray: NDArray[np.int64],
        nodes: Array,
        baseline: NDArray[np.int64],
        work: Callable[[slice, Points, Canvas], None],
        *,
        gradient: bool,
    ) -> None:
        """Build the points batch by batch and work on them; a batch that runs out of memory is halved and redone."""
        pace, start = self._pace[gradient], 0
        while start < len(ray):
            layout, asked = pace.next()
            part = slice(start, min(start + asked, len(ray)))
            began = time.perf_counter()
            try:
                rows = ray[part]
                canvas = self._canvas(layout)
                on, at, which = map(self._on_device, (masks[rows], nodes[part], baseline[rows]))
                points = canvas.points(on, at, which) if gradient else canvas.corners(on, which)
                work(part, points, canvas)
            except Exception as error:
                if not out_of_memory(error):
                    raise
                if part.stop - part.start == 1:
                    raise ModelError("The model runs out of memory on a single point: use a smaller input.") from error
                pace.shrink()
                continue
            pace.note(layout, part.stop - part.start, asked, time.perf_counter() - began)
            self.cost.n_batches += 1
            if gradient:
                self.cost.batch_size, self.cost.layout = max(self.cost.batch_size, part.stop - part.start), layout
            start = part.stop

    def _weigh_once(self, points: Points) -> tuple[Tensor, Points]:
        """value_and_gradient; the first time, count what autograd keeps per point and set the batch limit by it."""
        if self._weighed:
            return self._gradient(points)
        kept: dict[int, int] = {}

        def note(tensor: Tensor) -> tuple[Tensor, int]:
            kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
            saved = tensor.detach()  # the tensor itself would hold its own graph, for ever if the model fails
            return saved, saved._version

        def unchanged(saved: tuple[Tensor, int]) -> Tensor:
            if saved[0]._version != saved[1]:  # under hooks autograd does not look
                raise RuntimeError("a tensor needed for the gradient has been modified by an inplace operation")
            return saved[0]

        with torch.autograd.graph.saved_tensors_hooks(note, unchanged):
            result = self._gradient(points)
        self._weighed = True
        batch = leaves(points)
        own = sum(leaf.numel() * leaf.element_size() for leaf in batch)
        per_point = (2 * sum(kept.values()) + 6 * own) // len(batch[0]) + 1
        self._limit(per_point)
        self.cost.bytes_per_point = per_point
        return result

    def _gradient(self, points: Points) -> tuple[Tensor, Points]:
        with blame(f"The model {type(self.problem.model).__name__}", points):
            values, gradients = self.problem.model.value_and_gradient(points)
        return values, gradients

    def _limit(self, bytes_per_point: int) -> None:
        """No batch, with gradients or without, may need more than the memory limit."""
        for pace in self._pace.values():
            pace.limit = min(pace.limit, max(1, int(self._max_memory // bytes_per_point)))

    def _canvas(self, layout: Layout) -> Canvas:
        if layout not in self._canvases:
            self._canvases[layout] = Canvas(self.problem, layout)
        return self._canvases[layout]

    def _on_device(self, array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(np.require(array, requirements=["C", "W"])).to(self.problem.device)


def _require_rows(values: object, points: Points) -> None:
    """A model of the user's own may return anything."""
    rows = len(leaves(points)[0])
    if not isinstance(values, Tensor) or values.shape != (rows,):
        got = f"shape {tuple(values.shape)}" if isinstance(values, Tensor) else f"a {type(values).__name__}"
        raise ModelError(f"The model must return its values as a tensor of shape ({rows},), one per row. Got {got}.")


def _require_like(gradients: Points, points: Points) -> None:
    found, wanted = leaves(gradients), leaves(points)
    if [leaf.shape for leaf in found] != [leaf.shape for leaf in wanted]:
        raise ModelError(
            f"The model's gradient must be shaped like the points, {shapes(points)}. Got {shapes(gradients)} instead."
        )


def _require_finite(rows: Array, what: str, masks: Masks, nodes: Array) -> None:
    """A NaN or an infinity is told with the first point at which it appeared, never averaged away."""
    wrong = ~np.isfinite(rows)
    if not wrong.any():
        return
    row = int(np.argwhere(wrong)[0][0])
    members = np.flatnonzero(masks[row]).tolist()
    shown = f"{members[:8]}{' and more' if len(members) > 8 else ''}"
    if rows.ndim > 1:
        column = int(np.argwhere(wrong[row])[0][0])
        what, value = f"{what} in the direction of feature {column}", rows[row, column]
    else:
        value = rows[row]
    raise ModelError(
        f"The model's {what} is {value}, first at the point a = {nodes[row]:.4g} on the ray of features {shown} "
        f"(0 is the baseline, 1 is x on these features); every point between the baseline and x must be finite."
    )


def _spare_memory(device: torch.device) -> int:
    """Half of what is free on the device."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0] // 2)
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (ValueError, OSError, AttributeError):  # not every system tells
        return 2**31
