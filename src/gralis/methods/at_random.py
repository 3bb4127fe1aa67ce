"""Random numbers in place of an explanation: what every metric must be able to tell from one."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from gralis.explainers import Attribution
from gralis.methods.method import Task, TaskWords, delta_of, known


def random(
    model: object,
    x: object,
    **asked: Unpack[TaskWords],
) -> Attribution:
    """phi_i ~ N(0, 1), whatever the model.

    >>> random(lambda z: z.sum(1), np.ones(3), seed=1).values.round(2).tolist()
    [0.35, 0.82, 0.33]
    """
    task = Task.of(random, asked)
    with task.evaluator(model, x) as evaluator:
        delta, features = delta_of(evaluator), evaluator.problem.features
    values = np.random.default_rng(task.seed).standard_normal(features.n_features)
    return Attribution(known(values, "random"), features.names, delta, "not an explanation", features)
