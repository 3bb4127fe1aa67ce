"""What an explanation has cost: counted while the model is called, and divided among the questions of one run."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from gralis.evaluation.questions import Questions

__all__ = ["Cost", "peak_bytes"]


@dataclass
class Cost:
    """What was spent on one explanation.

    Attributes
    ----------
    n_gradients : int
        Points at which the gradient was evaluated. A gradient includes its own forward.
    n_forwards : int
        Points at which only the value was evaluated, F(x) and F(x') among them.
    n_rays : int
        Rays that were evaluated.
    n_batches : int
        Calls of the model.
    seconds : float
        Wall-clock time.
    peak_bytes : int
        The largest memory that the process has used so far; 0 where the system does not say.
    batch_size : int
        The largest number of points in one batch of gradients.
    bytes_per_point : int
        The memory that one point needs in a batch of gradients, measured in the first batch.
    layout : str
        The memory layout of the points, "contiguous" or "channels_last".
    """

    n_gradients: int = 0
    n_forwards: int = 0
    n_rays: int = 0
    n_batches: int = 0
    seconds: float = 0.0
    peak_bytes: int = 0
    batch_size: int = 0
    bytes_per_point: int = 0
    layout: str = "contiguous"

    def __add__(self, other: Cost) -> Cost:
        """Both costs together; the rest describes the first."""
        return replace(
            self,
            n_gradients=self.n_gradients + other.n_gradients,
            n_forwards=self.n_forwards + other.n_forwards,
            n_rays=self.n_rays + other.n_rays,
            seconds=self.seconds + other.seconds,
        )

    def of_one(self, questions: Questions, seconds: float) -> Cost:
        """The cost of one question: its share of the gradients and of the time, the forwards and rays of its input."""
        return replace(
            self,
            n_gradients=self.n_gradients // len(questions),
            n_forwards=self.n_forwards // questions.n_inputs,
            n_rays=self.n_rays // questions.n_inputs,
            seconds=seconds / len(questions),
            peak_bytes=peak_bytes(),
        )

    @staticmethod
    def of_all(costs: Sequence[Cost], questions: Questions) -> Cost:
        """The cost of all questions together, from the cost of each: the inverse of `of_one`.

        >>> questions = Questions(n_inputs=2, n_targets=3)
        >>> each = Cost(n_gradients=60, n_forwards=8).of_one(questions, seconds=1.0)
        >>> Cost.of_all([each] * 6, questions).n_forwards
        8
        """
        one_per_input = costs[:: questions.n_targets]
        return replace(
            costs[0],
            n_gradients=sum(cost.n_gradients for cost in costs),
            n_forwards=sum(cost.n_forwards for cost in one_per_input),
            n_rays=sum(cost.n_rays for cost in one_per_input),
            seconds=sum(cost.seconds for cost in costs),
        )


def peak_bytes() -> int:
    """The largest memory that this process has used so far; 0 where the system does not say."""
    try:
        import resource
    except ImportError:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit
