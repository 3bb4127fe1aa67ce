"""One run: settle the plan, evaluate its replicates (all at once, or look by look), estimate, and be able to go on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np

from gralis.arrays import Array
from gralis.certificates.stopping import Looks, reached
from gralis.errors import BudgetError, GralisError
from gralis.estimators import Estimate, estimate, estimates, folded
from gralis.evaluation.cost import Cost
from gralis.evaluation.evaluator import Evaluator
from gralis.evaluation.progress import Bar, ProgressOption, Stopwatch
from gralis.kernels import Kernel
from gralis.ledger import N_GROUPS, RAYS_PER_BLOCK, FoldedLedger, Ledger
from gralis.options import Options
from gralis.plans import Plan, RayRequest, Schedule, Task
from gralis.problem import Problem
from gralis.results.explanation import Explanation
from gralis.results.provenance import provenance

_KEEP_BYTES = 2**26  # rows up to this size are kept; beyond, the ledger is folded


class Run:
    """Explanations in the making: of one problem with one target or several, or of several inputs on the same rays.

    `extend` comes back to it. Questions are numbered as the evaluator numbers them: input by input, target by target.
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
        self._evaluator = Evaluator(problems, batch_size=options.batch_size, max_memory=options.max_memory)
        self._seconds = 0.0

    def use(self, evaluator: Evaluator) -> None:
        """Have the rays evaluated by another evaluator of the same problems: one that shares them out, say."""
        self._evaluator = evaluator

    @property
    def n_targets(self) -> int:
        return len(self.problem.targets)

    @property
    def _times(self) -> int:
        """How often a point counts in the budget: once for every backward, once where there are only forwards."""
        return 1 if self.plan.name in ("endpoint", "values") else self.n_targets

    @cached_property
    def task(self) -> Task:
        options, folded = self.options, self.folded
        return Task(
            kernel=self.kernels[0],
            squared_distance=_typical([problem.squared_distance for problem in self.problems]),
            baseline_weights=self.problem.baselines.weights,
            budget=None if options.budget is None else options.budget // self._times,
            seed=options.seed,
            quadrature=options.quadrature,
            n_nodes=options.n_nodes,
            replicates=options.replicates,
            with_values=options.coalition_values and not folded,
            rays_per_replicate=RAYS_PER_BLOCK if folded or self._stepwise else None,
            least_replicates=N_GROUPS if folded else 4,
            halves=bool(self.problem.features.discrete.any()),
            n_targets=self._times,
        )

    @property
    def folded(self) -> bool:
        """Whether the rows would be too many to keep: then only their sums stay."""
        rows = (self.options.budget or 0) // self.n_targets
        return self.plan.name in ("shared", "independent") and rows * self.problem.n_features * 8 > _KEEP_BYTES

    @property
    def _stepwise(self) -> bool:
        """Whether replicates are evaluated one by one, so that the run may stop between them."""
        o = self.options
        return o.tolerance is not None or o.max_seconds is not None or o.on_interrupt == "return"

    def result(self) -> Explanation:
        """Run the plan from the start, for a single question."""
        (found,) = self.results()
        return found

    def results(self) -> tuple[Explanation, ...]:
        """Run the plan from the start; an explanation per question."""
        for number, problem in enumerate(self.problems):
            if not problem.squared_distance.any():
                which = "x" if len(self.problems) == 1 else f"xs[{number}]"
                raise GralisError(
                    f"{which} equals the baseline everywhere, so there is no difference to explain; choose another."
                )
        with Bar(self._progress, self.options.budget or 0) as bar, self._evaluator.session():
            self._evaluator.report_to(bar.add)
            self._watch = Stopwatch(self.options.max_seconds)
            self._f_x, self._f_baselines = self._evaluator.endpoints()
            schedule = self.plan.settle(self.task, self._probe)
            expected = schedule.n_gradients * self._evaluator.n_questions
            bar.expect(expected + self._evaluator.cost.n_gradients)
            if self.folded and schedule.name != "exhaustive":
                return self._folded(schedule)
            kept = [part for part in (schedule.taught, self._always(schedule)) if part]
            return self._sampled(schedule, kept, 0)

    def again(self, so_far: Explanation) -> Explanation:
        """The same rays with this run's model; what was asked of them stays as it was."""
        if not isinstance(so_far.ledger, Ledger):
            raise GralisError(
                "Evaluating the same rays again needs the rows of the ledger, and a folded one keeps none."
            )
        with self._evaluator.session():
            (f_x,), (f_baselines,) = self._evaluator.endpoints()
            (ledger,) = self._evaluator.again(so_far.ledger)
        rows = (so_far.kernel, so_far.squared_distance, so_far.baseline_weights, so_far.plan["estimator"])
        return replace(
            so_far,
            estimate=estimate(ledger, *rows),
            ledger=ledger,
            f_x=float(f_x),
            f_baselines=f_baselines,
            cost=replace(self._evaluator.cost),
            provenance={**so_far.provenance, "hashes": self._fingerprints[0]},
            _continue=None,
        )

    def extend(self, so_far: Sequence[Explanation], schedule: Schedule, budget: int) -> tuple[Explanation, ...]:
        """Go on with more replicates of the same schedule; the budget is that of each input."""
        done = so_far[0].ledger.n_replicates  # fewer than planned, if the run stopped early
        per_replicate = schedule.rays_per_replicate * max(schedule.n_nodes, 1)  # a plan without nodes counts forwards
        extra = budget // (per_replicate * self._times)
        if extra < 1:
            least = per_replicate * self._times
            raise BudgetError(f"One more replicate needs a budget of {least}; extend was given {budget}.")
        longer = schedule.more(done + extra)
        self._f_x = np.array([found.f_x for found in so_far])
        self._f_baselines = np.stack([found.f_baselines for found in so_far])
        self._evaluator.recall(self._f_baselines, [found.ledger for found in so_far])
        self._evaluator.cost = Cost.of_all([found.cost for found in so_far], self.n_targets)
        self._seconds = self._evaluator.cost.seconds
        with Bar(self._progress, extra * per_replicate * len(so_far)) as bar, self._evaluator.session():
            self._evaluator.report_to(bar.add)
            self._watch = Stopwatch(self.options.max_seconds)
            ledgers = [found.ledger for found in so_far]
            if isinstance(ledgers[0], FoldedLedger):
                return self._folded(
                    longer, [ledger.copy() for ledger in ledgers if isinstance(ledger, FoldedLedger)], done
                )
            return self._sampled(longer, [tuple(ledger for ledger in ledgers if isinstance(ledger, Ledger))], done)

    def _probe(self, request: RayRequest) -> tuple[Ledger, ...]:
        return self._evaluator.evaluate(request, values=self.task.with_values)

    def _always(self, schedule: Schedule) -> tuple[Ledger, ...]:
        """Rows that belong to every replicate."""
        census = schedule.census()
        return () if census is None else self._evaluator.evaluate(census, values=True)

    def _sampled(self, schedule: Schedule, kept: list[tuple[Ledger, ...]], first: int) -> tuple[Explanation, ...]:
        values = self.task.with_values or schedule.rule is None  # without nodes there is nothing else
        numbers = range(first, schedule.n_replicates)
        if not self._stepwise:
            request = RayRequest.stack([schedule.replicate(r) for r in numbers])
            kept.append(self._evaluator.evaluate(request, values=values))
            return self._explanations(_joined(kept), schedule)
        self._looks = Looks.between(first, schedule.n_replicates)
        for number in numbers:
            try:
                kept.append(self._evaluator.evaluate(schedule.replicate(number), values=values))
            except KeyboardInterrupt:
                if self.options.on_interrupt == "raise" or number < 2:
                    raise
                return self._explanations(_joined(kept), schedule, complete=False)
            last = number + 1 == schedule.n_replicates
            if self._watch.over and number >= 1 and not last:
                return self._explanations(_joined(kept), schedule, complete=False)
            if self.options.tolerance is not None and (number + 1 in self._looks or last) and number >= 1:
                kept = [_joined(kept)]
                found = self._explanations(kept[0], schedule)
                if all(one.reached for one in found) or last:
                    return found
        return self._explanations(_joined(kept), schedule)

    def _folded(
        self, schedule: Schedule, ledgers: Sequence[FoldedLedger] = (), first: int = 0
    ) -> tuple[Explanation, ...]:
        kept = tuple(ledgers) or tuple(
            FoldedLedger.empty(self.kernels, self.problem.n_features) for _ in range(self._evaluator.n_questions)
        )
        laws = [
            [[kernel.bind(row) for row in problem.squared_distance] for kernel in self.kernels]
            for problem in self.problems
        ]
        complete, numbers = True, range(first, schedule.n_replicates)
        self._looks = Looks.between(first, schedule.n_replicates)
        for number in numbers:
            request = schedule.replicate(number)
            blocks = [
                ledger.block(request, laws[question // self.n_targets], self.problem.baselines.weights)
                for question, ledger in enumerate(kept)
            ]
            try:
                self._evaluator.stream(request, lambda question, part, rows: blocks[question].take(part, rows))  # noqa: B023
            except KeyboardInterrupt:
                if self.options.on_interrupt == "raise" or number < 2:
                    raise
                complete = False
                break
            for block in blocks:
                block.close()
            if self._watch.over and number >= 1 and number + 1 < schedule.n_replicates:
                complete = False
                break
            looking = self.options.tolerance is not None and number + 1 in self._looks
            if looking and number >= 1 and all(found.reached for found in self._explanations(kept, schedule)):
                break
        return self._explanations(kept, schedule, complete=complete)

    def _explanations(
        self, ledgers: Sequence[Ledger | FoldedLedger], schedule: Schedule, *, complete: bool = True
    ) -> tuple[Explanation, ...]:
        kernel, weights = self.kernels[0], self.problem.baselines.weights
        distances = [problem.squared_distance for problem in self.problems for _ in problem.targets]
        rows = [ledger for ledger in ledgers if isinstance(ledger, Ledger)]
        found: Sequence[Estimate]
        if rows:
            found = estimates(rows, kernel, distances, weights, schedule.method)
        else:
            found = [folded.estimate(ledger, kernel) for ledger in ledgers if isinstance(ledger, FoldedLedger)]
        seconds = self._seconds + self._watch.seconds
        cost = self._evaluator.cost.of_one(len(self.problems), self.n_targets, seconds)
        return tuple(
            self._explanation(question, ledger, one, schedule, cost, complete=complete)
            for question, (ledger, one) in enumerate(zip(ledgers, found, strict=True))
        )

    def _explanation(
        self,
        question: int,
        ledger: Ledger | FoldedLedger,
        found: Estimate,
        schedule: Schedule,
        cost: Cost,
        *,
        complete: bool,
    ) -> Explanation:
        problem = self.problems[question // self.n_targets]
        price = 1.0 if self.options.tolerance is None or found.exact else self._looks.price(ledger.n_replicates)
        f_x, f_baselines = float(self._f_x[question]), self._f_baselines[question]
        delta = f_x - float(problem.baselines.weights @ f_baselines)
        form = problem.form

        def go_on(so_far: Explanation, budget: int) -> Explanation:
            alone = problem.only(question % self.n_targets)
            return self._with([alone]).extend([so_far], schedule, budget)[0]

        return Explanation(
            estimate=found,
            kernel=self.kernels[0],
            ledger=ledger,
            features=problem.features,
            f_x=f_x,
            f_baselines=f_baselines,
            endpoints=problem.endpoints,
            squared_distance=problem.squared_distance,
            cost=cost,
            plan={"name": schedule.name, "estimator": schedule.method, **schedule.describe()},
            provenance=provenance(
                problem,
                question % self.n_targets,
                self.kernels,
                self.plan,
                self.options,
                hashes=self._fingerprints[question // self.n_targets],
                n_inputs=len(self.problems),
            ),
            complete=complete,
            reached=reached(found, delta, self.options, price),
            price=price,
            leaf_keys=form if isinstance(form, tuple) else None,
            several_leaves=form is tuple,
            _continue=None if found.exact else go_on,
        )

    def _with(self, problems: Sequence[Problem]) -> Run:
        return Run(problems, self.kernels, self.plan, self.options, self._progress)

    @cached_property
    def _fingerprints(self) -> list[dict[str, str]]:
        model = self.problem.model_fingerprint()
        return [{**problem.fingerprints(), "model": model} for problem in self.problems]


def _typical(squared_distances: Sequence[Array]) -> Array:
    """The squared distances by which rays for several inputs are drawn: mean shares, times the mean total.

    Each input then weighs the rays by its own law, exactly; how much that costs shows in its effective rays.
    """
    if len(squared_distances) == 1:
        return squared_distances[0]
    rows = np.stack(squared_distances)  # (n_inputs, n_baselines, n_features)
    totals = rows.sum(2, keepdims=True)
    shares = np.divide(rows, totals, out=np.zeros_like(rows), where=totals > 0)
    return np.asarray(shares.mean(0) * totals.mean(0))


def _joined(parts: Sequence[tuple[Ledger, ...]]) -> tuple[Ledger, ...]:
    """Of every question, the ledgers one after the other."""
    return tuple(Ledger.join(of_one) for of_one in zip(*parts, strict=True))
