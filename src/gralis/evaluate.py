"""The only module that calls the model: sheets in, ledger rows out, in batches.

Points are built on the device, one forward and one backward per batch, gradients of the inputs only; each batch is
reduced to features at once and accumulated in float64, so memory does not grow with the budget beyond the rows.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gralis.canvas import Canvas, Layout
from gralis.errors import ModelError
from gralis.fold import FoldedLedger
from gralis.jumps import Jumps
from gralis.laws import Array, Masks
from gralis.ledger import Ledger
from gralis.models.asked import Asked
from gralis.models.blame import blame, out_of_memory
from gralis.models.points import leaves, shapes
from gralis.models.protocol import Points
from gralis.pace import Pace
from gralis.problem import Problem
from gralis.sheet import Sheet

#: Called after every batch with the number of gradients in it; may raise to stop.
Progress = Callable[[int], None]
#: Makes the points of a slice, on a canvas.
Builder = Callable[[slice, Canvas], Points]
#: Takes, of a question, the gradients of the points in a slice, (rows, n_features).
Consumer = Callable[[int, slice, Array], None]


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
    """Evaluates sheets of one problem, or of several inputs to one model on the same rays.

    Questions are numbered input * n_targets + target, and each gets a ledger of its own. v(T) of every coalition is
    remembered, so none is evaluated twice.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        *,
        batch_size: int | None = None,
        max_memory: int | None = None,
    ) -> None:
        self.problems = problems
        self.problem = problem = problems[0]
        self.asked = _asked(problems)
        self.cost = Cost()
        self._progress: Progress = lambda n: None
        images = any(leaf.ndim == 3 and leaf.shape[0] <= 16 and leaf.shape[-1] > 16 for leaf in problem.x)
        layouts: tuple[Layout, ...] = ("channels_last", "contiguous") if images else ("contiguous",)
        self._pace = {True: Pace.start(batch_size, layouts), False: Pace.start(batch_size, layouts)}
        self._max_memory = max_memory if max_memory is not None else _spare_memory(problem.device)
        own = sum(leaf.numel() * dtype.itemsize for leaf, dtype in zip(problem.x, problem.dtypes, strict=True))
        self._limit(6 * own)
        self._canvases: dict[Layout, Canvas] = {}
        self._values: dict[tuple[int, bytes], Array] = {}
        self._weighed = False

    @property
    def n_questions(self) -> int:
        return len(self.problems) * self.asked.n_targets

    def report_to(self, progress: Progress) -> None:
        """Call `progress` after every batch from now on."""
        self._progress = progress

    def session(self) -> AbstractContextManager[None]:
        """Around all calls of one explanation: the model prepares once, and is restored once."""
        return self.asked.session()

    def endpoints(self) -> tuple[Array, Array]:
        """F(x) (n_questions,) and F(x') (n_questions, n_baselines); v(full) and v(empty) are known from here on."""
        n, n_baselines, n_inputs = self.problem.n_features, self._n_baselines, len(self.problems)
        pairs = np.arange(n_inputs * n_baselines)
        full = np.ones((len(pairs), n), dtype=bool)
        masks = np.concatenate([full[::n_baselines], ~full])
        values = self._corners(masks, np.concatenate([pairs[::n_baselines], pairs]))  # (rows, n_targets)
        there, start = values[:n_inputs], values[n_inputs:]
        f_baselines = start.reshape(n_inputs, n_baselines, -1).swapaxes(1, 2).reshape(self.n_questions, n_baselines)
        self._know(full, pairs, there[pairs // n_baselines] - start, start)
        return there.reshape(-1), f_baselines

    def recall(self, f_baselines: Array, ledgers: Sequence[Ledger | FoldedLedger]) -> None:
        """What another evaluator found out, (n_questions, n_baselines) and the ledgers of the questions."""
        shape = (len(self.problems), self.asked.n_targets)
        start = f_baselines.reshape(*shape, -1).swapaxes(1, 2).reshape(-1, shape[1])
        rows = [ledger for ledger in ledgers if isinstance(ledger, Ledger)]
        n = self.problem.n_features
        masks, pair, moved = np.zeros((0, n), dtype=bool), np.zeros(0, dtype=np.int64), np.zeros((0, shape[1]))
        if rows:
            known = np.isfinite(rows[0].value)
            values = np.stack([ledger.value[known] for ledger in rows]).reshape(*shape, -1)
            masks = np.tile(rows[0].masks[known], (shape[0], 1))
            pair = np.concatenate([rows[0].baseline[known] + k * self._n_baselines for k in range(shape[0])])
            moved = values.swapaxes(1, 2).reshape(-1, shape[1])
        self._know(masks, pair, moved, start)

    def _know(self, masks: Masks, pair: NDArray[np.int64], moved: Array, f_baseline: Array) -> None:
        """v(T) of these coalitions, (n_rows, n_targets), and F(x') of every pair; v(empty) = 0."""
        self._f_baseline = f_baseline
        empty = np.zeros((len(f_baseline), self.problem.n_features), dtype=bool)
        self._values.update(dict.fromkeys(self._keys(empty, np.arange(len(empty))), np.zeros(self.asked.n_targets)))
        self._values.update(zip(self._keys(masks, pair), moved, strict=True))

    def evaluate(self, sheet: Sheet, *, values: bool) -> tuple[Ledger, ...]:
        """The ledger rows of a sheet for every question: gradients at its points, and v(T) if `values`."""
        gradient = self.gradients(sheet)
        if values:
            known = self.values(sheet.masks, sheet.baseline)
        else:
            known = np.full((self.n_questions, sheet.n_rays), np.nan)
        return tuple(Ledger.record(sheet, *answer) for answer in zip(gradient, known, strict=True))

    def gradients(self, sheet: Sheet) -> list[Array]:
        """The gradients at the points of a sheet, of every question (n_points, n_features)."""
        return self._gather(sheet.n_points, lambda consume: self.stream(sheet, consume))

    def again(self, ledger: Ledger) -> tuple[Ledger, ...]:
        """The same rows, evaluated with this problem's model; values where the ledger has them."""
        rows = (ledger.masks, ledger.baseline, ledger.ray, ledger.node, ledger.sum_points(ledger.weight))
        gradient = self._gather(ledger.n_points, lambda consume: self._stream(*rows, consume))
        value, known = np.full((self.n_questions, ledger.n_rays), np.nan), np.isfinite(ledger.value)
        value[:, known] = self.values(ledger.masks[known], ledger.baseline[known])
        return tuple(replace(ledger, gradient=g, value=v) for g, v in zip(gradient, value, strict=True))

    def _gather(self, n_points: int, run: Callable[[Consumer], None]) -> list[Array]:
        """Every gradient that a run hands out, for each question."""
        gradient = [np.empty((n_points, self.problem.n_features)) for _ in range(self.n_questions)]

        def keep(question: int, part: slice, rows: Array) -> None:
            gradient[question][part] = rows

        run(keep)
        return gradient

    def stream(self, sheet: Sheet, consume: Consumer) -> None:
        """Hand every batch of gradients, reduced to features, to `consume` and forget it."""
        ray = np.repeat(np.arange(sheet.n_rays), sheet.nodes.shape[1])
        nodes = np.ascontiguousarray(sheet.nodes, dtype=np.float64).ravel()
        self._stream(sheet.masks, sheet.baseline, ray, nodes, np.asarray(sheet.weights).sum(1), consume)

    def _stream(
        self,
        masks: Masks,
        baseline: NDArray[np.int64],
        ray: NDArray[np.int64],
        nodes: Array,
        weight: Array,  # (n_rays,) of all nodes on a ray together
        consume: Consumer,
    ) -> None:
        n_points, discrete = len(ray), self.problem.features.discrete
        jumps = self._jumps(masks, baseline, weight) if n_points and discrete.any() else None

        def one_batch(part: slice, points: Points, canvas: Canvas, pair: NDArray[np.int64]) -> None:
            values, gradients = self._weigh_once(points, pair // self._n_baselines)
            where = (masks[ray[_within(part, n_points)]], nodes[_within(part, n_points)])
            on_device = self._on_device(pair)
            for target, (value, gradient) in enumerate(zip(values, gradients, strict=True)):
                _require_rows(value, points)
                _require_like(gradient, points)
                rows = canvas.to_features(gradient, on_device).cpu().numpy()
                _require_finite(value.double().cpu().numpy(), "output", *where)
                _require_finite(rows, "gradient", *where)
                for number, own, local in _by_input(part, n_points):
                    question = number * self.asked.n_targets + target
                    found = rows[local]
                    if jumps is not None:
                        found = np.where(discrete, jumps[question, ray[own]], found)
                    consume(question, own, found)
            spent = len(pair) * self.asked.n_targets
            self.cost.n_gradients += spent
            self._progress(spent)

        n_inputs = len(self.problems)
        pair = np.concatenate([baseline[ray] + k * self._n_baselines for k in range(n_inputs)])

        def points(part: slice, canvas: Canvas) -> Points:
            own = _within(part, n_points)
            on, at, which = map(self._on_device, (masks[ray[own]], nodes[own], pair[part]))
            return canvas.points(on, at, which)

        self._in_batches(points, pair, one_batch, gradient=True)
        self.cost.n_rays += len(np.unique(ray)) * n_inputs

    def _jumps(self, masks: Masks, baseline: NDArray[np.int64], weight: Array) -> Array:
        """What stands for the gradient of discrete features: (n_questions, n_rays, n_features), J over all weights."""
        n_inputs, n_rays = len(self.problems), len(masks)
        asked = Jumps.of(masks, self.problem.features.discrete)
        pair = np.concatenate([baseline[asked.ray] + k * self._n_baselines for k in range(n_inputs)])
        step = np.tile(asked.step, (n_inputs, 1))
        values = self._forward(
            lambda part, canvas: canvas.at(*map(self._on_device, (step[part], pair[part]))), pair, step
        )
        each = (
            values.reshape(n_inputs, len(asked.ray), self.asked.n_targets).swapaxes(1, 2).reshape(self.n_questions, -1)
        )
        total = np.where(weight == 0, 1.0, weight)[:, None]
        return np.stack([asked.sizes(own, n_rays) / total for own in each])

    def values(self, masks: Masks, baseline: NDArray[np.int64]) -> Array:
        """v(T) = F(x_T) - F(x') of every row, (n_questions, n_rows), each distinct coalition evaluated once."""
        n_inputs = len(self.problems)
        everywhere = np.tile(np.asarray(masks), (n_inputs, 1))
        pair = np.concatenate([baseline + k * self._n_baselines for k in range(n_inputs)])
        keys = self._keys(everywhere, pair)
        fresh = {key: row for row, key in enumerate(keys) if key not in self._values}
        if fresh:
            rows = np.fromiter(fresh.values(), dtype=np.int64)
            found = self._corners(everywhere[rows], pair[rows]) - self._f_baseline[pair[rows]]
            self._values.update(zip(fresh, found, strict=True))
        found = np.array([self._values[key] for key in keys]).reshape(n_inputs, len(masks), self.asked.n_targets)
        return found.swapaxes(1, 2).reshape(self.n_questions, len(masks))

    def _keys(self, masks: Masks, pair: NDArray[np.int64]) -> list[tuple[int, bytes]]:
        """What tells coalitions apart: the members that move. A feature with x = x' makes no difference to F."""
        moves = np.concatenate([problem.squared_distance > 0 for problem in self.problems])
        moving = masks & moves[pair]
        return [(int(number), row.tobytes()) for number, row in zip(pair, moving, strict=True)]

    def _corners(self, masks: Masks, pair: NDArray[np.int64]) -> Array:
        """F(x_T) of every row, (n_rows, n_targets)."""
        return self._forward(
            lambda part, canvas: canvas.corners(*map(self._on_device, (masks[part], pair[part]))), pair, masks
        )

    def _forward(self, points: Builder, pair: NDArray[np.int64], step: NDArray[Any]) -> Array:
        """F at every point, (n_rows, n_targets); `step` says where a point is, for the sentence if F is not finite."""
        values, ones = np.empty((len(pair), self.asked.n_targets)), np.ones(len(pair))

        def one_batch(part: slice, points: Points, canvas: Canvas, own: NDArray[np.int64]) -> None:
            with blame(f"The model {type(self.problem.model).__name__}", points):
                found = self.asked.values(points, own // self._n_baselines)
            for target, value in enumerate(found):
                _require_rows(value, points)
                values[part, target] = value.double().cpu().numpy()
                _require_finite(values[part, target], "output", step[part] > 0, ones[part])
            self.cost.n_forwards += part.stop - part.start
            self._progress(0)

        self._in_batches(points, pair, one_batch, gradient=False)
        return values

    @property
    def _n_baselines(self) -> int:
        return self.problem.baselines.n_baselines

    def _in_batches(
        self,
        points: Builder,
        pair: NDArray[np.int64],
        work: Callable[[slice, Points, Canvas, NDArray[np.int64]], None],
        *,
        gradient: bool,
    ) -> None:
        """Build the points batch by batch and work on them; a batch that runs out of memory is halved and redone."""
        pace, start = self._pace[gradient], 0
        while start < len(pair):
            layout, asked = pace.next()
            part = slice(start, min(start + asked, len(pair)))
            began = time.perf_counter()
            try:
                canvas = self._canvas(layout)
                work(part, points(part, canvas), canvas, pair[part])
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

    def _weigh_once(self, points: Points, inputs: NDArray[np.int64]) -> tuple[list[Tensor], list[Points]]:
        """values and gradients; the first time, count what autograd keeps per point and set the batch limit by it."""
        if self._weighed:
            return self._gradient(points, inputs)
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
            result = self._gradient(points, inputs)
        self._weighed = True
        batch = leaves(points)
        own = sum(leaf.numel() * leaf.element_size() for leaf in batch)
        per_point = (2 * sum(kept.values()) + 6 * own) // len(batch[0]) + 1
        self._limit(per_point)
        self.cost.bytes_per_point = per_point
        return result

    def _gradient(self, points: Points, inputs: NDArray[np.int64]) -> tuple[list[Tensor], list[Points]]:
        with blame(f"The model {type(self.problem.model).__name__}", points):
            return self.asked.values_and_gradients(points, inputs)

    def _limit(self, bytes_per_point: int) -> None:
        """No batch, with gradients or without, may need more than the memory limit."""
        for pace in self._pace.values():
            pace.limit = min(pace.limit, max(1, int(self._max_memory // bytes_per_point)))

    def _canvas(self, layout: Layout) -> Canvas:
        if layout not in self._canvases:
            self._canvases[layout] = Canvas(self.problems, layout)
        return self._canvases[layout]

    def _on_device(self, array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(np.require(array, requirements=["C", "W"])).to(self.problem.device)


def _asked(problems: Sequence[Problem]) -> Asked:
    """All targets of one input, or of each input its own."""
    first = problems[0]
    if len(problems) == 1:
        return Asked(first.model, first.targets)
    own = tuple(problem.targets[0] for problem in problems)
    return Asked(first.model) if len(set(own)) == 1 else Asked(first.model, of_inputs=own)


def _by_input(part: slice, n_points: int) -> Iterator[tuple[int, slice, slice]]:
    """A stretch of points of all inputs, cut where an input ends: (input, its own points, rows of the stretch)."""
    start = part.start
    while start < part.stop:
        number = start // n_points
        stop = min(part.stop, (number + 1) * n_points)
        yield (
            number,
            slice(start - number * n_points, stop - number * n_points),
            slice(start - part.start, stop - part.start),
        )
        start = stop


def _within(part: slice, n_points: int) -> NDArray[np.int64]:
    """Which points of the sheet a stretch of points of all inputs is made of."""
    return np.arange(part.start, part.stop) % n_points


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
