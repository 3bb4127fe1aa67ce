"""One run: settle the plan, evaluate its replicates (all at once, or look by look), estimate, and be able to go on."""

from __future__ import annotations

import platform
import resource
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, is_dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import scipy
import torch

from gralis.certificates.simultaneous import half_widths
from gralis.errors import BudgetError, GralisError
from gralis.estimators import Estimate, estimate
from gralis.evaluate import Evaluator
from gralis.explanation import Explanation
from gralis.fold import N_GROUPS, RAYS_PER_BLOCK, FoldedLedger
from gralis.kernels import Kernel
from gralis.ledger import Ledger
from gralis.plans import Plan, Schedule, Sheet, Task
from gralis.problem import Problem
from gralis.progress import Bar, ProgressOption, Stopwatch
from gralis.version import __version__

_KEEP_BYTES = 2**26  # rows up to this size are kept; beyond, the ledger is folded
_N_LOOKS = 5  # how often a run with a tolerance looks at its error; each look spends its share of 1 - level


@dataclass(frozen=True)
class Options:
    """The checked options of `explain` that are not about the problem itself."""

    budget: int | None
    tolerance: float | None
    level: float
    quadrature: str | None
    n_nodes: int | None
    replicates: int | None
    coalition_values: bool
    atol: float
    max_seconds: float | None
    seed: int
    batch_size: int | None
    max_memory: int | None
    on_interrupt: Literal["raise", "return"]


class Run:
    """An explanation in the making; `extend` comes back to it."""

    def __init__(
        self, problem: Problem, kernels: Sequence[Kernel], plan: Plan, options: Options, progress: ProgressOption
    ) -> None:
        self.problem, self.kernels, self.plan, self.options = problem, tuple(kernels), plan, options
        self._progress = progress
        self._evaluator = Evaluator(problem, batch_size=options.batch_size, max_memory=options.max_memory)
        self._seconds = 0.0

    @cached_property
    def task(self) -> Task:
        options, folded = self.options, self.folded
        return Task(
            kernel=self.kernels[0],
            squared_distance=self.problem.squared_distance,
            baseline_weights=self.problem.baselines.weights,
            budget=options.budget,
            seed=options.seed,
            quadrature=options.quadrature,
            n_nodes=options.n_nodes,
            replicates=options.replicates,
            with_values=options.coalition_values and not folded,
            rays_per_replicate=RAYS_PER_BLOCK if folded or self._stepwise else None,
            least_replicates=N_GROUPS if folded else 4,
        )

    @property
    def folded(self) -> bool:
        """Whether the rows would be too many to keep: then only their sums stay."""
        rows = self.options.budget or 0
        return self.plan.name in ("shared", "independent") and rows * self.problem.n_features * 8 > _KEEP_BYTES

    @property
    def _stepwise(self) -> bool:
        """Whether replicates are evaluated one by one, so that the run may stop between them."""
        o = self.options
        return o.tolerance is not None or o.max_seconds is not None or o.on_interrupt == "return"

    def result(self) -> Explanation:
        """Run the plan from the start."""
        if not self.problem.squared_distance.any():
            raise GralisError("x equals the baseline everywhere, so there is no difference to explain; choose another.")
        with Bar(self._progress, self.options.budget or 0) as bar, self._evaluator.session():
            self._evaluator.report_to(bar.add)
            self._watch = Stopwatch(self.options.max_seconds)
            self._f_x, self._f_baselines = self._evaluator.endpoints()
            schedule = self.plan.settle(self.task, self._probe)
            bar.expect(schedule.n_gradients + self._evaluator.cost.n_gradients)
            if self.folded and schedule.name != "exhaustive":
                return self._folded(schedule)
            kept = [*schedule.taught, *self._always(schedule)]
            return self._sampled(schedule, kept, 0)

    def extend(self, so_far: Explanation, schedule: Schedule, budget: int) -> Explanation:
        """Go on with more replicates of the same schedule."""
        done = so_far.ledger.n_replicates  # fewer than planned, if the run stopped early
        per_replicate = schedule.rays_per_replicate * max(schedule.n_nodes, 1)  # a plan without nodes counts forwards
        extra = budget // per_replicate
        if extra < 1:
            raise BudgetError(f"One more replicate needs a budget of {per_replicate}; extend was given {budget}.")
        longer = schedule.more(done + extra)
        self._evaluator.cost, self._seconds = replace(so_far.cost), so_far.cost.seconds
        with Bar(self._progress, extra * per_replicate) as bar, self._evaluator.session():
            self._evaluator.report_to(bar.add)
            self._watch = Stopwatch(self.options.max_seconds)
            if isinstance(so_far.ledger, FoldedLedger):
                return self._folded(longer, so_far.ledger.copy(), done)
            return self._sampled(longer, [so_far.ledger], done)

    def _probe(self, sheet: Sheet) -> Ledger:
        return self._evaluator.evaluate(sheet, values=self.task.with_values)

    def _always(self, schedule: Schedule) -> list[Ledger]:
        """Rows that belong to every replicate."""
        census = schedule.census()
        return [] if census is None else [self._evaluator.evaluate(census, values=True)]

    def _sampled(self, schedule: Schedule, kept: list[Ledger], first: int) -> Explanation:
        values = self.task.with_values or schedule.rule is None  # without nodes there is nothing else
        numbers = range(first, schedule.n_replicates)
        if not self._stepwise:
            sheet = Sheet.stack([schedule.replicate(r) for r in numbers])
            ledger = Ledger.join([*kept, self._evaluator.evaluate(sheet, values=values)])
            return self._explanation(ledger, schedule)
        self._looks = _looks(first, schedule.n_replicates)
        for number in numbers:
            try:
                kept.append(self._evaluator.evaluate(schedule.replicate(number), values=values))
            except KeyboardInterrupt:
                if self.options.on_interrupt == "raise" or number < 2:
                    raise
                return self._explanation(Ledger.join(kept), schedule, complete=False)
            last = number + 1 == schedule.n_replicates
            if self._watch.over and number >= 1 and not last:
                return self._explanation(Ledger.join(kept), schedule, complete=False)
            if self.options.tolerance is not None and (number + 1 in self._looks or last) and number >= 1:
                kept = [Ledger.join(kept)]
                found = self._explanation(kept[0], schedule)
                if found.reached or last:
                    return found
        return self._explanation(Ledger.join(kept), schedule)

    def _folded(self, schedule: Schedule, ledger: FoldedLedger | None = None, first: int = 0) -> Explanation:
        ledger = ledger or FoldedLedger.empty(self.kernels, self.problem.n_features)
        laws = [[kernel.bind(row) for row in self.problem.squared_distance] for kernel in self.kernels]
        complete, numbers = True, range(first, schedule.n_replicates)
        self._looks = _looks(first, schedule.n_replicates)
        for number in numbers:
            sheet = schedule.replicate(number)
            block = ledger.block(sheet, laws, self.problem.baselines.weights)
            try:
                self._evaluator.stream(sheet, block.take)
            except KeyboardInterrupt:
                if self.options.on_interrupt == "raise" or number < 2:
                    raise
                complete = False
                break
            block.close()
            if self._watch.over and number >= 1 and number + 1 < schedule.n_replicates:
                complete = False
                break
            looking = self.options.tolerance is not None and number + 1 in self._looks
            if looking and number >= 1 and self._explanation(ledger, schedule).reached:
                break
        return self._explanation(ledger, schedule, complete=complete)

    def _explanation(self, ledger: Ledger | FoldedLedger, schedule: Schedule, *, complete: bool = True) -> Explanation:
        weights, kernel = self.problem.baselines.weights, self.kernels[0]
        if isinstance(ledger, FoldedLedger):
            found = ledger.estimate(kernel)
        else:
            found = estimate(ledger, kernel, self.problem.squared_distance, weights, schedule.method)
        price = 1.0 if self.options.tolerance is None or found.exact else self._price(ledger.n_replicates)
        delta = self._f_x - float(weights @ self._f_baselines)
        cost = replace(
            self._evaluator.cost,
            seconds=self._seconds + self._watch.seconds,
            peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        )
        form = self.problem.form
        more = not found.exact
        return Explanation(
            estimate=found,
            kernel=kernel,
            ledger=ledger,
            features=self.problem.features,
            f_x=self._f_x,
            f_baselines=self._f_baselines,
            endpoints=self.problem.endpoints,
            squared_distance=self.problem.squared_distance,
            cost=cost,
            plan={"name": schedule.name, "estimator": schedule.method, **schedule.describe()},
            provenance=self._provenance(),
            complete=complete,
            reached=self._reached(found, delta, price),
            price=price,
            leaf_keys=form if isinstance(form, tuple) else None,
            several_leaves=form is tuple,
            _continue=(lambda so_far, budget: self.extend(so_far, schedule, budget)) if more else None,
        )

    def _price(self, n_replicates: int) -> float:
        """1 / the share of 1 - level that the look at n_replicates, or the next one after it, may spend."""
        upcoming = [look for look in self._looks if look >= n_replicates] or [self._looks[-1]]
        return sum(self._looks) / upcoming[0]

    def _reached(self, found: Estimate, delta: float, price: float) -> bool | None:
        """Whether every simultaneous half-width is small enough, at a level that pays for this look."""
        o = self.options
        if o.tolerance is None:
            return None
        if found.exact:
            return True
        half = half_widths(found, 1 - (1 - o.level) / price)
        return bool(half.max() <= max(o.atol, o.tolerance * abs(delta)))

    def _provenance(self) -> dict[str, Any]:
        return {
            "gralis": __version__,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "hashes": self._fingerprints,
            "target": self.problem.target,
            "baseline": self.problem.baselines.name,
            "features": repr(self.problem.features),
            "kernels": [repr(kernel) for kernel in self.kernels],
            "plan": self.plan.name,
            "plan_options": _plan_options(self.plan),
            "layer": self.problem.layer,
            "input_dtype": [str(leaf.dtype).removeprefix("torch.") for leaf in self.problem.x],
            "dtype": ", ".join(dict.fromkeys(str(dtype).removeprefix("torch.") for dtype in self.problem.dtypes)),
            **asdict(self.options),
        }

    @cached_property
    def _fingerprints(self) -> dict[str, str]:
        return self.problem.fingerprints()


def _plan_options(plan: Plan) -> dict[str, Any]:
    """What the plan was made with, so that it can be made again."""
    if not is_dataclass(plan):
        return {}
    known = {f.name: getattr(plan, f.name) for f in fields(plan) if f.name != "name"}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in known.items()}


def _looks(first: int, last: int) -> list[int]:
    """After how many replicates to look: about geometric, the last one the end.

    A look spends of 1 - level in proportion to its replicates: late looks are where runs stop, and their intervals
    should not be much wider than without any looking.
    """
    least = min(max(4, first + 1), last)
    return [int(look) for look in np.unique(np.geomspace(least, last, _N_LOOKS).astype(int))]
