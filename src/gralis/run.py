"""One run: it settles the plan, evaluates the replicates together or one by one, and makes the explanations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks
from gralis.certificates.stopping import Looks, reached
from gralis.errors import BudgetError, GralisError
from gralis.estimators import FOLDED, Design, Estimate, Estimator, estimates
from gralis.evaluation.cost import Cost
from gralis.evaluation.evaluator import Evaluator
from gralis.evaluation.progress import Bar, ProgressOption, Stopwatch
from gralis.kernels import Kernel
from gralis.ledger import N_GROUPS, RAYS_PER_BLOCK, AnyLedger, FoldedLedger, Ledger
from gralis.options import Options
from gralis.plans import Plan, PlanningTask, Schedule
from gralis.plans.exhaustive_plan import ExhaustivePlan
from gralis.problem import Problem
from gralis.rays import RayRequest
from gralis.rays.discrete import EVERY_ORDER, jump_orders
from gralis.results.explanation import Explanation
from gralis.results.provenance import provenance
from gralis.results.result import InputForm

__all__ = ["Run"]

_KEEP_BYTES = 2**26  # a ledger that would be larger is folded
_ORDER_POINTS = 4  # forwards that all orders of discrete features may cost for every gradient of the budget
_NO_BUDGET = 2**14  # gradients


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
    """A settled plan in execution, with everything that is needed to make estimates from its ledgers.

    Attributes
    ----------
    schedule : Schedule
        The settled plan.
    ends : Ends
        F at the two ends of the rays.
    designs : tuple of Design
        The design of every input.
    looks : Looks
        After how many replicates the run looks at its error.
    clock : Stopwatch
        The time of this run.
    seconds_before : float, default=0.0
        The time that earlier runs took, if this one extends them.
    """

    schedule: Schedule
    ends: Ends
    designs: tuple[Design, ...]
    looks: Looks
    clock: Stopwatch
    seconds_before: float = 0.0


class Run:
    """Computes the explanations of one problem with one or several targets, or of several inputs on the same rays.

    `Explanation.extend` makes another run that continues from the ledger.
    """

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
        self._doubts: Sequence[tuple[str, ...]] = ((),) * (len(problems) * self.n_targets)
        self._evaluator = Evaluator(problems, batch_size=options.batch_size, max_memory=options.max_memory)
        self._known: Sequence[Ledger] = ()

    def know(self, ledgers: Sequence[Ledger]) -> None:
        """Take over coalition values that another run of the same model found, one ledger per question.

        They are not evaluated again, and the estimator reads them with the rows of this run.
        """
        self._known = ledgers

    def use(self, evaluator: Evaluator) -> None:
        """Let another evaluator of the same problems evaluate the rays, for example one that distributes them."""
        self._evaluator = evaluator

    @property
    def n_targets(self) -> int:
        return len(self.problem.targets)

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
            along=self._along if options.coalition_values and not folded else None,
        )

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

    def result(self) -> Explanation:
        """Run the plan from the start for a single question."""
        (explanation,) = self.results()
        return explanation

    def results(self) -> tuple[Explanation, ...]:
        """Run the plan from the start and return one explanation per question."""
        for number, problem in enumerate(self.problems):
            if not problem.squared_distance.any():
                which = "x" if len(self.problems) == 1 else f"xs[{number}]"
                raise GralisError(
                    f"{which} equals the baseline everywhere, so there is no difference to explain; choose another."
                )
        with Bar(self._progress, self.options.budget or 0) as bar, self._evaluator.session():
            clock = self._start(bar)
            ends = Ends(*self._evaluator.endpoints())
            if self._known:
                self._evaluator.recall(ends.f_baselines, self._known)
            if not self.plan.counts_forwards:  # whose budget has no forward to spare
                self._doubts = self._evaluator.doubts(ends.f_x, ends.f_baselines)
            schedule = self.plan.settle(self.task, self._probe)
            expected = schedule.n_gradients * self._evaluator.n_questions
            bar.expect(expected + self._evaluator.cost.n_gradients)
            folds = self.folded and not schedule.enumerates
            stage = self._stage(schedule, ends, FOLDED if folds else schedule.estimator, 0, clock)
            if folds:
                return self._collected(_Sums(self._evaluator, stage.designs, self.kernels), stage, 0)
            rows = _Rows(self._evaluator, self._with_values(schedule))
            rows.keep(schedule.pilot)
            rows.keep(self._known)
            census = schedule.census()
            if census is not None:
                rows.keep(self._evaluator.evaluate(census, values=True))
            return self._collected(rows, stage, 0)

    def again(self, before: Explanation) -> Explanation:
        """The explanation from the same rays, evaluated with the model of this run and read in the same way."""
        rows = before.ledger.require_rows("Evaluating the same rays again")
        with self._evaluator.session():
            (f_x,), (f_baselines,) = self._evaluator.endpoints()
            (ledger,) = self._evaluator.again(rows, self.orders(rows.replicate))
        return replace(
            before,
            estimate=before.design.estimate(ledger),
            ledger=ledger,
            f_x=float(f_x),
            f_baselines=f_baselines,
            cost=replace(self._evaluator.cost),
            provenance={**before.provenance, "hashes": self._fingerprints[0]},
            _continue=None,
        )

    def extend(self, before: Sequence[Explanation], schedule: Schedule, budget: int) -> tuple[Explanation, ...]:
        """Add more replicates of the same schedule. The budget is that of each input."""
        self._doubts = [explanation.model_doubts for explanation in before]
        done = before[0].ledger.n_replicates  # fewer than planned if the run stopped early
        per_replicate = schedule.rays_per_replicate * max(schedule.n_nodes, 1)  # a plan without nodes counts forwards
        extra = budget // (per_replicate * self._backwards)
        if extra < 1:
            least = per_replicate * self._backwards
            raise BudgetError(f"One more replicate needs a budget of {least}; extend was given {budget}.")
        ledgers = [explanation.ledger for explanation in before]
        ends = Ends(np.array([e.f_x for e in before]), np.stack([e.f_baselines for e in before]))
        self._evaluator.recall(ends.f_baselines, ledgers)
        self._evaluator.cost = Cost.of_all([e.cost for e in before], self._evaluator.questions)
        seconds, estimator = self._evaluator.cost.seconds, before[0].design.estimator
        with Bar(self._progress, extra * per_replicate * len(before)) as bar, self._evaluator.session():
            clock = self._start(bar)
            stage = self._stage(schedule.more(done + extra), ends, estimator, done, clock, seconds)
            collector: _Rows | _Sums
            if estimator is FOLDED:
                collector = _Sums(self._evaluator, stage.designs, self.kernels, ledgers)
            else:
                collector = _Rows(self._evaluator, self._with_values(schedule))
                collector.keep([ledger.require_rows("Going on") for ledger in ledgers])
            return self._collected(collector, stage, done)

    def _start(self, bar: Bar) -> Stopwatch:
        """Report progress to the bar, and start the clock.

        Bar is entered by a plain function, never by a generator: a callback may raise StopIteration to stop the run.
        """
        self._evaluator.report_to(bar.add)
        return Stopwatch(self.options.max_seconds)

    def _stage(
        self,
        schedule: Schedule,
        ends: Ends,
        estimator: Estimator,
        first: int,
        clock: Stopwatch,
        seconds_before: float = 0.0,
    ) -> Stage:
        weights, kernel = self.problem.baselines.weights, self.kernels[0]
        rounding = self._evaluator.rounding * max(np.abs(ends.f_x).max(), np.abs(ends.f_baselines).max())
        designs = tuple(
            Design(kernel, problem.squared_distance, weights, estimator, schedule.quadrature, rounding)
            for problem in self.problems
        )
        looks = Looks.between(first, schedule.n_replicates)
        return Stage(schedule, ends, designs, looks, clock, seconds_before)

    def _probe(self, request: RayRequest) -> tuple[Ledger, ...]:
        return self._evaluator.evaluate(self._in_orders(request), values=self.task.with_values)

    def _along(self, masks: Masks, baseline: int, nodes: Array) -> Array:
        return self._evaluator.values_along(masks, baseline, nodes)

    def _in_orders(self, request: RayRequest) -> RayRequest:
        return request.in_orders(self.orders(request.replicate))

    def orders(self, replicate: NDArray[np.int64]) -> NDArray[np.int64]:
        """In which orders discrete features jump on the rays of whole replicates: every order if the budget allows.

        All jumps together need at most 2^n points, at which every feature is at x' or elsewhere: a discrete one at x, a
        continuous one half-way. One order on each ray often needs more than four forwards per gradient.
        """
        n_points = (2 ** min(self.problem.n_features, 60) - 1) * self.problem.baselines.n_baselines
        budget = _NO_BUDGET if self.options.budget is None else self.options.budget
        if n_points <= _ORDER_POINTS * budget or isinstance(self.plan, ExhaustivePlan):
            return np.full(len(replicate), EVERY_ORDER)
        return jump_orders(replicate, self.options.seed)

    def _with_values(self, schedule: Schedule) -> bool:
        """Whether coalition values are evaluated. A plan without nodes evaluates nothing else."""
        return self.task.with_values or schedule.rule is None

    def _collected(self, collector: _Rows | _Sums, stage: Stage, first: int) -> tuple[Explanation, ...]:
        """Evaluate replicates until the plan is done, the tolerance is reached, or the time is over."""
        schedule, options = stage.schedule, self.options
        numbers = range(first, schedule.n_replicates)
        if not self._stepwise and collector.takes_all:
            collector.add(self._in_orders(RayRequest.stack([schedule.replicate(number) for number in numbers])))
            return self._explanations(collector.ledgers(), stage)
        for number in numbers:
            try:
                collector.add(self._in_orders(schedule.replicate(number)))
            except KeyboardInterrupt:
                if options.on_interrupt == "raise" or number < 2:
                    raise
                return self._explanations(collector.ledgers(), stage, complete=False)
            last, enough = number + 1 == schedule.n_replicates, number >= 1
            if stage.clock.over and enough and not last:
                return self._explanations(collector.ledgers(), stage, complete=False)
            if options.tolerance is not None and number + 1 in stage.looks and enough and not last:
                explanations = self._explanations(collector.ledgers(), stage)
                if all(explanation.reached for explanation in explanations):
                    return explanations
        return self._explanations(collector.ledgers(), stage)

    def _explanations(
        self, ledgers: Sequence[AnyLedger], stage: Stage, *, complete: bool = True
    ) -> tuple[Explanation, ...]:
        questions = self._evaluator.questions
        designs = [stage.designs[questions.input_of(question)] for question in range(len(questions))]
        read = estimates(ledgers, designs)
        cost = self._evaluator.cost.of_one(questions, stage.seconds_before + stage.clock.seconds)
        return tuple(
            self._explanation(question, ledger, estimate, stage, cost, complete)
            for question, (ledger, estimate) in enumerate(zip(ledgers, read, strict=True))
        )

    def _explanation(
        self, question: int, ledger: AnyLedger, estimate: Estimate, stage: Stage, cost: Cost, complete: bool
    ) -> Explanation:
        number, target = self._evaluator.questions.input_of(question), self._evaluator.questions.target_of(question)
        problem, schedule, options = self.problems[number], stage.schedule, self.options
        f_x, f_baselines = float(stage.ends.f_x[question]), stage.ends.f_baselines[question]
        price, is_reached = 1.0, None
        if options.tolerance is not None:
            price = 1.0 if estimate.exact else stage.looks.price(ledger.n_replicates)
            delta = f_x - float(problem.baselines.weights @ f_baselines)
            wanted = max(options.atol, options.tolerance * abs(delta))
            is_reached = reached(estimate, wanted, 1 - (1 - options.level) / price)

        def go_on(before: Explanation, budget: int) -> Explanation:
            alone = Run([problem.only(target)], self.kernels, self.plan, options, self._progress)
            return alone.extend([before], schedule, budget)[0]

        explanation = Explanation(
            estimate=estimate,
            design=stage.designs[number],
            ledger=ledger,
            features=problem.features,
            f_x=f_x,
            f_baselines=f_baselines,
            endpoints=problem.endpoints,
            cost=cost,
            plan={"name": schedule.name, "estimator": schedule.estimator.name, **schedule.describe()},
            provenance=provenance(
                problem,
                target,
                self.kernels,
                self.plan,
                options,
                hashes=self._fingerprints[number],
                n_inputs=len(self.problems),
            ),
            complete=complete,
            reached=is_reached,
            price=price,
            form=_form(problem),
            model_doubts=self._doubts[question],
            table=problem.table,
            _continue=go_on if schedule.grows and not estimate.exact else None,
        )
        if is_reached and explanation.doubts:  # intervals that may not hold reach nothing
            return replace(explanation, reached=False)
        return explanation

    @cached_property
    def _fingerprints(self) -> list[dict[str, str]]:
        model = self.problem.model_fingerprint()
        return [{**problem.fingerprints(), "model": model} for problem in self.problems]


class _Rows:
    """A collector that keeps every row."""

    takes_all = True  # all replicates may be evaluated as one request

    def __init__(self, evaluator: Evaluator, values: bool) -> None:
        self._evaluator, self._values = evaluator, values
        self._parts: list[Sequence[Ledger]] = []

    def keep(self, ledgers: Sequence[Ledger]) -> None:
        """Add rows that were evaluated before, one ledger per question. An empty sequence adds nothing."""
        if ledgers:
            self._parts.append(ledgers)

    def add(self, request: RayRequest) -> None:
        self._parts.append(self._evaluator.evaluate(request, values=self._values))

    def ledgers(self) -> Sequence[Ledger]:
        self._parts = [tuple(Ledger.join(of_question) for of_question in zip(*self._parts, strict=True))]
        return self._parts[0]


class _Sums:
    """A collector that adds up the rows, block by block. A block that is interrupted does not count."""

    takes_all = False

    def __init__(
        self,
        evaluator: Evaluator,
        designs: Sequence[Design],
        kernels: Sequence[Kernel],
        before: Sequence[AnyLedger] = (),
    ) -> None:
        self._evaluator, self._designs = evaluator, designs
        self._laws = [[design.with_kernel(kernel).laws for kernel in kernels] for design in designs]
        copies = [ledger.copy() for ledger in before if isinstance(ledger, FoldedLedger)]
        n_features = designs[0].n_features
        self._ledgers = copies or [FoldedLedger.empty(kernels, n_features) for _ in range(evaluator.n_questions)]

    def add(self, request: RayRequest) -> None:
        questions = self._evaluator.questions
        blocks = [
            ledger.block(request, self._laws[number], self._designs[number].baseline_weights)
            for ledger, number in zip(self._ledgers, map(questions.input_of, range(len(questions))), strict=True)
        ]
        for question, part, rows in self._evaluator.gradient_batches(request):
            blocks[question].take(part, rows)
        for block in blocks:
            block.close()

    def ledgers(self) -> Sequence[FoldedLedger]:
        return self._ledgers


def _form(problem: Problem) -> InputForm:
    """How the user packs the arrays of the input."""
    form = problem.form
    return InputForm(form if isinstance(form, tuple) else None, form is tuple)


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
