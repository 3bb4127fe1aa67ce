"""The paper's zeroth-order variant: marginal differences v(S u i) - v(S) instead of rays; forwards only.

phi_i = (1 / Z_i) sum_S w(|S|) pi(S) (v(S u i) - v(S));   with the uniform kernel these are the Shapley values.
"""

from __future__ import annotations

from dataclasses import dataclass

from gralis.estimators import ENDPOINT
from gralis.plans.enumeration import all_values, forwards_for_all
from gralis.plans.permutation_plan import draw_orders, prefix_log_rate, prefixes
from gralis.plans.plan import Plan, PlanningTask, Probe, Schedule
from gralis.rays import RayRequest

__all__ = ["EndpointPlan", "EndpointSchedule", "endpoint"]


def endpoint() -> Plan:
    """The paper's zeroth-order variant: differences v(S + i) - v(S) instead of rays, without any gradient.

    All coalitions are evaluated if the budget of forward passes allows, else antithetic pairs of permutations.

    Returns
    -------
    Plan

    Examples
    --------
    >>> endpoint().counts_forwards
    True
    """
    return EndpointPlan()


@dataclass(frozen=True)
class EndpointPlan(Plan):
    """All coalitions if the budget of forward passes allows, else antithetic pairs of permutations."""

    name = "endpoint"
    counts_forwards = True

    def settle(self, task: PlanningTask, probe: Probe) -> EndpointSchedule:
        n, ends = task.n_features, 1 + task.n_baselines  # F(x) and every F(x') are forwards too
        everything = forwards_for_all(task, n, self.name)
        if task.budget is None or task.budget >= everything:
            return EndpointSchedule(task, None, 1, (2**n - 1) * task.n_baselines, exact=True)
        per_pair = 2 * n * task.n_baselines
        n_pairs = task.replicates or max(2, (task.budget - ends) // per_pair)
        least = int(min(n_pairs * per_pair + ends, everything))
        task.needs(least, f"plan='endpoint' with {n} features ({n_pairs} pairs of permutations)")
        return EndpointSchedule(task, None, n_pairs, per_pair, exact=False)


@dataclass(frozen=True, eq=False, kw_only=True)
class EndpointSchedule(Schedule):
    """The values of all coalitions, or those of the prefixes of permutations, in the order of each permutation."""

    exact: bool

    name = "endpoint"
    estimator = ENDPOINT

    def replicate(self, index: int) -> RayRequest:
        if self.exact:
            return all_values(self.task, index)
        orders = draw_orders(self.task, index, True)
        masks, owner = prefixes(orders)
        rate = prefix_log_rate(masks, len(orders))
        baselines = range(self.task.n_baselines)
        return RayRequest.stack([RayRequest.of(masks, rate, index, baseline=b, owner=owner) for b in baselines])

    def describe(self) -> dict[str, object]:
        return {**super().describe(), "exact": self.exact}
