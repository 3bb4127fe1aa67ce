"""`cost`: what `explain` with the same arguments would cost and promise, from a probe of a few points."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from gralis.api.explain import prepare
from gralis.api.signature import options_of_explain
from gralis.arrays import Array
from gralis.certificates import Beforehand, Certificate, Smoothness, bernstein
from gralis.certificates.promise import Promise
from gralis.errors import GralisError
from gralis.evaluation.evaluator import Evaluator
from gralis.evaluation.function_probe import PROBE_FORWARDS
from gralis.ledger import Ledger
from gralis.notebook import InNotebooks
from gralis.options import Choices
from gralis.plans import RayRequest, Schedule
from gralis.plans.ray_walk import WALK_FORWARDS
from gralis.rays.discrete import n_jump_points
from gralis.run import Run
from gralis.targets import Target, Targets

_PAPER_NODES = 10
_MOST_POINTS = 256  # that the estimate evaluates to see what a plan would decide


@dataclass(frozen=True)
class CostEstimate(InNotebooks):
    """What an explanation would cost. The counts are upper limits, because a tolerance may stop the run earlier.

    Attributes
    ----------
    n_rays, n_gradients, n_forwards : int
        The numbers of rays, gradients and forwards.
    bytes : int
        The memory for the ledger and one batch.
    seconds : float
        The time, from a probe of a few points.
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
    run = prepare(model, x, {"target": target, **options, "progress": False}, "cost")
    given = None if bound is None else bernstein.slopes(bound, run.problem.n_features, "bound", "cost")
    return _estimate(run, given, smoothness or Smoothness())


def _estimate(run: Run, bound: tuple[Array, bool] | None, smoothness: Smoothness) -> CostEstimate:
    """The counts of the settled plan, and the seconds and the largest gradients of a probe of a few points."""
    n, evaluator = run.problem.n_features, Evaluator(run.problems, batch_size=run.options.batch_size)

    looks: list[RayRequest] = []

    def look(request: RayRequest) -> tuple[Ledger, ...]:
        """The first look of a plan is evaluated, because the plan may depend on it; what follows costs too much."""
        looks.append(request)
        if len(looks) == 1 and request.n_points <= _MOST_POINTS:
            return evaluator.evaluate(request.in_orders(run.orders(request.replicate)), values=run.task.with_values)
        return (Ledger.record(request, np.zeros((request.n_points, n)), np.full(request.n_rays, np.nan)),)

    with evaluator.session():
        evaluator.endpoints()
        schedule = run.plan.settle(replace(run.task, along=None), look)
    taught = sum(part.n_points for part in schedule.pilot)
    n_rays = schedule.n_rays + sum(part.n_rays for part in schedule.pilot)
    values = run.task.with_values or schedule.rule is None
    probing = 0 if run.plan.counts_forwards else PROBE_FORWARDS
    n_forwards = (
        probing
        + 1
        + run.problem.baselines.n_baselines
        + (n_rays + n if values else 0)
        + _jump_points(run, schedule)
        + (WALK_FORWARDS if schedule.learns_density and run.task.along is not None else 0)
    )
    n_gradients = 0 if run.problem.features.discrete.all() else (schedule.n_gradients + taught) * run.n_targets
    rng = np.random.default_rng(0)
    masks = rng.random((16, n)) < 0.5
    masks[0] = True  # the probe sees every feature
    probe = RayRequest.of(masks, np.zeros(16), 0, rng.random((16, 1)), np.ones((16, 1))).in_orders(np.arange(16))
    slope = np.zeros(n)
    with evaluator.session():
        began = time.perf_counter()
        f_x, f_baselines = evaluator.endpoints()
        forward = (time.perf_counter() - began) / (1 + run.problem.baselines.n_baselines)
        gradient = 0.0
        if n_gradients:
            began = time.perf_counter()
            for _, points, rows in evaluator.gradient_batches(probe):
                slope = np.maximum(slope, np.where(masks[points], np.abs(rows), 0.0).max(0))
            gradient = (time.perf_counter() - began) / (probe.n_points * run.n_targets)
    kept = 0 if run.folded else 9 * n * n_gradients
    memory = kept + evaluator.cost.bytes_per_point * max(evaluator.cost.batch_size, 1)
    seconds = n_gradients * gradient + n_forwards * forward
    certificate = None
    drawn = not schedule.enumerates and schedule.estimator.no_certificate is None
    if schedule.rule is not None and drawn and not run.folded:
        difference = abs(f_x[0] - run.problem.baselines.weights @ f_baselines[0]) if len(f_x) == 1 else np.nan
        promise = _promise(run, bound or (slope, True), smoothness, float(difference))
        certificate = _certificate(promise, schedule, schedule.n_gradients + taught)
    return CostEstimate(n_rays, n_gradients, n_forwards, memory, seconds, certificate)


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


def _jump_points(run: Run, schedule: Schedule) -> int:
    """The forwards half-way along the rays at which discrete features jump, those of the pilot among them."""
    discrete = run.problem.features.discrete
    if not discrete.any() or schedule.rule is None:
        return 0
    requests: list[RayRequest | Ledger] = [*schedule.pilot[:1]]
    requests += [schedule.replicate(number) for number in range(schedule.n_replicates)]
    masks = np.concatenate([rays.masks for rays in requests])
    replicate = np.concatenate([rays.replicate for rays in requests])
    n_points = int(n_jump_points(masks, discrete, run.orders(replicate)).sum())
    distinct: int = 2 ** min(run.problem.n_features, 60) * run.problem.baselines.n_baselines
    return min(n_points, distinct)
