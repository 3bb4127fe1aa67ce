"""Rays drawn from the law, each gradient shared by all members of its coalition: what `shared` evaluates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gralis.estimators import ADJUSTED
from gralis.laws import all_masks
from gralis.laws.law import systematic_counts
from gralis.ledger import Ledger
from gralis.plans.enumeration import everywhere
from gralis.plans.node_density import node_density
from gralis.plans.plan import PlanningTask, Schedule
from gralis.plans.ray_walk import walked_density
from gralis.rays import CENSUS, PILOT, RayRequest
from gralis.rays.quadrature import UNIFORM, NodeRule, RandomRule, rule

__all__ = ["SharedSchedule", "draw_rays", "n_replicates", "sampled", "single_features"]


@dataclass(frozen=True, eq=False)
class SharedSchedule(Schedule):
    """Replicates of rays that are drawn from the law, and a census of single features.

    If `all_values` is set, the value of every coalition is evaluated too, which needs forwards only.
    """

    all_values: bool = False

    name = "shared"
    estimator = ADJUSTED
    learns_density = True

    def replicate(self, index: int) -> RayRequest:
        assert self.rule is not None
        return draw_rays(self.task, self.rule, self.rays_per_replicate, index)

    def census(self) -> RayRequest | None:
        task, n = self.task, self.task.n_features
        if self.all_values:
            masks, baseline = everywhere(all_masks(n), task.n_baselines)
            # Only single features are known without nodes; the values of the others teach the surrogates.
            known = task.has_census & (masks.sum(1) == 1)
            return RayRequest.of(masks, np.zeros(len(masks)), np.where(known, CENSUS, PILOT), baseline=baseline)
        return single_features(task)


def single_features(task: PlanningTask) -> RayRequest | None:
    """The coalitions of one feature, if their values tell their rays, and the value of all features together."""
    n = task.n_features
    if not task.has_census:
        return None
    masks = np.concatenate([np.eye(n, dtype=bool), np.ones((1, n), dtype=bool)])
    return RayRequest.of(masks, np.zeros(n + 1), np.where(np.arange(n + 1) < n, CENSUS, PILOT))


def sampled(
    task: PlanningTask, n_points: int, pilot: Sequence[Ledger], *, n_nodes: int = 1, all_values: bool = False
) -> SharedSchedule:
    """Rays with n_points nodes at most, whose density follows the values and the gradients on a few rays."""
    n_rays = n_points // n_nodes
    replicates = min(task.replicates or n_replicates(task, n_rays), n_rays)
    random = task.quadrature in (None, "random")
    density = node_density(pilot, walked_density(task) if random else None)
    node_rule = rule(task.quadrature or "random", n_nodes, density, halves=task.halves)
    known = tuple(ledger.on_scale(density) for ledger in pilot)
    return SharedSchedule(task, node_rule, replicates, n_rays // replicates, known, all_values)


def n_replicates(task: PlanningTask, n_rays: int) -> int:
    """At most twelve for a run of fixed length; as many small ones as the budget allows for a run that may stop."""
    if task.rays_per_replicate:
        return max(task.least_replicates, n_rays // task.rays_per_replicate)
    return int(np.clip(n_rays // 12, task.least_replicates, 12))


def draw_rays(task: PlanningTask, node_rule: NodeRule, n_rays: int, index: int) -> RayRequest:
    """n_rays rays of one replicate, distributed over the baselines by their weights."""
    rng = task.rng(index)
    counts = systematic_counts(rng, n_rays * task.baseline_weights) if task.n_baselines > 1 else np.array([n_rays])
    least = 2 if task.has_census else 1
    masks, log_rate, baseline = [], [], []
    for number in np.flatnonzero(counts):
        drawn, log_proposal = task.laws[number].propose(rng, int(counts[number]), least)
        masks.append(drawn)
        log_rate.append(log_proposal + np.log(n_rays * task.baseline_weights[number]))
        baseline.append(np.full(len(drawn), number))
    nodes, weights = node_rule.on_rays(rng, n_rays)
    density = node_rule.density if isinstance(node_rule, RandomRule) else UNIFORM
    return RayRequest.of(
        np.concatenate(masks),
        np.concatenate(log_rate),
        index,
        nodes,
        weights,
        density=density,
        baseline=np.concatenate(baseline),
    )
