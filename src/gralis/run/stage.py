"""A settled plan in execution, with everything that is needed to make estimates from its ledgers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from gralis.arrays import Array
from gralis.certificates.stopping import Looks
from gralis.estimators import Design
from gralis.evaluation.clock import Stopwatch
from gralis.evaluation.progress import Bar
from gralis.plans import Schedule

__all__ = ["Ends", "Stage"]


@dataclass(frozen=True, eq=False)
class Ends:
    """F at the two ends of the rays of every question.

    Attributes
    ----------
    f_x : array of shape (n_questions,)
        F(x).
    f_baselines : array of shape (n_questions, n_baselines)
        F(x') of every baseline.
    """

    f_x: Array
    f_baselines: Array


@dataclass(frozen=True, eq=False)
class Stage:
    """A settled plan in execution.

    Attributes
    ----------
    schedule : Schedule
        The settled plan.
    ends : Ends
        F at the two ends of the rays.
    designs : tuple of Design
        The design of every input.
    first : int
        The first replicate of this run; above 0 if it extends another.
    clock : Stopwatch
        The time of this run.
    bar : Bar
        Where the phases of the run are shown.
    seconds_before : float, default=0.0
        The time that earlier runs took, if this one extends them.
    """

    schedule: Schedule
    ends: Ends
    designs: tuple[Design, ...]
    first: int
    clock: Stopwatch
    bar: Bar
    seconds_before: float = 0.0

    @cached_property
    def looks(self) -> Looks:
        """After how many replicates a run with a tolerance looks at its error."""
        return Looks.between(self.first, self.schedule.n_replicates)
