"""The only module that evaluates a model on points: it returns checked numbers, in batches within a memory limit.

A batch costs one forward, and one backward for every target; only the inputs get gradients. What the model returns is
checked here, reduced to the numbers that are needed, and converted to float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from torch import Tensor

from gralis.arrays import LARGEST_OUTPUT, Array
from gralis.errors import ModelError, bad
from gralis.evaluation import clock
from gralis.evaluation.batching import BatchSizer, Layout
from gralis.evaluation.clock import Stopwatch
from gralis.evaluation.cost import Cost
from gralis.evaluation.memory import Weighing, give_back, memory_alone, resident_memory, spare_memory
from gralis.evaluation.point_sequences import PointSequence
from gralis.models.failures import report_failure
from gralis.models.outputs import TargetedModel
from gralis.problem import Problem

__all__ = ["EvaluatedBatch", "ModelCalls", "Progress"]

#: Called after every batch with the numbers of gradients and of forwards in it; may raise to stop.
Progress = Callable[[int, int], None]
#: Evaluates the points in a slice: one array of rows for every target.
_Evaluate = Callable[[PointSequence, slice, Layout], list[Array]]

_COPIES = 6  # of a point that a batch needs at least
_LARGE_IMAGE = 2**14  # numbers in it


@dataclass(frozen=True, eq=False)
class EvaluatedBatch:
    """What the model returned at the points in a slice: one array of rows for every target."""

    part: slice
    layout: Layout
    rows: list[Array]

    @property
    def n_points(self) -> int:
        return len(self.rows[0])


class ModelCalls:
    """Calls one model on sequences of points, batch by batch, and counts what that costs.

    `point_bytes` is the size of one point; `max_memory` limits the bytes that one batch may hold at once, by default to
    half of what is free on the device. With such a limit, batches are weighed from the first point on, which is a batch
    by itself; `weigh` weighs them without a limit too. If a call of the model fails, it is repeated with fewer points
    or in another layout. Exceptions of the code that reads the batches are not caught.
    """

    def __init__(
        self,
        model: TargetedModel,
        point_bytes: int,
        *,
        batch_size: int | None = None,
        max_memory: int | None = None,
        layouts: tuple[Layout, ...] = ("contiguous",),
        device: torch.device | None = None,
        weigh: bool = False,
    ) -> None:
        self.model = model
        self.cost = Cost()
        self.progress: Progress = lambda n_gradients, n_forwards: None
        self.watch = Stopwatch(None)
        module = getattr(model.model, "module", None)
        # Of the coarsest type in which values were returned. A module may compute more coarsely, and can say so.
        self.rounding = max(float(np.finfo(np.float64).eps), getattr(module, "rounding", None) or 0.0)
        gradients = getattr(model.model, "differentiable", True)
        self.forwards, self.backwards = (BatchSizer.start(batch_size, layouts, gradients) for _ in range(2))
        place = device or getattr(model.model, "device", None) or torch.device("cpu")
        self._on_cpu = place.type == "cpu"
        self._counts_tensors = gradients or not self._on_cpu  # a function of NumPy arrays has none
        self._resident: int | None = None  # the memory of the process after the first batch
        self._limited, self._weighs = max_memory is not None, weigh or max_memory is not None
        self._max_memory = max_memory if max_memory is not None else spare_memory(place)
        # A model whose points are small may itself need much more for a row, and can say so before the first batch.
        needs = getattr(module, "row_bytes", None) or (0, 0)
        for sizer, row_bytes in zip((self.forwards, self.backwards), needs, strict=True):
            needed = max(_COPIES * point_bytes, row_bytes)
            if not gradients and not self._weighs:  # what a function holds outside torch cannot be weighed
                sizer.bytes_per_point = self.cost.bytes_per_point = needed
            sizer.room = 1 if self._limited else max(1, int(self._max_memory // needed))
            if row_bytes:  # weighing sees only what the process grows by, and memory that it already holds is reused
                sizer.limit = min(sizer.limit, max(1, int(self._max_memory // row_bytes)))

    @classmethod
    def of(
        cls,
        problems: Sequence[Problem],
        batch_size: int | None = None,
        max_memory: int | None = None,
        weigh: bool = False,
    ) -> ModelCalls:
        """Calls of the model that the problems share."""
        problem = problems[0]
        point_bytes = sum(leaf.numel() * dtype.itemsize for leaf, dtype in zip(problem.x, problem.dtypes, strict=True))
        return cls(
            _targeted(problems),
            point_bytes,
            batch_size=batch_size,
            max_memory=max_memory,
            layouts=_layouts(problem, search=batch_size is None),
            device=problem.device,
            weigh=weigh,
        )

    def session(self) -> AbstractContextManager[None]:
        """Around all calls of one explanation: the model prepares once, and is restored once."""
        return self.model.session()

    def values(self, points: PointSequence) -> Array:
        """F at every point, (n_points, n_targets): forwards only."""
        values = np.empty((len(points), self.model.n_targets))
        for batch in self._batches(points, self._values, self.forwards):
            values[batch.part] = np.stack(batch.rows, axis=1) if len(batch.rows) > 1 else batch.rows[0][:, None]
            self.cost.n_forwards += batch.n_points
            self.cost.n_batches += 1
            self.progress(0, batch.n_points)
        return values

    def gradients(self, points: PointSequence) -> Iterator[EvaluatedBatch]:
        """The gradients of F, reduced to what the points keep of them, batch by batch."""
        for batch in self._batches(points, self._gradients, self.backwards):
            n_gradients = batch.n_points * self.model.n_targets
            self.cost.n_gradients += n_gradients
            self.cost.n_batches += 1
            self.cost.batch_size, self.cost.layout = max(self.cost.batch_size, batch.n_points), batch.layout
            self.progress(n_gradients, 0)
            yield batch

    def _batches(self, points: PointSequence, evaluate: _Evaluate, sizer: BatchSizer) -> Iterator[EvaluatedBatch]:
        """Evaluate all points, each batch until it succeeds or nothing is left to try."""
        start = 0
        while start < len(points):
            self.watch.check()
            layout, size = sizer.next()
            part = slice(start, min(start + size, len(points)))
            began = clock.now()
            try:
                rows = self._weighed(partial(evaluate, points, part, layout), sizer, part.stop - start)
            except Exception as error:
                if not sizer.recover(error, layout, part.stop - start):
                    raise
                continue
            self._require_room(sizer, part.stop - start)
            yield EvaluatedBatch(part, layout, rows)
            sizer.note(layout, size, part.stop - start, clock.now() - began)
            start = part.stop

    def _weighed(self, evaluate: Callable[[], list[Array]], sizer: BatchSizer, n_points: int) -> list[Array]:
        """Evaluate a batch. The memory that it holds limits later batches."""
        self._make_room(n_points * sizer.bytes_per_point)
        first = sizer.bytes_per_point == 0
        if not (first or (self._weighs and sizer.unweighed(n_points))):
            return evaluate()
        if self._weighs and not self._limited and self._resident is not None:
            # Only the batch itself is asked about, and it may be repeated; in a run it may not, as long as it fits.
            rows, n_bytes = self._weighed_alone(evaluate)
        else:
            with Weighing(self._resident, tensors=self._counts_tensors) as weighing:
                rows = evaluate()
            n_bytes = weighing.bytes
            if n_points == 1 and n_bytes > self._max_memory >= weighing.bytes_of_tensors:
                rows, n_bytes = self._weighed_alone(evaluate)  # before a limit is refused
                self._resident = resident_memory()
        if self._weighs and self._on_cpu and self._resident is None:
            self._resident = resident_memory()  # what libraries set up once is there now
        sizer.weigh(n_points, max(n_bytes, 1), self._max_memory, careful=self._limited)
        heaviest = max(self.forwards.bytes_per_point, self.backwards.bytes_per_point)
        self.cost.bytes_per_point = int(np.ceil(heaviest))
        return rows

    def _weighed_alone(self, evaluate: Callable[[], list[Array]]) -> tuple[list[Array], int]:
        """Evaluate a batch, more than once if need be, and the memory that it holds without what other threads do."""
        found: list[list[Array]] = []
        n_bytes = memory_alone(lambda: found.append(evaluate()), tensors=self._counts_tensors)
        return found[0], n_bytes

    def _make_room(self, n_bytes: float) -> None:
        """Give freed memory back to the system if a batch might exceed the limit together with it."""
        if self._limited and self._resident is not None:
            held = (resident_memory() or 0) - self._resident
            if held + n_bytes > self._max_memory:
                give_back()

    def _require_room(self, sizer: BatchSizer, n_points: int) -> None:
        """Refuse a limit that is below what one point takes, once that is certain."""
        needed = sizer.bytes_per_point
        if self._limited and n_points == 1 and needed > self._max_memory and sizer.knows_one_point:
            kind = "gradient" if sizer is self.backwards else "value"
            allowed = f"at least {int(np.ceil(needed))} bytes, which one point with its {kind} takes"
            raise bad("max_memory", "explain", allowed, self._max_memory)

    def _values(self, points: PointSequence, part: slice, layout: Layout) -> list[Array]:
        batch = points.batch(part, layout)
        with report_failure(self._name, batch.points):
            values = self.model.values(batch.points, batch.inputs)
        return [self._checked(value, points, part) for value in values]

    def _gradients(self, points: PointSequence, part: slice, layout: Layout) -> list[Array]:
        batch = points.batch(part, layout)
        with report_failure(self._name, batch.points):
            values, gradients = self.model.values_and_gradients(batch.points, batch.inputs)
        rows = []
        for value, gradient in zip(values, gradients, strict=True):
            self._checked(value, points, part)
            rows.append(batch.reduced(gradient).cpu().numpy())
            _require_finite(rows[-1], batch.name_of, points, part)
        return rows

    def _checked(self, value: object, points: PointSequence, part: slice) -> Array:
        """What the model returned as values, (rows,) in float64; a model written by the user may return anything."""
        shape = (part.stop - part.start,)
        if not isinstance(value, Tensor) or value.shape != shape:
            got = f"shape {tuple(value.shape)}" if isinstance(value, Tensor) else f"a {type(value).__name__}"
            raise ModelError(f"The model must return its values as a tensor of shape {shape}, one per row. Got {got}.")
        if value.is_floating_point():
            self.rounding = max(self.rounding, torch.finfo(value.dtype).eps)
        numbers: Array = value.detach().double().cpu().numpy()
        _require_finite(numbers, lambda place: "output", points, part)
        return numbers

    @property
    def _name(self) -> str:
        return f"The model {type(self.model.model).__name__}"


def _require_finite(rows: Array, name_of: Callable[[tuple[int, ...]], str], points: PointSequence, part: slice) -> None:
    """What has no square that is a number is reported with the first point at which it appears, never averaged away."""
    wrong = ~(np.abs(rows) <= LARGEST_OUTPUT)  # also a NaN
    if wrong.any():
        row, *place = np.argwhere(wrong)[0].tolist()
        name, where = name_of(tuple(place)), points.location(part.start + row)
        raise ModelError(
            f"The model's {name} is {rows[row, *place]}, first at {where}{_advice(name, rows[row, *place])}"
        )


def _advice(name: str, number: float) -> str:
    """What to do about a gradient that is not finite where the output is, and about what is too large."""
    if np.isfinite(number):
        return f" Beyond {LARGEST_OUTPUT:g} the squares of errors overflow: scale the output of the model."
    if not name.startswith("gradient"):
        return ""
    return (
        " A square root or a logarithm of zero does this: choose another baseline, such as baseline=1e-3, or "
        "plan='endpoint', which needs values only."
    )


def _layouts(problem: Problem, *, search: bool) -> tuple[Layout, ...]:
    """The memory layouts to try, the likely best first: convolutions on large images are faster with channels last."""
    images = [leaf for leaf in problem.x if leaf.ndim == 3 and leaf.shape[0] <= 16 and leaf.shape[-1] > 16]
    if images and (search or max(leaf.numel() for leaf in images) >= _LARGE_IMAGE):
        return "channels_last", "contiguous"
    return ("contiguous",)


def _targeted(problems: Sequence[Problem]) -> TargetedModel:
    """The model with all targets of one input, or with one target for each of several inputs."""
    model = problems[0].model
    if len(problems) == 1:
        return TargetedModel(model, problems[0].targets)
    targets = tuple(problem.targets[0] for problem in problems)
    return TargetedModel(model) if len(set(targets)) == 1 else TargetedModel(model, of_inputs=targets)
