"""The only module that calls the model: points in, numbers out, in batches that fill the memory and no more.

One forward and one backward per batch, gradients of the inputs only; each batch is reduced to features at once and in
float64. What a model returns is checked here, at the point where it was asked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gralis.arrays import Array, Masks
from gralis.errors import ModelError
from gralis.evaluation.batching import BatchSizer
from gralis.evaluation.cost import Cost
from gralis.evaluation.points import Layout, PointBuilder
from gralis.models.failures import report_failure
from gralis.models.outputs import Asked
from gralis.models.points import leaves, shapes
from gralis.models.protocol import Points
from gralis.problem import Problem

#: Called after every batch with the number of gradients in it; may raise to stop.
Progress = Callable[[int], None]
#: Makes the points of a slice, on a builder.
MakePoints = Callable[[slice, PointBuilder], Points]
#: Where the points of a slice are, for the sentence if a number there is not finite: (members, node) of each.
Where = Callable[[slice], tuple[Masks, Array]]
#: Takes, of a target, the gradients of the points in a slice, (rows, n_features).
Taker = Callable[[int, slice, Array], None]


_LARGE = 2**14  # numbers in an image


class Engine:
    """Evaluates points of one problem, or of several inputs to one model.

    `pair` says to which x and x' a point belongs: input * n_baselines + baseline.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        batch_size: int | None = None,
        max_memory: int | None = None,
    ) -> None:
        self.problems = problems
        self.problem = problem = problems[0]
        self.asked = _asked(problems)
        self.cost = Cost()
        self.progress: Progress = lambda n: None
        layouts = _layouts(problem, search=batch_size is None)
        self._sizers = {gradient: BatchSizer.start(batch_size, layouts) for gradient in (True, False)}
        self._device = problem.device
        self._max_memory = max_memory if max_memory is not None else _spare_memory(self._device)
        own = sum(leaf.numel() * dtype.itemsize for leaf, dtype in zip(problem.x, problem.dtypes, strict=True))
        self._limit(6 * own)
        self._builders: dict[Layout, PointBuilder] = {}
        self._weighed = False

    @property
    def n_baselines(self) -> int:
        return self.problem.baselines.n_baselines

    def values(self, points: MakePoints, pair: NDArray[np.int64], where: Where) -> Array:
        """F at every point, (n_points, n_targets): forwards only."""
        values = np.empty((len(pair), self.asked.n_targets))

        def call(part: slice, layout: Layout) -> list[Array]:
            batch = points(part, self._builder(layout))
            with report_failure(f"The model {type(self.problem.model).__name__}", batch):
                found = self.asked.values(batch, pair[part] // self.n_baselines)
            return [_checked(value, batch, *where(part)) for value in found]

        def use(part: slice, layout: Layout, found: list[Array]) -> None:
            values[part] = np.stack(found, axis=1)
            self.cost.n_forwards += part.stop - part.start
            self.cost.n_batches += 1
            self.progress(0)

        self._sizers[False].through(len(pair), call, use)
        return values

    def gradients(self, points: MakePoints, pair: NDArray[np.int64], where: Where, take: Taker) -> None:
        """(x - x') dF/dx at every point, summed up over each feature, handed to `take` target by target."""

        def call(part: slice, layout: Layout) -> list[Array]:
            builder = self._builder(layout)
            batch, which = points(part, builder), self.on_device(pair[part])
            rows = []
            for value, gradient in zip(*self._weigh_once(batch, pair[part] // self.n_baselines), strict=True):
                _checked(value, batch, *where(part))
                _require_like(gradient, batch)
                rows.append(builder.to_features(gradient, which).cpu().numpy())
                _require_finite(rows[-1], "gradient", *where(part))
            return rows

        def use(part: slice, layout: Layout, found: list[Array]) -> None:
            for target, rows in enumerate(found):
                take(target, part, rows)
            n_points = part.stop - part.start
            self.cost.n_gradients += n_points * self.asked.n_targets
            self.cost.n_batches += 1
            self.cost.batch_size, self.cost.layout = max(self.cost.batch_size, n_points), layout
            self.progress(n_points * self.asked.n_targets)

        self._sizers[True].through(len(pair), call, use)

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
        with report_failure(f"The model {type(self.problem.model).__name__}", points):
            return self.asked.values_and_gradients(points, inputs)

    def _limit(self, bytes_per_point: int) -> None:
        """No batch, with gradients or without, may need more than the memory limit."""
        for sizer in self._sizers.values():
            sizer.limit = min(sizer.limit, max(1, int(self._max_memory // bytes_per_point)))

    def _builder(self, layout: Layout) -> PointBuilder:
        if layout not in self._builders:
            self._builders[layout] = PointBuilder(self.problems, layout)
        return self._builders[layout]

    def on_device(self, array: NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(np.require(array, requirements=["C", "W"])).to(self._device)


def _layouts(problem: Problem, *, search: bool) -> tuple[Layout, ...]:
    """The memory layouts to try, the likely best first: convolutions on large images are faster with channels last."""
    images = [leaf for leaf in problem.x if leaf.ndim == 3 and leaf.shape[0] <= 16 and leaf.shape[-1] > 16]
    if images and (search or max(leaf.numel() for leaf in images) >= _LARGE):
        return "channels_last", "contiguous"
    return ("contiguous",)


def _asked(problems: Sequence[Problem]) -> Asked:
    """All targets of one input, or of each input its own."""
    first = problems[0]
    if len(problems) == 1:
        return Asked(first.model, first.targets)
    own = tuple(problem.targets[0] for problem in problems)
    return Asked(first.model) if len(set(own)) == 1 else Asked(first.model, of_inputs=own)


def require_rows(values: object, points: Points) -> Tensor:
    """A model of the user's own may return anything."""
    rows = len(leaves(points)[0])
    if not isinstance(values, Tensor) or values.shape != (rows,):
        got = f"shape {tuple(values.shape)}" if isinstance(values, Tensor) else f"a {type(values).__name__}"
        raise ModelError(f"The model must return its values as a tensor of shape ({rows},), one per row. Got {got}.")
    return values


def _checked(values: object, points: Points, masks: Masks, nodes: Array) -> Array:
    """What a model returned as values, in float64."""
    found = require_rows(values, points).double().cpu().numpy()
    _require_finite(found, "output", masks, nodes)
    return np.asarray(found)


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
