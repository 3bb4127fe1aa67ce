"""Independent draws of the law q, with Z known: the plan for which finite-sample bounds are proved."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gralis.estimators import WEIGHTED
from gralis.plans.plan import Plan, PlanningTask, Probe, Schedule
from gralis.rays import RayRequest
from gralis.rays.quadrature import rule

__all__ = ["IndependentPlan", "IndependentSchedule", "independent"]


def independent() -> Plan:
    """Independent draws of the law q, the plan for which finite-sample bounds are proved.

    Returns
    -------
    Plan

    Examples
    --------
    >>> independent().name
    'independent'
    """
    return IndependentPlan()


@dataclass(frozen=True)
class IndependentPlan(Plan):
    """Every ray is an independent draw from q, with one random node unless `n_nodes` is given."""

    name = "independent"
    may_fold = True

    def settle(self, task: PlanningTask, probe: Probe) -> IndependentSchedule:
        node_rule = rule(task.quadrature or "random", task.n_nodes or 1, halves=task.halves)
        budget = 1024 if task.budget is None else task.budget
        n_rays = budget // node_rule.n_nodes
        replicates = task.replicates or (n_rays // task.rays_per_replicate if task.rays_per_replicate else 16)
        replicates = max(replicates, task.least_replicates)
        task.needs(2 * replicates * node_rule.n_nodes, f"plan='independent' with {replicates} replicates")
        return IndependentSchedule(task, node_rule, replicates, n_rays // replicates)


class IndependentSchedule(Schedule):
    """Replicates are groups of independent rays."""

    name = "independent"
    estimator = WEIGHTED

    def replicate(self, index: int) -> RayRequest:
        assert self.rule is not None
        task, n_rays, node_rule = self.task, self.rays_per_replicate, self.rule
        rng = task.rng(index)
        baseline = np.sort(rng.choice(task.n_baselines, size=n_rays, p=task.baseline_weights))
        masks = np.empty((n_rays, task.n_features), dtype=bool)
        log_rate = np.empty(n_rays)
        for number in np.unique(baseline):
            rows = baseline == number
            masks[rows] = task.laws[number].sample(rng, int(rows.sum()))
            share = np.log(n_rays * task.baseline_weights[number])
            log_rate[rows] = task.laws[number].log_probability(masks[rows]) + share
        # One ray at a time: on_rays(n_rays) would stratify the nodes over the rays, which must be independent.
        pairs = [node_rule.on_rays(rng, 1) for _ in range(n_rays)]
        nodes, weights = (np.concatenate(column) for column in zip(*pairs, strict=True))
        return RayRequest.of(masks, log_rate, index, nodes, weights, baseline=baseline)
