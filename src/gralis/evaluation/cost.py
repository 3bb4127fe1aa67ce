"""What an explanation has cost: counted as it is spent, shared out among questions that were asked together."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace


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

    def of_one(self, n_inputs: int, n_targets: int, seconds: float) -> Cost:
        """What one question costs: gradients and time of its own, the forwards and rays of its input."""
        n_questions = n_inputs * n_targets
        return replace(
            self,
            n_gradients=self.n_gradients // n_questions,
            n_forwards=self.n_forwards // n_inputs,
            n_rays=self.n_rays // n_inputs,
            seconds=seconds / n_questions,
            peak_bytes=peak_bytes(),
        )

    @staticmethod
    def of_all(costs: Sequence[Cost], n_targets: int) -> Cost:
        """The inverse of `of_one`.

        >>> Cost.of_all([Cost(n_gradients=60, n_forwards=8).of_one(2, 3, seconds=1.0)] * 6, 3).n_forwards
        8
        """
        one_each = costs[::n_targets]
        return replace(
            costs[0],
            n_gradients=sum(cost.n_gradients for cost in costs),
            n_forwards=sum(cost.n_forwards for cost in one_each),
            n_rays=sum(cost.n_rays for cost in one_each),
            seconds=sum(cost.seconds for cost in costs),
        )


def peak_bytes() -> int:
    """The largest memory this process has had; 0 where the system does not tell."""
    try:
        import resource
    except ImportError:
        return 0
    unit = 1 if sys.platform == "darwin" else 1024
    return int(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss) * unit
