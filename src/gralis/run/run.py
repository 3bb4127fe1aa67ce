"""From problems and options to explanations: the plan is settled, its rays are evaluated, and the rows are read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property

import numpy as np
from torch import nn

from gralis.certificates.stopping import reached
from gralis.errors import BudgetError, GralisError
from gralis.estimators import FOLDED, Design, Estimate, Estimator, estimates
from gralis.evaluation.clock import Stopwatch, TimeOverError
from gralis.evaluation.cost import Cost
from gralis.evaluation.evaluator import Evaluator
from gralis.evaluation.function_probe import PROBE_FORWARDS, ModelDoubts
from gralis.evaluation.progress import Bar
from gralis.evaluation.suspicion import Generators, uses_batch_statistics
from gralis.ledger import AnyLedger, Ledger
from gralis.plans import Schedule
from gralis.problem import Problem
from gralis.rays import RayRequest
from gralis.results.explanation import Explanation
from gralis.results.provenance import provenance
from gralis.results.result import InputForm
from gralis.run import pace
from gralis.run.collectors import KeptRows, SummedRows
from gralis.run.expected import ENOUGH, ExpectedRun
from gralis.run.stage import Ends, Stage

__all__ = ["Run"]

_BATCHES_IN_TIME = 20  # a batch should not take more than this part of a limited time


class Run(ExpectedRun):
    """Computes the explanations of one problem with one or several targets, or of several inputs on the same rays.

    `Explanation.extend` makes another run that continues from the ledger.
    """

    def know(self, ledgers: Sequence[Ledger]) -> None:
        """Take over coalition values that another run of the same model found, one ledger per question.

        They are not evaluated again, and the estimator reads them with the rows of this run.
        """
        self._known = ledgers

    def use(self, evaluator: Evaluator) -> None:
        """Let another evaluator of the same problems evaluate the rays, for example one that distributes them."""
        self._evaluator = evaluator

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
        with self._bar(self.options.budget or 0) as bar, self._evaluator.session():
            clock = self._start(bar)
            try:
                return self._from_the_start(bar, clock)
            except TimeOverError:
                raise self.too_short(clock) from None

    def _from_the_start(self, bar: Bar, clock: Stopwatch) -> tuple[Explanation, ...]:
        bar.phase("look")
        generators = Generators.now(self.problem.device)
        ends = Ends(*self._evaluator.endpoints())
        suspect = generators.moved() or uses_batch_statistics(self.problem.model)
        if self._known:
            self._evaluator.recall(ends.f_baselines, self._known)
        if suspect or not self.plan.counts_forwards:
            self._doubts = self._evaluator.doubts(ends.f_x, ends.f_baselines)
        if self.options.automatic:  # the limit is then soft: two replicates are evaluated whatever it is
            self.set_pace(self.seconds_per_forward(clock))
            clock.limit = self.options.max_seconds
        schedule = self._settled(suspect)
        if self.plan.counts_forwards and not suspect and self._has_room(schedule):
            self._doubts = self._evaluator.doubts(ends.f_x, ends.f_baselines)
        expected = schedule.n_gradients * self._evaluator.n_questions
        bar.expect(expected + self._evaluator.cost.n_gradients)
        bar.phase("rays", self._bar_total(bar, schedule))
        folds = self.folded and not schedule.enumerates
        stage = self._stage(schedule, ends, FOLDED if folds else schedule.estimator, 0, clock, bar)
        if folds:
            return self._collected(SummedRows(self._evaluator, stage.designs, self.kernels), stage, 0)
        rows = KeptRows(self._evaluator, self.with_values(schedule), schedule.remembers)
        rows.keep(schedule.pilot)
        rows.keep(self._known)
        census = schedule.census()
        if census is not None and (schedule.remembers or self._stepwise):
            rows.keep(self._evaluator.evaluate(census, values=True))
            census = None
        return self._collected(rows, stage, 0, census)

    def _settled(self, suspect: bool) -> Schedule:
        """The schedule. Forwards that checked a suspect model count in a budget of forwards, if it can spare them."""
        task = self.task
        if suspect and self.plan.counts_forwards and task.budget is not None:
            with suppress(BudgetError):
                return self.plan.settle(replace(task, budget=task.budget - 2 * PROBE_FORWARDS), self._probe)
        return self.plan.settle(task, self._probe)

    def _has_room(self, schedule: Schedule) -> bool:
        """Whether a budget of forwards surely leaves enough of them to ask an unknown function for F(x) again."""
        return getattr(schedule, "exact", False) and self._has_room_beside(self.work(schedule).n_forwards)

    def _has_room_beside(self, n_forwards: int) -> bool:
        """Whether so many forwards leave enough to ask an unknown function for F(x) again.

        What a torch module does can be seen from outside: it draws random numbers, or it has batch normalisation.
        """
        if isinstance(getattr(self.problem.model, "module", None), nn.Module):
            return False
        return self.options.budget is None or n_forwards + 2 * PROBE_FORWARDS <= self.options.budget

    def again(self, before: Sequence[Explanation], *, other_model: bool = False) -> tuple[Explanation, ...]:
        """The explanations from the same rays, evaluated with the model of this run and read in the same way.

        There is one for each question of this run, and all of them share their rays. Another model has its own
        rounding, and it is asked for F(x) again like any model that is explained.
        """
        rows = before[0].ledger.require_rows("Evaluating the same rays again")
        designs = [each.design for each in before]
        self._doubts = _doubts_of(before)
        with self._evaluator.session():
            generators = Generators.now(self.problem.device)
            ends = Ends(*self._evaluator.endpoints())
            suspect = generators.moved() or uses_batch_statistics(self.problem.model)
            ledgers = self._evaluator.again(rows, self.orders(rows.replicate))
            n_forwards = self._evaluator.cost.n_forwards
            if other_model:
                self._doubts = ModelDoubts.none(len(before))
                if suspect or not self.plan.counts_forwards or self._has_room_beside(n_forwards):
                    self._doubts = self._evaluator.doubts(ends.f_x, ends.f_baselines)
                rounding, noise = self._rounding(ends), self._doubts.noise
                designs = [replace(d, rounding=rounding, noise=noise[k]) for k, d in enumerate(designs)]
        cost = self._evaluator.cost.of_one(self._evaluator.questions, self._evaluator.cost.seconds)
        read = estimates(ledgers, designs)
        return tuple(
            replace(
                each,
                estimate=read[k],
                design=designs[k],
                ledger=ledgers[k],
                f_x=float(ends.f_x[k]),
                f_baselines=ends.f_baselines[k],
                cost=cost,
                provenance={**each.provenance, "hashes": self._fingerprints[0]},
                model_doubts=self._doubts.sentences[k],
                _continue=None,
            )
            for k, each in enumerate(before)
        )

    def extend(self, before: Sequence[Explanation], schedule: Schedule, budget: int) -> tuple[Explanation, ...]:
        """Add more replicates of the same schedule. The budget is that of each input."""
        self._doubts = _doubts_of(before)
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
        with self._bar(extra * per_replicate * len(before)) as bar, self._evaluator.session():
            clock = self._start(bar)
            bar.phase("rays", extra * schedule.rays_per_replicate * (max(schedule.n_nodes, 1) + 1) * len(before))
            stage = self._stage(schedule.more(done + extra), ends, estimator, done, clock, bar, seconds)
            collector: KeptRows | SummedRows
            if estimator is FOLDED:
                collector = SummedRows(self._evaluator, stage.designs, self.kernels, ledgers)
            else:
                collector = KeptRows(self._evaluator, self.with_values(schedule), schedule.remembers)
                collector.keep([ledger.require_rows("Going on") for ledger in ledgers])
            return self._collected(collector, stage, done)

    def _bar(self, total: int) -> Bar:
        return Bar(self._progress, total, counts_forwards=self.plan.counts_forwards)

    def _bar_total(self, bar: Bar, schedule: Schedule) -> int | None:
        """The points to come, which are counted only for a bar that is shown."""
        return self.points_to_come(schedule) if bar.wanted else None

    def _start(self, bar: Bar) -> Stopwatch:
        """Report progress to the bar, and start the clock. The time of a user is kept from the first batch on.

        Bar is entered by a plain function, never by a generator: a callback may raise StopIteration to stop the run.
        """
        self._evaluator.report_to(bar.add)
        clock = Stopwatch(self.options.max_seconds)
        if self.options.max_seconds is not None:
            self._evaluator.stop_at(clock, self.options.max_seconds / _BATCHES_IN_TIME)
        return clock

    def _stage(
        self,
        schedule: Schedule,
        ends: Ends,
        estimator: Estimator,
        first: int,
        clock: Stopwatch,
        bar: Bar,
        seconds_before: float = 0.0,
    ) -> Stage:
        return Stage(schedule, ends, self.designs(schedule, ends, estimator), first, clock, bar, seconds_before)

    def _probe(self, request: RayRequest) -> tuple[Ledger, ...]:
        return self._evaluator.evaluate(self._in_orders(request), values=self.task.with_values)

    def _in_orders(self, request: RayRequest) -> RayRequest:
        if not self.problem.features.discrete.any():
            return request
        return request.in_orders(self.orders(request.replicate))

    def _collected(
        self, collector: KeptRows | SummedRows, stage: Stage, first: int, census: RayRequest | None = None
    ) -> tuple[Explanation, ...]:
        """Evaluate replicates until the plan is done, the tolerance is reached, or the time is over.

        A census that takes no forward, because it is not remembered, is evaluated with the replicates.
        """
        schedule, options = stage.schedule, self.options
        numbers = range(first, schedule.n_replicates)
        if not self._stepwise and collector.takes_all:
            rays = schedule.replicates(numbers)
            collector.add(self._in_orders(rays if census is None else RayRequest.stack([census, rays])))
            return self._explanations(collector.ledgers(), stage)
        for number in numbers:
            if number == ENOUGH:  # from here on there is something to return
                self._evaluator.stop_at(stage.clock)
            try:
                collector.add(self._in_orders(schedule.replicate(number)))
            except KeyboardInterrupt:
                if options.on_interrupt == "raise" or number < ENOUGH:
                    raise
                return self._explanations(collector.ledgers(), stage, complete=False)
            except TimeOverError:
                if number < ENOUGH:
                    raise
                return self._explanations(collector.ledgers(), stage, complete=False)
            last, enough = number + 1 == schedule.n_replicates, number + 1 >= ENOUGH
            if stage.clock.over and enough and not last:
                return self._explanations(collector.ledgers(), stage, complete=False)
            if options.tolerance is not None and number + 1 in stage.looks and enough and not last:
                explanations = self._explanations(collector.ledgers(), stage)
                if all(explanation.reached for explanation in explanations):
                    return explanations
                stage.bar.phase("rays", self._bar_total(stage.bar, schedule))
        return self._explanations(collector.ledgers(), stage)

    def _explanations(
        self, ledgers: Sequence[AnyLedger], stage: Stage, *, complete: bool = True
    ) -> tuple[Explanation, ...]:
        stage.bar.phase("fit")
        questions = self._evaluator.questions
        designs = [self._design(question, stage) for question in range(len(questions))]
        read = estimates(ledgers, designs)
        cost = self._evaluator.cost.of_one(questions, stage.seconds_before + stage.clock.seconds)
        return tuple(
            self._explanation(question, design, ledger, estimate, stage, cost, complete)
            for question, (design, ledger, estimate) in enumerate(zip(designs, ledgers, read, strict=True))
        )

    def _design(self, question: int, stage: Stage) -> Design:
        """The design of the input, and the noise of the model if its answers to this question differ."""
        design, noise = stage.designs[self._evaluator.questions.input_of(question)], self._doubts.noise[question]
        return replace(design, noise=float(noise)) if noise else design

    def _explanation(
        self,
        question: int,
        design: Design,
        ledger: AnyLedger,
        estimate: Estimate,
        stage: Stage,
        cost: Cost,
        complete: bool,
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
            alone = Run([problem.only(target)], self.kernels, self.plan, pace.unlimited(options), self._progress)
            return alone.extend([before], schedule, budget)[0]

        explanation = Explanation(
            estimate=estimate,
            design=design,
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
            model_doubts=self._doubts.sentences[question],
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


def _doubts_of(before: Sequence[Explanation]) -> ModelDoubts:
    """What these explanations know about their model."""
    return ModelDoubts([e.model_doubts for e in before], np.array([e.design.noise for e in before]))


def _form(problem: Problem) -> InputForm:
    """How the user packs the arrays of the input."""
    form = problem.form
    return InputForm(form if isinstance(form, tuple) else None, form is tuple)
