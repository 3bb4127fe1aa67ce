"""Occlusion: what is lost when one feature is taken away."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from gralis.errors import BudgetError
from gralis.explainers import Attribution
from gralis.methods.method import Task, TaskWords, delta_of, known


def occlusion(
    model: object,
    x: object,
    **asked: Unpack[TaskWords],
) -> Attribution:
    """phi_i = F(x) - F(x without i): n_features forwards, no gradient; nothing is sampled.

    >>> occlusion(lambda z: z[:, 0] * z[:, 1] + z[:, 1], np.array([2.0, 3.0])).values.tolist()
    [6.0, 9.0]
    """
    task = Task.of(occlusion, asked)
    with task.evaluator(model, x) as evaluator:
        problem = evaluator.problem
        n, weights = problem.n_features, problem.baselines.weights
        if n * len(weights) > task.budget:
            raise BudgetError(
                f"Occlusion takes one forward for every feature and baseline, {n * len(weights)} here, and "
                f"budget={task.budget}; join coordinates with features=..., or raise the budget."
            )
        delta = delta_of(evaluator)
        everyone, without = np.ones((1, n), dtype=bool), ~np.eye(n, dtype=bool)
        values = np.zeros(n)
        for number, share in enumerate(weights):
            (v,) = evaluator.values(np.concatenate([everyone, without]), np.full(n + 1, number))
            values += share * (v[0] - v[1:])
    return Attribution(known(values, "occlusion"), problem.features.names, delta, features=problem.features)
