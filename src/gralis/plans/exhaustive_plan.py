"""All 2^n - 1 rays, each once: phi_i = sum_T q_i(T) ray_i(T), no sampling error, quadrature error only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gralis.checks import whole
from gralis.errors import BudgetError, GralisError
from gralis.estimators import ENUMERATED
from gralis.laws import all_masks
from gralis.plans.plan import Plan, PlanningTask, Probe, Schedule
from gralis.rays import RayRequest
from gralis.rays.quadrature import rule

__all__ = ["ExhaustivePlan", "ExhaustiveSchedule", "exhaustive"]

_MOST_FEATURES = 16
_LEAST_NODES, _MOST_NODES = 4, 16


def exhaustive(most_features: int = _MOST_FEATURES) -> Plan:
    """All 2^n - 1 coalitions, each once: no sampling error.

    Parameters
    ----------
    most_features : int, default=16
        The largest number of features that is accepted. Raise it to enumerate more coalitions than 2^16.

    Returns
    -------
    Plan

    Examples
    --------
    >>> exhaustive(most_features=18).most_features
    18
    """
    return ExhaustivePlan(whole(most_features, "most_features", 1))


@dataclass(frozen=True)
class ExhaustivePlan(Plan):
    """Every coalition once, of at most `most_features` features."""

    most_features: int = _MOST_FEATURES
    name = "exhaustive"

    def settle(self, task: PlanningTask, probe: Probe) -> ExhaustiveSchedule:
        n = task.n_features
        if n > self.most_features:
            raise GralisError(
                f"plan='exhaustive' enumerates 2^n - 1 coalitions, here 2^{n} = {2.0**n:.3g}; the plan accepts "
                f"up to n_features = {self.most_features}. Use plan='shared', fewer features (features=...), or "
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
    estimator = ENUMERATED
    enumerates = True

    def replicate(self, index: int) -> RayRequest:
        assert self.rule is not None
        masks = np.tile(all_masks(self.task.n_features), (self.task.n_baselines, 1))
        baseline = np.repeat(np.arange(self.task.n_baselines), len(masks) // self.task.n_baselines)
        nodes, weights = self.rule.on_rays(self.task.rng(index), len(masks))
        return RayRequest.of(masks, np.zeros(len(masks)), index, nodes, weights, baseline=baseline)
