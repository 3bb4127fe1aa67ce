"""The default plan: every gradient serves every member of its coalition, and replicates estimate the error.

1. Census. One forward per feature gives v({i}), which by Lemma A is the ray of {i}, without quadrature error.
2. Pilot. A few rays show where along a ray the gradient is large. If its size is uneven, nodes are drawn from a
   density that follows it. If F itself is steep somewhere on the ray of all features, forwards along a few rays show
   where, and the density follows these steps too.
3. Replicates. Coalitions of two or more features are drawn from the proposal of the law, each with one random node;
   the nodes are stratified over the rays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gralis.plans.exhaustive_plan import ExhaustivePlan
from gralis.plans.node_density import PILOT_DENSITY
from gralis.plans.plan import Plan, PlanningTask, Probe, Schedule
from gralis.plans.sampled_rays import draw_rays, n_replicates, sampled
from gralis.rays import PILOT
from gralis.rays.nested import default_nodes
from gralis.rays.quadrature import RandomRule

__all__ = ["SharedPlan", "shared"]

_N_NODES = 1  # a gradient on another coalition tells more than a second one on the same ray
_ENOUGH = 128  # gradients: fewer are too few for any number of features beyond a few dozen
_ENOUGH_NODES = 8  # per ray, for enumerating all coalitions instead of sampling them


def shared() -> Plan:
    """The default plan: all members of a coalition share its gradients.

    The rays of single features have no sampling error where coalition values are evaluated, and the replicates give
    the error of the rest. If the budget suffices for all coalitions, the plan becomes `exhaustive`, which first checks
    whether the model is smooth along the rays.

    Returns
    -------
    Plan

    Examples
    --------
    >>> shared().name
    'shared'
    """
    return SharedPlan()


@dataclass(frozen=True)
class SharedPlan(Plan):
    """The plan that `shared` makes; it becomes exhaustive if the budget allows."""

    name = "shared"
    may_fold = True

    def settle(self, task: PlanningTask, probe: Probe) -> Schedule:
        n, budget = task.n_features, task.budget
        n_coalitions = 2**n - 1 if n <= 30 else np.inf
        if n == 1 or budget is None or budget >= n_coalitions * task.n_baselines * (task.n_nodes or _ENOUGH_NODES):
            return ExhaustivePlan().settle(task, probe)
        random = task.quadrature in (None, "random")
        n_nodes = task.n_nodes or (_N_NODES if random else default_nodes(task.quadrature, 10))
        beside_pilot = max(_least(task), task.least_replicates * n_nodes)
        least = beside_pilot
        while random and least < beside_pilot + _pilot_rays(task, least, n_nodes) * n_nodes:
            least += 1  # the pilot grows with the budget
        task.needs(least, f"plan='shared' with {n} features and n_nodes={n_nodes}")
        n_pilot = _pilot_rays(task, budget, n_nodes) if random else 0
        replicates = task.replicates or n_replicates(task, budget // n_nodes - n_pilot)
        task.needs((n_pilot + replicates) * n_nodes, f"plan='shared' with {replicates} replicates")
        pilot = probe(draw_rays(task, RandomRule(n_nodes, PILOT_DENSITY), n_pilot, PILOT)) if n_pilot else ()
        return sampled(task, budget - n_pilot * n_nodes, pilot, n_nodes=n_nodes)


def _least(task: PlanningTask) -> int:
    """The gradients that put every feature on a few rays: four per feature, fewer if coalitions are large."""
    n = task.n_features
    if 4 * n <= _ENOUGH:
        return 4 * n
    mean_size = min(float(law.size_moments()[1].min()) * n for law in task.laws)
    return int(min(4 * n, max(_ENOUGH, np.ceil(16 * n / mean_size))))


def _pilot_rays(task: PlanningTask, budget: int, n_nodes: int) -> int:
    """The rays of the pilot: a tenth of the budget, between 24 and 96 gradients (24 in a hurry), at least one ray."""
    return max(1, int(np.clip(budget // 10, 24, 24 if task.hurried else 96)) // n_nodes)
