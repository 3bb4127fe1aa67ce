"""All 2^n - 1 rays, each once: phi_i = sum_T q_i(T) ray_i(T), no sampling error, quadrature error only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gralis.errors import BudgetError, GralisError
from gralis.laws import all_masks
from gralis.plans.plan import Probe, Schedule, Task
from gralis.rays import RayRequest
from gralis.rays.quadrature import rule

_MOST_FEATURES = 16
_LEAST_NODES, _MOST_NODES = 4, 16


@dataclass(frozen=True)
class Exhaustive:
    """Enumerate every coalition; n_features <= most_features unless asked for."""

    most_features: int = _MOST_FEATURES
    name: str = "exhaustive"

    def settle(self, task: Task, probe: Probe) -> ExhaustiveSchedule:
        n = task.n_features
        if n > self.most_features:
            raise GralisError(
                f"plan='exhaustive' enumerates 2^n - 1 coalitions, here 2^{n} = {2.0**n:.3g}; the most without asking "
                f"is n_features = {self.most_features}. Use plan='shared', fewer features (features=...), or "
                f"gralis.plans.exhaustive(most_features={n})."
            )
        n_rays = (2**n - 1) * task.n_baselines
        least = n_rays * (task.n_nodes or _LEAST_NODES)
        if task.budget is not None and task.budget < least:
            raise BudgetError(
                f"plan='exhaustive' with {n} features has {n_rays} rays and needs a budget of at least {least} "
                f"gradients; the budget is {task.budget}. Give budget={least} or more, or budget=None."
            )
        if task.n_nodes:
            n_nodes = task.n_nodes
        elif task.budget is None:
            n_nodes = _MOST_NODES
        else:
            n_nodes = min(_MOST_NODES, task.budget // n_rays)
        node_rule = rule(task.quadrature or "gauss-legendre", n_nodes, halves=task.halves)
        return ExhaustiveSchedule(task, node_rule, 1, n_rays)


class ExhaustiveSchedule(Schedule):
    """One replicate: every coalition of every baseline, each exactly once."""

    name = "exhaustive"
    method = "exact"

    def replicate(self, index: int) -> RayRequest:
        assert self.rule is not None
        masks = np.tile(all_masks(self.task.n_features), (self.task.n_baselines, 1))
        baseline = np.repeat(np.arange(self.task.n_baselines), len(masks) // self.task.n_baselines)
        nodes, weights = self.rule.on_rays(self.task.rng(index), len(masks))
        return RayRequest.of(masks, np.zeros(len(masks)), index, nodes, weights, baseline=baseline)
