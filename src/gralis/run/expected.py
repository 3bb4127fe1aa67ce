"""What a run is expected to take: points, seconds of the model and of the fits, and whether the time suffices."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gralis.errors import GralisError
from gralis.estimators import estimates
from gralis.evaluation.clock import Stopwatch
from gralis.ledger import Ledger
from gralis.options import Options
from gralis.plans import Schedule
from gralis.plans.ray_walk import WALK_FORWARDS
from gralis.run import pace
from gralis.run.settings import RunSettings
from gralis.run.stage import Ends
from gralis.run.work import Work, rays_of, settle_blindly, smooth_rows, work_of

__all__ = ["ENOUGH", "ExpectedRun"]

ENOUGH = 2  # replicates from which errors can be read


class ExpectedRun(RunSettings):
    """The part of a `Run` that says what it will take."""

    def set_pace(self, forward: float) -> None:
        """Choose the budget of a slow or very quick model if the user did not, given the seconds of one forward."""
        counts_forwards = self.plan.counts_forwards
        self.options = self._enumerated(forward)
        self.options = pace.paced(self.options, forward, self.problem.n_features, self.n_targets, counts_forwards)

    def _enumerated(self, forward: float) -> Options:
        """The options for all coalitions, if the plan has no gradients and they are few and quick."""
        if not self.plan.counts_forwards:
            return self.options
        moving = int((self.problem.squared_distance > 0).any(0).sum())
        return pace.enumerated(self.options, forward, moving, self.problem.baselines.n_baselines)

    def seconds_per_forward(self, clock: Stopwatch) -> float:
        """The seconds of one forward. The first batch also pays for the set-up, so a slow one is evaluated again."""
        evaluator, n_ends = self._evaluator, self._evaluator.cost.n_forwards
        if np.isnan(evaluator.seconds_per_forward):  # a plan without gradients has evaluated F(x) and F(x') alone
            first = clock.seconds / n_ends
            looks_slow = self._enumerated(0.0).budget != self._enumerated(first).budget
            if first * pace.DEFAULT_BUDGET <= pace.AUTOMATIC_SECONDS and not looks_slow:
                return first
            evaluator.endpoints()
            self.options = replace(self.options, budget=pace.DEFAULT_BUDGET - n_ends)
        return evaluator.seconds_per_forward

    def seconds_of_fits(self, schedule: Schedule) -> float:
        """The time of the estimate at the end, from the rows that the plan would give for a smooth function."""
        watch, values = Stopwatch(None), self.with_values(schedule)
        requests = [schedule.census(), *rays_of(schedule)]
        rows = Ledger.join(
            [rays if isinstance(rays, Ledger) else smooth_rows(rays, values) for rays in requests if rays is not None]
        )
        ends = Ends(np.ones(1), np.zeros((1, self.problem.baselines.n_baselines)))
        estimates([rows], self.designs(schedule, ends, schedule.estimator)[:1])
        return watch.seconds * self.n_inputs * self.n_targets

    def points_to_come(self, schedule: Schedule) -> int:
        """What the bar of the replicates counts up to: gradients and forwards."""
        work = self.work(schedule)
        so_far = self._evaluator.cost.n_forwards + self._evaluator.cost.n_gradients
        return max(1, (work.n_points * self.n_targets + work.n_forwards) * self.n_inputs - so_far)

    def work(self, schedule: Schedule, n_replicates: int | None = None) -> Work:
        """What a settled plan evaluates for each input, up to its last replicate or to replicate `n_replicates`."""
        orders = np.zeros(0, dtype=np.int64)
        if self.problem.features.discrete.any() and schedule.rule is not None:
            replicate = np.concatenate([rays.replicate for rays in rays_of(schedule, n_replicates)])
            orders = self.orders(replicate)
        work = work_of(self.plan, schedule, self.problem, orders, n_replicates)
        walks = schedule.learns_density and self.task.along is not None
        return replace(work, n_forwards=work.n_forwards + WALK_FORWARDS) if walks else work

    def too_short(self, clock: Stopwatch) -> GralisError:
        """The error for a time that has passed before there was anything to return."""
        evaluator, cost = self._evaluator, self._evaluator.cost
        spent = clock.seconds / max(cost.n_forwards + (1 + pace.BACKWARD) * cost.n_gradients, 1.0)
        forward, point = evaluator.seconds_per_forward, evaluator.seconds_per_gradient
        forward = spent if np.isnan(forward) else forward
        point = (1 + pace.BACKWARD * self.n_targets) * forward if np.isnan(point) else point
        least = self.work(settle_blindly(self.plan, self.task), ENOUGH)
        assert self.options.max_seconds is not None
        return pace.too_short(self.options.max_seconds, least, forward * self.n_inputs, point * self.n_inputs)
