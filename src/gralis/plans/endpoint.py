"""The paper's zeroth-order variant: marginal differences v(S u i) - v(S) instead of rays; forwards only.

phi_i = (1 / Z_i) sum_S w(|S|) pi(S) (v(S u i) - v(S));   with the uniform kernel these are the Shapley values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gralis.errors import BudgetError
from gralis.laws import all_masks
from gralis.plans.permutation import draw_orders, prefix_log_rate, prefixes
from gralis.plans.plan import Probe, Schedule, Task
from gralis.rays import RayRequest

_MOST_FEATURES = 20  # up to which all coalitions may be enumerated


@dataclass(frozen=True)
class Endpoint:
    """All coalitions if the budget (of forwards) allows, else antithetic pairs of permutations."""

    name: str = "endpoint"

    def settle(self, task: Task, probe: Probe) -> EndpointSchedule:
        n, ends = task.n_features, 1 + task.n_baselines  # F(x) and every F(x') are forwards too
        everything = (2**n - 2) * task.n_baselines + ends if n <= _MOST_FEATURES else np.inf
        if task.budget is None and n > _MOST_FEATURES:
            raise BudgetError(f"plan='endpoint' with {n} features has 2^{n} coalitions; give a budget of forwards.")
        if task.budget is None or task.budget >= everything:
            return EndpointSchedule(task, None, 1, (2**n - 1) * task.n_baselines, exact=True)
        per_pair = 2 * n * task.n_baselines
        n_pairs = task.replicates or max(2, (task.budget - ends) // per_pair)
        least = int(min(n_pairs * per_pair + ends, everything))
        task.needs(least, f"plan='endpoint' with {n} features ({n_pairs} pairs of permutations)")
        return EndpointSchedule(task, None, n_pairs, per_pair, exact=False)


@dataclass(frozen=True, eq=False, kw_only=True)
class EndpointSchedule(Schedule):
    """Coalition values only: all of them, or the prefixes of permutations, in order along each permutation."""

    exact: bool

    name = "endpoint"
    method = "endpoint"

    def replicate(self, index: int) -> RayRequest:
        if self.exact:
            masks, owner = all_masks(self.task.n_features), np.array(-1)
            rate = np.zeros(len(masks))
        else:
            orders = draw_orders(self.task, index, True)
            masks, owner = prefixes(orders)
            rate = prefix_log_rate(masks, len(orders))
        baselines = range(self.task.n_baselines)
        return RayRequest.stack(
            [RayRequest.of(masks, rate, index, baseline=number, owner=owner) for number in baselines]
        )

    def describe(self) -> dict[str, object]:
        return {**super().describe(), "exact": self.exact}
