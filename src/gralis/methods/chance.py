"""Random numbers in place of an explanation: what every metric must be able to tell from one."""

from __future__ import annotations

import numpy as np

from gralis.explainers import Attribution
from gralis.explanation import Explanation
from gralis.methods.method import BUDGET, BatchSize, delta_of, evaluator_of, known
from gralis.targets import Target


def random(
    model: object,
    x: object,
    *,
    target: Target = None,
    baseline: object = 0.0,
    features: object = None,
    budget: int = BUDGET,
    seed: int = 0,
    batch_size: BatchSize = "auto",
    ledger: Explanation | None = None,
) -> Attribution:
    """phi_i ~ N(0, 1), whatever the model.

    >>> random(lambda z: z.sum(1), np.ones(3), seed=1).values.round(2).tolist()
    [0.35, 0.82, 0.33]
    """
    with evaluator_of(model, x, baseline, target, features, batch_size) as evaluator:
        delta, features_ = delta_of(evaluator), evaluator.problem.features
    values = np.random.default_rng(seed).standard_normal(features_.n_features)
    return Attribution(known(values, "random"), features_.names, delta, "not an explanation", features_)
