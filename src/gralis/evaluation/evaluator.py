"""Rays in, ledger rows out: gradients at the points of rays, sorted by question; v(T) is remembered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks
from gralis.evaluation.batching import BatchSizer
from gralis.evaluation.calls import ModelCalls, Progress
from gralis.evaluation.clock import Stopwatch
from gralis.evaluation.cost import Cost
from gralis.evaluation.function_probe import ModelDoubts, model_doubts
from gralis.evaluation.point_sequences import CoalitionPoints, PairPoints, ProblemPoints, RayPoints, StepPoints
from gralis.evaluation.questions import Questions
from gralis.ledger import AnyLedger, Ledger
from gralis.problem import Problem
from gralis.rays import RayRequest
from gralis.rays.discrete import STEPS, DiscreteJumps, n_jump_points, portions

__all__ = ["Evaluator", "GradientRows"]

#: A question, a slice of its points, and their gradients summed over features, (rows, n_features).
GradientRows: TypeAlias = tuple[int, slice, Array]

_MEMORY = 2**27  # bytes of coalitions whose values are remembered for the jumps of other rays


class Evaluator:
    """Evaluates requests of one problem, or of several inputs to one model on the same rays.

    Every question has its own ledger. v(T) of every coalition is remembered, so none is evaluated twice.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        *,
        batch_size: int | None = None,
        max_memory: int | None = None,
        weigh: bool = False,
    ) -> None:
        self.problems = problems
        self.problem = problems[0]
        self._calls = ModelCalls.of(problems, batch_size, max_memory, weigh)
        self.questions = Questions(len(problems), self._calls.model.n_targets, self.problem.baselines.n_baselines)
        self._points = ProblemPoints(problems, self.questions)
        self._f_baseline = np.full((self.questions.n_pairs, self.questions.n_targets), np.nan)
        self._values: dict[tuple[int, bytes], Array] = {}

    @property
    def cost(self) -> Cost:
        """What was spent so far."""
        return self._calls.cost

    @cost.setter
    def cost(self, cost: Cost) -> None:
        self._calls.cost = cost

    @property
    def rounding(self) -> float:
        """The relative precision of the coarsest numbers that the model returned so far."""
        return self._calls.rounding

    @property
    def n_questions(self) -> int:
        return len(self.questions)

    def report_to(self, progress: Progress) -> None:
        """Call `progress` after every batch from now on."""
        self._calls.progress = progress

    def stop_at(self, watch: Stopwatch, most_seconds: float | None = None) -> None:
        """Begin no batch once the time of this watch has passed, and keep batches below `most_seconds`."""
        self._calls.watch = watch
        if most_seconds is not None:
            self._calls.forwards.most_seconds = self._calls.backwards.most_seconds = most_seconds

    @property
    def sizers(self) -> tuple[BatchSizer, BatchSizer]:
        """What was learnt about the batches of forwards, and about those of gradients."""
        return self._calls.forwards, self._calls.backwards

    def try_points(self, masks: Masks, node: Array | None) -> None:
        """Evaluate F at x_T of these coalitions, or its gradients at these nodes of their rays, and keep nothing."""
        pair = self.questions.pairs(np.zeros(len(masks), dtype=np.int64))
        if node is None:
            everywhere = self.questions.at_every_input(masks)
            self._calls.values(CoalitionPoints(self._points, pair, everywhere))
            return
        for _ in self._calls.gradients(RayPoints(self._points, pair, masks, np.arange(len(masks)), node)):
            pass

    @property
    def seconds_per_forward(self) -> float:
        """The time of a forward in the batches so far; NaN before the second batch."""
        return self._calls.forwards.seconds_per_point

    @property
    def seconds_per_gradient(self) -> float:
        """The time of a point with its gradients in the batches so far; NaN before the second batch."""
        return self._calls.backwards.seconds_per_point

    def session(self) -> AbstractContextManager[None]:
        """Around all calls of one explanation: the model prepares once, and is restored once."""
        return self._calls.session()

    def endpoints(self) -> tuple[Array, Array]:
        """F(x) (n_questions,) and F(x') (n_questions, n_baselines); from then on v(full) and v(empty) are known."""
        self._points.builder(self._calls.forwards.next()[0])  # before the first batch, whose memory is weighed
        pairs, n_inputs = np.arange(self.questions.n_pairs), self.questions.n_inputs
        full = np.ones((len(pairs), self.problem.n_features), dtype=bool)
        firsts = pairs[:: self.questions.n_baselines]  # x is the same for every baseline
        at_ends = CoalitionPoints(
            self._points, np.concatenate([firsts, pairs]), np.concatenate([full[:n_inputs], ~full])
        )
        values = self._calls.values(at_ends)  # (n_inputs + n_pairs, n_targets)
        f_x, f_baseline = values[:n_inputs], values[n_inputs:]
        self._remember(full, pairs, f_x[self.questions.input_of_pair(pairs)] - f_baseline, f_baseline)
        return f_x.reshape(-1), self.questions.by_question(f_baseline)

    def doubts(self, f_x: Array, f_baselines: Array) -> ModelDoubts:
        """Why the model may not be a function of its input, for every question; see `model_doubts`."""
        return model_doubts(self._calls, self._points, self.problem.dtypes, f_x, f_baselines)

    def recall(self, f_baselines: Array, ledgers: Sequence[AnyLedger]) -> None:
        """Take over F(x'), (n_questions, n_baselines), and the coalition values in the ledgers of the questions."""
        ledgers_with_rows = [ledger.kept_rows for ledger in ledgers if ledger.kept_rows is not None]
        masks, baseline = np.zeros((0, self.problem.n_features), dtype=bool), np.zeros(0, dtype=np.int64)
        values = np.zeros((0, self.questions.n_targets))
        if ledgers_with_rows:
            first = ledgers_with_rows[0]
            known = np.isfinite(first.value)
            masks, baseline = self.questions.at_every_input(first.masks[known]), first.baseline[known]
            values = self.questions.by_row([ledger.value[known] for ledger in ledgers_with_rows])
        self._remember(masks, self.questions.pairs(baseline), values, self.questions.by_row(f_baselines))

    def _remember(self, masks: Masks, pair: NDArray[np.int64], values: Array, f_baseline: Array) -> None:
        """v(T) of these coalitions, (n_rows, n_targets), and F(x') of every pair; v(empty) = 0."""
        self._f_baseline = f_baseline
        empty = np.zeros((len(f_baseline), self.problem.n_features), dtype=bool)
        zeros = np.zeros(self.questions.n_targets)
        self._values.update(dict.fromkeys(self._keys(empty, np.arange(len(empty))), zeros))
        self._values.update(zip(self._keys(masks, pair), values, strict=True))

    def evaluate(self, request: RayRequest, *, values: bool, remember: bool = True) -> tuple[Ledger, ...]:
        """The ledger rows of a request for every question: gradients at its points, and v(T) if `values`.

        v of all features needs no forward and is always there. Without `remember` coalitions are neither looked up nor
        remembered, except x and x' themselves.
        """
        gradients = self.gradients(request)
        if values:
            look = self.values if remember or not self._moves.all() else self._values_anew
            coalition_values = look(request.masks, request.baseline)
        else:
            coalition_values = np.full((self.n_questions, request.n_rays), np.nan)
            everyone = request.masks.all(1)
            if everyone.any():  # whose value is known from F(x) and F(x')
                coalition_values[:, everyone] = self.values(request.masks[everyone], request.baseline[everyone])
        return tuple(Ledger.record(request, *rows) for rows in zip(gradients, coalition_values, strict=True))

    def gradients(self, request: RayRequest) -> list[Array]:
        """The gradients at the points of a request, of every question (n_points, n_features)."""
        if not request.nodes.size:
            return [np.empty((0, self.problem.n_features))] * self.n_questions
        return self._gathered(request.n_points, self.gradient_batches(request))

    def again(self, ledger: Ledger, order: NDArray[np.int64]) -> tuple[Ledger, ...]:
        """The same rows, evaluated with this problem's model; coalition values where the ledger has them.

        `order` holds the seeds of the orders in which discrete features jumped, (n_rays,).
        """
        weight = ledger.sum_points(ledger.weight)
        batches = self._gradient_batches(ledger.masks, ledger.baseline, order, ledger.ray, ledger.node, weight)
        gradients = self._gathered(ledger.n_points, batches)
        values, known = np.full((self.n_questions, ledger.n_rays), np.nan), np.isfinite(ledger.value)
        values[:, known] = self.values(ledger.masks[known], ledger.baseline[known])
        return tuple(replace(ledger, gradient=g, value=v) for g, v in zip(gradients, values, strict=True))

    def _gathered(self, n_points: int, batches: Iterator[GradientRows]) -> list[Array]:
        """All gradients of every question."""
        gradients = [np.empty((n_points, self.problem.n_features)) for _ in range(self.n_questions)]
        for question, part, rows in batches:
            gradients[question][part] = rows
        return gradients

    def gradient_batches(self, request: RayRequest) -> Iterator[GradientRows]:
        """The gradients at the points of a request, batch by batch: (question, slice of its points, rows).

        Nothing is kept. Every question gets its points in order, in as many slices as there are batches.
        """
        weight = np.nansum(request.weights, axis=1)
        points = request.ray, request.by_point("nodes")
        return self._gradient_batches(request.masks, request.baseline, request.order, *points, weight)

    def _gradient_batches(
        self,
        masks: Masks,
        baseline: NDArray[np.int64],
        order: NDArray[np.int64],
        ray: NDArray[np.int64],
        node: Array,
        weight: Array,  # (n_rays,) of all nodes on a ray together
    ) -> Iterator[GradientRows]:
        n_points, discrete = len(ray), self.problem.features.discrete
        jumps = self._jumps(masks, baseline, order, weight) if n_points and discrete.any() else None
        if jumps is not None and discrete.all():  # nothing moves, so no gradient enters
            for question in range(self.n_questions):
                self._calls.progress(n_points, 0)
                yield question, slice(0, n_points), jumps[question, ray]
        else:
            points = RayPoints(self._points, self.questions.pairs(baseline[ray]), masks, ray, node)
            for batch in self._calls.gradients(points):
                for target, gradients in enumerate(batch.rows):
                    for number, own_points, rows_of_input in self.questions.cut(batch.part, n_points):
                        question = self.questions.number(number, target)
                        rows = gradients[rows_of_input]
                        if jumps is not None:
                            rows = np.where(discrete, jumps[question, ray[own_points]], rows)
                        yield question, own_points, rows
        self.cost.n_rays += len(np.unique(ray)) * self.questions.n_inputs

    def _jumps(self, masks: Masks, baseline: NDArray[np.int64], order: NDArray[np.int64], weight: Array) -> Array:
        """What replaces the gradient of discrete features: (n_questions, n_rays, n_features), J over all weights."""
        jumping = self.problem.features.discrete & self._moves.any(0)  # one that does not move gets nothing
        sizes = np.zeros((self.n_questions, *masks.shape))
        if np.isnan(self._f_baseline).any():
            self.endpoints()
        for rays in portions(n_jump_points(masks, jumping, order), masks.shape[1]):
            halfway = DiscreteJumps.of(masks[rays], jumping, order[rays])
            values = self._values_in(halfway.state, baseline[rays][halfway.ray])
            for question, of_question in enumerate(values):
                sizes[question, rays] = halfway.sizes(of_question, rays.stop - rays.start)
        return sizes / np.where(weight == 0, 1.0, weight)[:, None]

    def values(self, masks: Masks, baseline: NDArray[np.int64]) -> Array:
        """v(T) = F(x_T) - F(x') of every row, (n_questions, n_rows), each distinct coalition evaluated once."""
        return self._values_in(np.asarray(masks).astype(np.uint8), baseline, remember=True)

    def _values_anew(self, masks: Masks, baseline: NDArray[np.int64]) -> Array:
        """v(T) of every row, (n_questions, n_rows), with one forward for each coalition but that of all features."""
        everyone = masks.all(1)
        others = np.flatnonzero(~everyone)
        values = np.empty((self.n_questions, len(masks)))
        pair = self.questions.pairs(baseline[others])
        points = CoalitionPoints(self._points, pair, self.questions.at_every_input(masks[others]))
        values[:, others] = self.questions.by_question(self._calls.values(points) - self._f_baseline[pair])
        if len(others) < len(masks):
            starts = np.arange(self.questions.n_baselines)
            whole = self.values(np.ones((len(starts), masks.shape[1]), dtype=bool), starts)
            values[:, everyone] = whole[:, baseline[everyone]]
        return values

    def values_along(self, masks: Masks, baseline: int, nodes: Array) -> Array:
        """F - F(x') at these nodes of every ray, (n_questions, n_rays, n_nodes), by forwards."""
        values = np.empty((self.n_questions, len(masks), len(nodes)))
        inside = nodes < 1  # the end of a ray is a coalition, which may be known already
        ray, node = np.repeat(np.arange(len(masks)), inside.sum()), np.tile(nodes[inside], len(masks))
        pair = self.questions.pairs(np.full(len(ray), baseline))
        found = self._calls.values(RayPoints(self._points, pair, masks, ray, node)) - self._f_baseline[pair]
        values[:, :, inside] = self.questions.by_question(found).reshape(self.n_questions, len(masks), -1)
        if not inside.all():
            ends = self.values(masks, np.full(len(masks), baseline, dtype=np.int64))
            values[:, :, ~inside] = ends[:, :, None]
        return values

    def _values_in(self, states: NDArray[np.uint8], baseline: NDArray[np.int64], remember: bool = False) -> Array:
        """F - F(x') where every feature is at x', at x or half-way, as `discrete.STEPS` numbers these states.

        (n_questions, n_rows); each distinct point is evaluated once. States without a half-way are coalitions. If
        `remember` is False, values are remembered only while there is room.
        """
        everywhere, pair = self.questions.at_every_input(states), self.questions.pairs(baseline)
        keys = self._keys(everywhere, pair)
        fresh = {key: row for row, key in enumerate(keys) if key not in self._values}
        known = self._values
        if fresh:
            rows = np.fromiter(fresh.values(), dtype=np.int64)
            points = self._points_in(everywhere[rows], pair[rows])
            found = dict(zip(fresh, self._calls.values(points) - self._f_baseline[pair[rows]], strict=True))
            if remember or (len(known) + len(found)) * states.shape[1] < _MEMORY:
                known.update(found)
            else:
                known = {key: found[key] if key in found else known[key] for key in keys}
        rows_of_keys = np.array([known[key] for key in keys], dtype=np.float64)
        return self.questions.by_question(rows_of_keys.reshape(len(keys), self.questions.n_targets))

    def _points_in(self, states: NDArray[np.uint8], pair: NDArray[np.int64]) -> PairPoints:
        if (states == 2).any():
            return StepPoints(self._points, pair, STEPS[states])
        return CoalitionPoints(self._points, pair, states > 0)

    @cached_property
    def _moves(self) -> Masks:
        """Which features differ from the baseline of every pair, (n_pairs, n_features)."""
        return np.concatenate([problem.squared_distance > 0 for problem in self.problems])

    def _keys(self, states: NDArray[np.generic], pair: NDArray[np.int64]) -> list[tuple[int, bytes]]:
        """What tells points apart: the features that move. A feature with x = x' makes no difference to F."""
        moving = np.where(self._moves[pair], states, 0).astype(np.uint8)
        n, raw = moving.shape[1], moving.tobytes()
        return [(number, raw[row * n : (row + 1) * n]) for row, number in enumerate(pair.tolist())]
