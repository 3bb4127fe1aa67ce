"""All coalitions, for the plans that need forward passes only."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Masks
from gralis.errors import BudgetError
from gralis.laws import all_masks
from gralis.plans.plan import PlanningTask
from gralis.rays import RayRequest

MOST_FEATURES = 20


def forwards_for_all(task: PlanningTask, n_moving: int, plan: str) -> float:
    """The forward passes that all coalitions of `n_moving` features need; infinite if there are too many coalitions."""
    n = task.n_features
    if n <= MOST_FEATURES:
        return float(
            (2**n_moving - 2) * task.n_baselines + 1 + task.n_baselines
        )  # F(x) and every F(x') are forwards too
    if task.budget is None:
        raise BudgetError(f"plan='{plan}' with {n} features has 2^{n} coalitions; give a budget of forwards.")
    return np.inf


def everywhere(masks: Masks, n_baselines: int) -> tuple[Masks, NDArray[np.int64]]:
    """The masks once for every baseline, and the number of the baseline of every row."""
    return np.tile(masks, (n_baselines, 1)), np.repeat(np.arange(n_baselines), len(masks))


def all_values(task: PlanningTask, index: int) -> RayRequest:
    """The values of all coalitions with every baseline, as one replicate."""
    masks, baseline = everywhere(all_masks(task.n_features), task.n_baselines)
    return RayRequest.of(masks, np.zeros(len(masks)), index, baseline=baseline)
