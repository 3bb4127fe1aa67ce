"""How many rays, gradients and forwards a settled plan takes, before any of them is evaluated."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gralis.evaluation.function_probe import PROBE_FORWARDS
from gralis.ledger import Ledger
from gralis.plans import Plan, PlanningTask, RayRequest, Schedule
from gralis.problem import Problem
from gralis.rays.discrete import n_jump_points

__all__ = ["Work", "rays_of", "settle_blindly", "smooth_rows", "work_of"]

_STEEP = 2.0  # how far the neurons of the function that stands for a model are from linear


@dataclass(frozen=True)
class Work:
    """What a plan evaluates for each input. The counts are upper limits: no coalition is evaluated twice.

    Attributes
    ----------
    n_rays : int
        Rays.
    n_points : int
        Points on rays at which gradients are evaluated, one for each target.
    n_forwards : int
        Points at which only the value is evaluated, F(x) and F(x') among them.
    """

    n_rays: int
    n_points: int
    n_forwards: int

    def seconds(self, forward: float, point: float) -> float:
        """The time of this work, from the seconds of one forward and of one point with its gradients."""
        return self.n_forwards * forward + self.n_points * point


def work_of(
    plan: Plan,
    schedule: Schedule,
    problem: Problem,
    orders: NDArray[np.int64],
    n_replicates: int | None = None,
) -> Work:
    """The work of a settled plan, up to its last replicate or to replicate `n_replicates`.

    Parameters
    ----------
    plan : Plan
        The plan.
    schedule : Schedule
        What the plan has settled.
    problem : Problem
        The problem.
    orders : array of int of shape (n_rays,)
        In which orders discrete features jump on the rays of the pilot and of all replicates; see `Run.orders`.
    n_replicates : int, optional
        How many replicates count. By default all of them.
    """
    count = schedule.n_replicates if n_replicates is None else min(n_replicates, schedule.n_replicates)
    drawn = min(schedule.n_rays, count * schedule.rays_per_replicate)
    pilot = schedule.pilot[0] if schedule.pilot else None
    taught, rays = (0, drawn) if pilot is None else (pilot.n_points, drawn + pilot.n_rays)
    census = schedule.census()
    values = schedule.task.with_values or schedule.rule is None
    forwards = 1 + problem.baselines.n_baselines + (0 if plan.counts_forwards else PROBE_FORWARDS)
    if values:
        forwards += rays + (0 if census is None else census.n_rays)
    points = 0 if problem.features.discrete.all() else drawn * schedule.n_nodes + taught
    return Work(rays, points, forwards + _jump_points(schedule, problem, orders, count))


def rays_of(schedule: Schedule, n_replicates: int | None = None) -> list[RayRequest | Ledger]:
    """The pilot and the replicates of a settled plan."""
    count = schedule.n_replicates if n_replicates is None else min(n_replicates, schedule.n_replicates)
    return [*schedule.pilot[:1], *(schedule.replicate(number) for number in range(count))]


def _jump_points(schedule: Schedule, problem: Problem, orders: NDArray[np.int64], count: int) -> int:
    """The forwards half-way along the rays at which discrete features jump, those of the pilot among them."""
    discrete = problem.features.discrete
    if not discrete.any() or schedule.rule is None:
        return 0
    masks = np.concatenate([rays.masks for rays in rays_of(schedule, count)])
    n_points = int(n_jump_points(masks, discrete, orders[: len(masks)]).sum())
    distinct: int = 2 ** min(problem.n_features, 60) * problem.baselines.n_baselines
    return min(n_points, distinct)


def settle_blindly(plan: Plan, task: PlanningTask) -> Schedule:
    """What the plan settles if it sees no gradient when it looks. The counts are those of a smooth model."""

    def look(request: RayRequest) -> tuple[Ledger, ...]:
        gradients = np.zeros((request.n_points, task.n_features))
        return (Ledger.record(request, gradients, np.full(request.n_rays, np.nan)),)

    return plan.settle(replace(task, along=None), look)


def smooth_rows(request: RayRequest, values: bool) -> Ledger:
    """The rows that a request would give for F = sum_k tanh(w_k z), a network with as many neurons as features."""
    n = request.masks.shape[1]
    weights = np.random.default_rng(0).standard_normal((n, n)) * _STEEP / np.sqrt(n)
    reach = request.masks @ weights  # (n_rays, n_neurons)
    slope = 1 - np.tanh(request.by_point("nodes")[:, None] * reach[request.ray]) ** 2  # (n_points, n_neurons)
    gradient = slope @ weights.T
    return Ledger.record(request, gradient, np.tanh(reach).sum(1) if values else np.full(len(reach), np.nan))
