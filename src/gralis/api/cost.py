"""`cost`: what `explain` with the same arguments would cost and promise, from a probe of a few points."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from gralis.api.explain import complete, exactly, prepare
from gralis.api.signature import options_of_explain
from gralis.arrays import Array
from gralis.certificates import Beforehand, Certificate, Smoothness, bernstein
from gralis.certificates.promise import Promise
from gralis.errors import GralisError, bad
from gralis.evaluation.evaluator import Evaluator
from gralis.evaluation.speed import Speed
from gralis.ledger import Ledger
from gralis.notebook import InNotebooks
from gralis.options import Choices
from gralis.plans import RayRequest, Schedule
from gralis.run import Run
from gralis.targets import Target, Targets

_PAPER_NODES = 10
_SLOPE_POINTS = 16
_MOST_POINTS = 256  # that the estimate evaluates to see what a plan would decide


@dataclass(frozen=True)
class CostEstimate(InNotebooks):
    """What an explanation would cost. The counts are upper limits, because a tolerance may stop the run earlier.

    Attributes
    ----------
    n_rays, n_gradients, n_forwards : int
        The numbers of rays, gradients and forwards.
    bytes : int
        The memory for the ledger and the largest batch that the run is expected to try. If the measurement had no time
        to find the best batch, a run may go on to several times as much; `max_memory` limits it.
    seconds : float
        The time of the model, from batches of several sizes, and of the fits.
    certificate : Beforehand or None
        The certificate before the run: what the paper's bounds (plan="permutation") and Bernstein's
        (plan="independent") promise for as many gradients, and `needed(epsilon)`, the m and k that an epsilon takes.
        For a plan of another name it says what these two would promise. It is None for plans without rays, plans that
        draw nothing at random, and inputs with so many features that the rows are not kept.
    """

    n_rays: int
    n_gradients: int
    n_forwards: int
    bytes: int
    seconds: float
    certificate: Beforehand | None = None

    def __str__(self) -> str:
        counts = (
            f"about {self.seconds:.1f} s: {self.n_gradients} gradients on {self.n_rays} rays, "
            f"{self.n_forwards} forwards, {self.bytes / 2**20:.0f} MiB"
        )
        return counts if self.certificate is None else f"{counts}\nbefore the run:\n{self.certificate!r}"


@options_of_explain()
def cost(
    model: object,
    x: object,
    *,
    target: Target | Targets = None,
    bound: object = None,
    smoothness: Smoothness | None = None,
    **options: Unpack[Choices],
) -> CostEstimate:
    """What `explain` with the same arguments would cost and promise. Nothing is explained; a few points are timed.

    Parameters
    ----------
    model, x, target
        As in `gralis.explain`.
    bound : float, array of shape (n_features,) or Calibration, optional
        A bound on |(x_i - x'_i) dF/dx_i| for the certificate before the run. Without it, the largest gradient of the
        probe is used, and the kind of the certificate is "calibrated" instead of "guaranteed".
    smoothness : Smoothness, optional
        Bounds on higher derivatives, for the quadrature error of the paper's bounds.

    Returns
    -------
    CostEstimate
        Rays, gradients, forwards, bytes and seconds, and the certificate before the run.

    Examples
    --------
    >>> import torch
    >>> estimate = cost(lambda z: z.sum(1), torch.ones(20), budget=500, bound=1.0)
    >>> estimate.n_gradients <= 500, estimate.certificate.bernstein.kind
    (True, 'guaranteed')
    """
    closed = exactly(model, x, complete({"target": target, **options, "progress": False}, "cost"))
    if closed is not None:
        return CostEstimate(0, 0, 0, closed.bytes, closed.seconds())
    run = prepare(model, x, {"target": target, **options, "progress": False}, "cost")
    given = None if bound is None else bernstein.slopes(bound, run.problem.n_features, "bound", "cost")
    if not isinstance(smoothness, Smoothness | None):
        raise bad("smoothness", "cost", "a Smoothness or None", f"a {type(smoothness).__name__}")
    return _estimate(run, given, smoothness or Smoothness())


def _estimate(run: Run, bound: tuple[Array, bool] | None, smoothness: Smoothness) -> CostEstimate:
    """The counts of the settled plan, and what a probe of a few points says about time, memory and gradients."""
    n, options = run.problem.n_features, run.options
    size, most = options.batch_size, options.max_memory
    speed = Speed.measured(run.problems, gradients=not run.plan.counts_forwards, batch_size=size, max_memory=most)
    run.set_pace(speed.forward)
    evaluator = Evaluator(run.problems, batch_size=size, max_memory=most)
    looks: list[RayRequest] = []

    def look(request: RayRequest) -> tuple[Ledger, ...]:
        """The first look of a plan is evaluated, because the plan may depend on it; what follows costs too much."""
        looks.append(request)
        if len(looks) == 1 and request.n_points <= _MOST_POINTS:
            return evaluator.evaluate(request.in_orders(run.orders(request.replicate)), values=run.task.with_values)
        return (Ledger.record(request, np.zeros((request.n_points, n)), np.full(request.n_rays, np.nan)),)

    with evaluator.session():
        f_x, f_baselines = evaluator.endpoints()
        schedule = run.plan.settle(replace(run.task, along=None), look)
        slope = _slope(evaluator, n) if schedule.rule is not None else np.zeros(n)
    work = run.work(schedule)
    n_gradients = work.n_points * run.n_targets
    kept = 0 if run.folded else 9 * n * n_gradients
    seconds = work.seconds(speed.forward, speed.point)
    if not run.folded:
        seconds += run.seconds_of_fits(schedule)
    certificate = None
    drawn = not schedule.enumerates and schedule.estimator.no_certificate is None
    if schedule.rule is not None and drawn and not run.folded:
        difference = abs(f_x[0] - run.problem.baselines.weights @ f_baselines[0]) if len(f_x) == 1 else np.nan
        promise = _promise(run, bound or (slope, True), smoothness, float(difference))
        certificate = _certificate(promise, schedule, work.n_points)
    n_bytes = kept + speed.bytes(work.n_forwards, work.n_points)
    return CostEstimate(work.n_rays, n_gradients, work.n_forwards, n_bytes, seconds, certificate)


def _slope(evaluator: Evaluator, n: int) -> Array:
    """The largest gradients at a few points, for the certificate before the run."""
    rng = np.random.default_rng(0)
    masks = rng.random((_SLOPE_POINTS, n)) < 0.5
    masks[0] = True  # the probe sees every feature
    nodes = rng.random((_SLOPE_POINTS, 1))
    probe = RayRequest.of(masks, np.zeros(_SLOPE_POINTS), 0, nodes, np.ones_like(nodes))
    slope = np.zeros(n)
    for _, points, rows in evaluator.gradient_batches(probe.in_orders(np.arange(_SLOPE_POINTS))):
        slope = np.maximum(slope, np.where(masks[points], np.abs(rows), 0.0).max(0))
    return slope


def _promise(run: Run, bound: tuple[Array, bool], smoothness: Smoothness, difference: float) -> Promise:
    problem, (slope, calibrated) = run.problem, bound
    return Promise(
        slope,
        not calibrated,
        run.kernels[0],
        problem.squared_distance,
        problem.endpoints.absolute_distance(problem.features)[0],
        smoothness,
        1 - run.options.level,
        difference,
    )


def _certificate(promise: Promise, schedule: Schedule, n_gradients: int) -> Beforehand:
    """Both certificates for the draws of this plan or, if it draws otherwise, for as many gradients."""
    rule, n = schedule.rule, len(promise.slope)
    assert rule is not None
    m, k, nodes = n_gradients // (2 * n * _PAPER_NODES), _PAPER_NODES, "midpoint"  # antithetic pairs, as in the paper
    n_rays, n_nodes, places = n_gradients, 1, "random"
    if schedule.estimator.bound == "paper":
        m, k, nodes = schedule.n_replicates, rule.n_nodes, rule.name
    elif schedule.estimator.bound == "bernstein":
        n_rays, n_nodes, places = schedule.n_rays, rule.n_nodes, rule.name
    return Beforehand(
        _if_possible(lambda: promise.paper(m, k, nodes)) if m else None,
        _if_possible(lambda: promise.bernstein(n_rays, n_nodes, places)) if n_rays else None,
        promise,
        (nodes, places),
    )


def _if_possible(make: Callable[[], Certificate]) -> Certificate | None:
    """The certificate, or None if there is none, for example for a kernel of masks and many features."""
    try:
        return make()
    except GralisError:
        return None
