"""What a run is about: the problems, the plan and the options, and the task that the plan has to settle."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks
from gralis.estimators import Design, Estimator
from gralis.evaluation.evaluator import Evaluator
from gralis.evaluation.function_probe import ModelDoubts
from gralis.evaluation.progress import ProgressOption
from gralis.kernels import Kernel
from gralis.ledger import N_GROUPS, RAYS_PER_BLOCK, Ledger
from gralis.options import Options
from gralis.plans import Plan, PlanningTask, Schedule
from gralis.plans.exhaustive_plan import ExhaustivePlan
from gralis.problem import Problem
from gralis.rays.discrete import EVERY_ORDER, jump_orders
from gralis.run.stage import Ends

__all__ = ["RunSettings"]

_KEEP_BYTES = 2**26  # a ledger that would be larger is folded
_ORDER_POINTS = 4  # forwards that all orders of discrete features may cost for every gradient of the budget
_NO_BUDGET = 2**14  # gradients


class RunSettings:
    """The part of a `Run` that says what it is about."""

    def __init__(
        self,
        problems: Sequence[Problem],
        kernels: Sequence[Kernel],
        plan: Plan,
        options: Options,
        progress: ProgressOption,
    ) -> None:
        self.problems, self.kernels, self.plan, self.options = problems, tuple(kernels), plan, options
        self.problem = problems[0]
        self._progress = progress
        self._doubts = ModelDoubts.none(len(problems) * self.n_targets)
        self._evaluator = Evaluator(problems, batch_size=options.batch_size, max_memory=options.max_memory)
        self._known: Sequence[Ledger] = ()

    @property
    def n_targets(self) -> int:
        return len(self.problem.targets)

    @property
    def n_inputs(self) -> int:
        return len(self.problems)

    @property
    def _backwards(self) -> int:
        """How often a point counts in the budget: once for every target, or once if the plan uses forwards only."""
        return 1 if self.plan.counts_forwards else self.n_targets

    @cached_property
    def task(self) -> PlanningTask:
        """The task that the plan has to settle."""
        options, folded = self.options, self.folded
        return PlanningTask(
            kernel=self.kernels[0],
            squared_distance=_typical([problem.squared_distance for problem in self.problems]),
            baseline_weights=self.problem.baselines.weights,
            budget=None if options.budget is None else options.budget // self._backwards,
            seed=options.seed,
            quadrature=options.quadrature,
            n_nodes=options.n_nodes,
            replicates=options.replicates,
            with_values=options.coalition_values and not folded,
            rays_per_replicate=RAYS_PER_BLOCK if folded or self._stepwise else None,
            least_replicates=N_GROUPS if folded else 4,
            halves=bool(self.problem.features.discrete.any()),
            n_targets=self._backwards,
            hurried=options.max_seconds is not None,
            along=self._along if options.coalition_values and not folded else None,
        )

    def _along(self, masks: Masks, baseline: int, nodes: Array) -> Array:
        return self._evaluator.values_along(masks, baseline, nodes)

    @property
    def folded(self) -> bool:
        """Whether the rows would be too many to keep, so that only their sums are kept."""
        rows = (self.options.budget or 0) // self.n_targets
        return self.plan.may_fold and rows * self.problem.n_features * 8 > _KEEP_BYTES

    @property
    def _stepwise(self) -> bool:
        """Whether replicates are evaluated one after the other, so that the run may stop between them."""
        o = self.options
        return o.tolerance is not None or o.max_seconds is not None or o.on_interrupt == "return"

    def designs(self, schedule: Schedule, ends: Ends, estimator: Estimator) -> tuple[Design, ...]:
        """How the ledgers of every input are read."""
        weights, kernel = self.problem.baselines.weights, self.kernels[0]
        return tuple(
            Design(kernel, problem.squared_distance, weights, estimator, schedule.quadrature, self._rounding(ends))
            for problem in self.problems
        )

    def _rounding(self, ends: Ends) -> float:
        """The size of a rounding error of F."""
        return self._evaluator.rounding * float(max(np.abs(ends.f_x).max(), np.abs(ends.f_baselines).max()))

    def orders(self, replicate: NDArray[np.int64]) -> NDArray[np.int64]:
        """In which orders discrete features jump on the rays of whole replicates: every order if the budget allows.

        All jumps together need at most 2^n points, at which every feature is at x' or elsewhere: a discrete one at x, a
        continuous one half-way. One order on each ray often needs more than four forwards per gradient.
        """
        if not self.problem.features.discrete.any():
            return np.full(len(replicate), EVERY_ORDER)
        n_points = (2 ** min(self.problem.n_features, 60) - 1) * self.problem.baselines.n_baselines
        budget = _NO_BUDGET if self.options.budget is None else self.options.budget
        if n_points <= _ORDER_POINTS * budget or isinstance(self.plan, ExhaustivePlan):
            return np.full(len(replicate), EVERY_ORDER)
        return jump_orders(replicate, self.options.seed)

    def with_values(self, schedule: Schedule) -> bool:
        """Whether coalition values are evaluated. A plan without nodes evaluates nothing else."""
        return self.task.with_values or schedule.rule is None


def _typical(squared_distances: Sequence[Array]) -> Array:
    """The squared distances by which rays for several inputs are drawn: the mean shares times the mean total.

    Each input then weights the rays by its own law, so its values stay unbiased. Its effective rays show how much
    precision that costs.
    """
    if len(squared_distances) == 1:
        return squared_distances[0]
    rows = np.stack(squared_distances)  # (n_inputs, n_baselines, n_features)
    totals = rows.sum(2, keepdims=True)
    shares = np.divide(rows, totals, out=np.zeros_like(rows), where=totals > 0)
    return np.asarray(shares.mean(0) * totals.mean(0))
