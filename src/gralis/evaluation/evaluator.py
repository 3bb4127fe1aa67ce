"""Sheets in, ledger rows out: what the engine finds at the points of rays, sorted by question; v(T) is remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks
from gralis.evaluation.cost import Cost
from gralis.evaluation.engine import Engine, Progress
from gralis.evaluation.points import PointBuilder
from gralis.ledger import FoldedLedger, Ledger
from gralis.models.protocol import Points
from gralis.problem import Problem
from gralis.rays import RayRequest
from gralis.rays.discrete import HALFWAY, DiscreteJumps

#: Takes, of a question, the gradients of the points in a slice, (rows, n_features).
Consumer = Callable[[int, slice, Array], None]


class Evaluator:
    """Evaluates requests of one problem, or of several inputs to one model on the same rays.

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
        self.problem = problems[0]
        self._engine = Engine(problems, batch_size, max_memory)
        self._values: dict[tuple[int, bytes], Array] = {}

    @property
    def cost(self) -> Cost:
        """What was spent so far."""
        return self._engine.cost

    @cost.setter
    def cost(self, cost: Cost) -> None:
        self._engine.cost = cost

    @property
    def n_questions(self) -> int:
        return len(self.problems) * self._n_targets

    def report_to(self, progress: Progress) -> None:
        """Call `progress` after every batch from now on."""
        self._engine.progress = progress

    def session(self) -> AbstractContextManager[None]:
        """Around all calls of one explanation: the model prepares once, and is restored once."""
        return self._engine.asked.session()

    def endpoints(self) -> tuple[Array, Array]:
        """F(x) (n_questions,) and F(x') (n_questions, n_baselines); v(full) and v(empty) are known from here on."""
        n, n_baselines, n_inputs = self.problem.n_features, self._engine.n_baselines, len(self.problems)
        pairs = np.arange(n_inputs * n_baselines)
        full = np.ones((len(pairs), n), dtype=bool)
        masks = np.concatenate([full[::n_baselines], ~full])
        values = self._corners(masks, np.concatenate([pairs[::n_baselines], pairs]))  # (rows, n_targets)
        there, start = values[:n_inputs], values[n_inputs:]
        self._know(full, pairs, there[pairs // n_baselines] - start, start)
        return there.reshape(-1), self._by_question(start)

    def recall(self, f_baselines: Array, ledgers: Sequence[Ledger | FoldedLedger]) -> None:
        """What another evaluator found out, (n_questions, n_baselines) and the ledgers of the questions."""
        rows = [ledger for ledger in ledgers if isinstance(ledger, Ledger)]
        known = np.isfinite(rows[0].value) if rows else np.zeros(0, dtype=bool)
        masks = (
            np.tile(rows[0].masks[known], (len(self.problems), 1)) if rows else np.zeros((0, self.problem.n_features))
        )
        baseline = rows[0].baseline[known] if rows else np.zeros(0, dtype=np.int64)
        moved = self._by_pair([ledger.value[known] for ledger in rows]) if rows else np.zeros((0, self._n_targets))
        self._know(masks.astype(bool), self._pairs(baseline), moved, self._by_pair(f_baselines))

    def _by_pair(self, values: Sequence[Array] | Array) -> Array:
        """(n_questions, n_rows) -> (n_inputs * n_rows, n_targets), the inverse of `_by_question`."""
        shape = (len(self.problems), self._n_targets, -1)
        return np.stack(list(values)).reshape(shape).swapaxes(1, 2).reshape(-1, self._n_targets)

    def _know(self, masks: Masks, pair: NDArray[np.int64], moved: Array, f_baseline: Array) -> None:
        """v(T) of these coalitions, (n_rows, n_targets), and F(x') of every pair; v(empty) = 0."""
        self._f_baseline = f_baseline
        empty = np.zeros((len(f_baseline), self.problem.n_features), dtype=bool)
        self._values.update(dict.fromkeys(self._keys(empty, np.arange(len(empty))), np.zeros(self._n_targets)))
        self._values.update(zip(self._keys(masks, pair), moved, strict=True))

    def evaluate(self, request: RayRequest, *, values: bool) -> tuple[Ledger, ...]:
        """The ledger rows of a request for every question: gradients at its points, and v(T) if `values`."""
        gradient = self.gradients(request)
        if values:
            known = self.values(request.masks, request.baseline)
        else:
            known = np.full((self.n_questions, request.n_rays), np.nan)
        return tuple(Ledger.record(request, *answer) for answer in zip(gradient, known, strict=True))

    def gradients(self, request: RayRequest) -> list[Array]:
        """The gradients at the points of a request, of every question (n_points, n_features)."""
        return self._gather(request.n_points, lambda consume: self.stream(request, consume))

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

    def stream(self, request: RayRequest, consume: Consumer) -> None:
        """Hand every batch of gradients, reduced to features, to `consume` and forget it."""
        ray = np.repeat(np.arange(request.n_rays), request.nodes.shape[1])
        nodes = np.ascontiguousarray(request.nodes, dtype=np.float64).ravel()
        self._stream(request.masks, request.baseline, ray, nodes, np.asarray(request.weights).sum(1), consume)

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
        pair = self._pairs(baseline[ray])

        def points(part: slice, builder: PointBuilder) -> Points:
            own = _within(part, n_points)
            return builder.points(*map(self._engine.on_device, (masks[ray[own]], nodes[own], pair[part])))

        def where(part: slice) -> tuple[Masks, Array]:
            own = _within(part, n_points)
            return masks[ray[own]], nodes[own]

        def take(target: int, part: slice, rows: Array) -> None:
            for number, own, local in _by_input(part, n_points):
                question = number * self._n_targets + target
                found = rows[local]
                if jumps is not None:
                    found = np.where(discrete, jumps[question, ray[own]], found)
                consume(question, own, found)

        self._engine.gradients(points, pair, where, take)
        self.cost.n_rays += len(np.unique(ray)) * len(self.problems)

    def _pairs(self, baseline: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows with these baselines, once for every input, one input after the other: their pairs."""
        n_inputs, n_baselines = len(self.problems), self._engine.n_baselines
        return np.concatenate([baseline + k * n_baselines for k in range(n_inputs)])

    def _by_question(self, values: Array) -> Array:
        """(n_inputs * n_rows, n_targets) -> (n_questions, n_rows)."""
        shape = (len(self.problems), -1, self._n_targets)
        return values.reshape(shape).swapaxes(1, 2).reshape(self.n_questions, -1)

    def _jumps(self, masks: Masks, baseline: NDArray[np.int64], weight: Array) -> Array:
        """What stands for the gradient of discrete features: (n_questions, n_rays, n_features), J over all weights."""
        asked = DiscreteJumps.of(masks, self.problem.features.discrete)
        pair, step = self._pairs(baseline[asked.ray]), np.tile(asked.step, (len(self.problems), 1))
        values = self._engine.values(
            lambda part, builder: builder.at(*map(self._engine.on_device, (step[part], pair[part]))),
            pair,
            lambda part: (step[part] > 0, np.full(part.stop - part.start, HALFWAY)),
        )
        total = np.where(weight == 0, 1.0, weight)[:, None]
        return np.stack([asked.sizes(own, len(masks)) / total for own in self._by_question(values)])

    def values(self, masks: Masks, baseline: NDArray[np.int64]) -> Array:
        """v(T) = F(x_T) - F(x') of every row, (n_questions, n_rows), each distinct coalition evaluated once."""
        everywhere, pair = np.tile(np.asarray(masks), (len(self.problems), 1)), self._pairs(baseline)
        keys = self._keys(everywhere, pair)
        fresh = {key: row for row, key in enumerate(keys) if key not in self._values}
        if fresh:
            rows = np.fromiter(fresh.values(), dtype=np.int64)
            found = self._corners(everywhere[rows], pair[rows]) - self._f_baseline[pair[rows]]
            self._values.update(zip(fresh, found, strict=True))
        return self._by_question(np.array([self._values[key] for key in keys]))

    def _keys(self, masks: Masks, pair: NDArray[np.int64]) -> list[tuple[int, bytes]]:
        """What tells coalitions apart: the members that move. A feature with x = x' makes no difference to F."""
        moves = np.concatenate([problem.squared_distance > 0 for problem in self.problems])
        moving = masks & moves[pair]
        return [(int(number), row.tobytes()) for number, row in zip(pair, moving, strict=True)]

    def _corners(self, masks: Masks, pair: NDArray[np.int64]) -> Array:
        """F(x_T) of every row, (n_rows, n_targets)."""
        return self._engine.values(
            lambda part, builder: builder.corners(*map(self._engine.on_device, (masks[part], pair[part]))),
            pair,
            lambda part: (masks[part], np.ones(part.stop - part.start)),
        )

    @property
    def _n_targets(self) -> int:
        return self._engine.asked.n_targets


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
    """Which points of the request a stretch of points of all inputs is made of."""
    return np.arange(part.start, part.stop) % n_points
