"""`cost`: what `explain` with the same arguments would cost, from a probe of a few points."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from gralis.api.explain import prepare
from gralis.api.signature import options_of_explain
from gralis.evaluation.evaluator import Evaluator
from gralis.ledger import Ledger
from gralis.options import Choices
from gralis.plans import RayRequest
from gralis.run import Run
from gralis.targets import Target, Targets


@dataclass(frozen=True)
class CostEstimate:
    """What an explanation would cost. The counts are upper limits, because a tolerance may stop the run earlier.

    Attributes
    ----------
    n_rays, n_gradients, n_forwards : int
        The numbers of rays, gradients and forwards.
    bytes : int
        The memory for the ledger and one batch.
    seconds : float
        The time, from a probe of a few points.
    """

    n_rays: int
    n_gradients: int
    n_forwards: int
    bytes: int
    seconds: float

    def __str__(self) -> str:
        return (
            f"about {self.seconds:.1f} s: {self.n_gradients} gradients on {self.n_rays} rays, "
            f"{self.n_forwards} forwards, {self.bytes / 2**20:.0f} MiB"
        )


@options_of_explain()
def cost(model: object, x: object, *, target: Target | Targets = None, **options: Unpack[Choices]) -> CostEstimate:
    """What `explain` with the same arguments would cost. Nothing is explained; a few points are timed.

    Parameters
    ----------
    model, x, target
        As in `gralis.explain`.

    Returns
    -------
    CostEstimate
        Rays, gradients, forwards, bytes and seconds.

    Examples
    --------
    >>> import torch
    >>> cost(lambda z: z.sum(1), torch.ones(20), budget=500).n_gradients <= 500
    True
    """
    return _estimate(prepare(model, x, {"target": target, **options, "progress": False}, "cost"))


def _estimate(run: Run) -> CostEstimate:
    """The counts of the settled plan, and the seconds from a probe of a few points."""
    n, evaluator = run.problem.n_features, Evaluator(run.problems, batch_size=run.options.batch_size)

    def nothing(request: RayRequest) -> tuple[Ledger]:
        return (Ledger.record(request, np.zeros((request.n_points, n)), np.full(request.n_rays, np.nan)),)

    schedule = run.plan.settle(run.task, nothing)
    taught = sum(part.n_points for part in schedule.pilot)
    n_rays = schedule.n_rays + sum(part.n_rays for part in schedule.pilot)
    values = run.task.with_values or schedule.rule is None
    n_forwards = 1 + run.problem.baselines.n_baselines + (n_rays + n if values else 0)
    n_gradients = (schedule.n_gradients + taught) * run.n_targets
    rng = np.random.default_rng(0)
    probe = RayRequest.of(rng.random((16, n)) < 0.5, np.zeros(16), 0, rng.random((16, 1)), np.ones((16, 1)))
    with evaluator.session():
        began = time.perf_counter()
        evaluator.endpoints()
        forward = (time.perf_counter() - began) / (1 + run.problem.baselines.n_baselines)
        gradient = 0.0
        if n_gradients:
            began = time.perf_counter()
            for _ in evaluator.gradient_batches(probe):
                pass
            gradient = (time.perf_counter() - began) / (probe.n_points * run.n_targets)
    kept = 0 if run.folded else 9 * n * n_gradients
    memory = kept + evaluator.cost.bytes_per_point * max(evaluator.cost.batch_size, 1)
    return CostEstimate(n_rays, n_gradients, n_forwards, memory, n_gradients * gradient + n_forwards * forward)
