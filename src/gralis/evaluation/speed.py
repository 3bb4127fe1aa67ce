"""How fast a model is, and how much memory a batch takes: measured on batches of growing size, after the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from gralis.arrays import Masks
from gralis.evaluation import clock
from gralis.evaluation.batching import BatchSizer
from gralis.evaluation.evaluator import Evaluator
from gralis.problem import Problem

__all__ = ["Speed"]

_SECONDS = 2.0  # that a measurement may take, for each kind of call
_MOST_POINTS = 1024
_WEIGHED = (1, 1, 4, 16)  # points in the batches that are weighed
_SECONDS_WEIGHING = 20.0  # for each kind of call, where the system is slow to say what memory is in use
_YET_TO_GROW = 2  # a search that the time of the measurement cut short mostly tries one doubling more


@dataclass(frozen=True)
class Speed:
    """The time and the memory of a model.

    Attributes
    ----------
    forward : float
        The seconds of one forward in a batch.
    point : float
        The seconds of one point with its gradients in a batch; 0 if none is wanted.
    weights : tuple of (float, int)
        For forwards, then for gradients: the memory of a point, and the points of a batch that a run should try.
    """

    forward: float
    point: float
    weights: tuple[tuple[float, int], ...]

    def bytes(self, n_forwards: int, n_points: int) -> int:
        """The memory of the largest batch in a run of so many forwards and of so many points with gradients."""
        counts = zip(self.weights, (n_forwards, n_points), strict=True)
        return int(np.ceil(max(weight * min(size, count) for (weight, size), count in counts)))

    @classmethod
    def measured(
        cls, problems: Sequence[Problem], *, gradients: bool, batch_size: int | None, max_memory: int | None
    ) -> Speed:
        """Time batches of forwards, then of gradients, in sizes that grow as they do in a run; then weigh small ones.

        Parameters
        ----------
        problems : sequence of Problem
            What is to be explained.
        gradients : bool
            Whether gradients are wanted.
        batch_size, max_memory : int or None
            As in `gralis.explain`.
        """
        timed = Evaluator(problems, batch_size=batch_size, max_memory=max_memory)
        weighed = Evaluator(problems, batch_size=batch_size, max_memory=max_memory, weigh=True)
        wants_gradients = gradients and not timed.problem.features.discrete.all()
        rng, n = np.random.default_rng(0), timed.problem.n_features

        def points(evaluator: Evaluator, with_gradients: bool) -> Callable[[int], None]:
            def evaluate(count: int) -> None:
                nodes = rng.random(count) if with_gradients else None
                evaluator.try_points(_masks(rng, count, n), nodes)

            return evaluate

        with timed.session():
            forward = _seconds(points(timed, False)) / len(problems)
            point = _seconds(points(timed, True)) / len(problems) if wants_gradients else 0.0
        with weighed.session():
            for with_gradients, seconds in ((False, forward * len(problems)), (True, point * len(problems))):
                began, sum_of_points = clock.now(), 0
                for count in _WEIGHED if wants_gradients or not with_gradients else ():
                    sum_of_points += count
                    # The time of the model counts: on a busy machine, weighing takes far longer than the batches.
                    if sum_of_points * seconds < _SECONDS and clock.now() - began < _SECONDS_WEIGHING:
                        points(weighed, with_gradients)(count)
        pairs = zip(weighed.sizers, timed.sizers, strict=True)
        weights = tuple((weight.bytes_per_point, _largest(size, weight, max_memory)) for weight, size in pairs)
        return cls(forward, point, weights)


def _largest(sizer: BatchSizer, weighed: BatchSizer, max_memory: int | None) -> int:
    """The points of the largest batch of a run, which goes on where the time of the measurement ended."""
    size = max(sizer.largest, sizer.next()[1] * (_YET_TO_GROW if sizer.searching else 1))
    if max_memory is None or not weighed.bytes_per_point:
        return size
    return max(1, min(size, int(max_memory / weighed.bytes_per_point)))


def _masks(rng: np.random.Generator, count: int, n_features: int) -> Masks:
    """Coalitions of all sizes."""
    return np.asarray(rng.random((count, n_features)) < rng.random((count, 1)))


def _seconds(evaluate: Callable[[int], None]) -> float:
    """The seconds of one point, from the last and largest number of points that the time allows."""
    count, began = 2, clock.now()
    evaluate(count)  # the first batch also pays for what is set up once
    while True:
        start = clock.now()
        evaluate(count)
        end = clock.now()
        seconds = (end - start) / count
        if count >= _MOST_POINTS or 2 * count * seconds > _SECONDS - (end - began):
            return seconds
        count *= 2
