"""Occlusion: what is lost when one feature is taken away."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from gralis.api.signature import keywords_of
from gralis.errors import BudgetError
from gralis.methods.method import delta_of, exact_estimate
from gralis.methods.settings import MethodKeywords, MethodSettings
from gralis.results import Attribution

__all__ = ["occlusion"]


@keywords_of(MethodSettings)
def occlusion(model: object, x: object, **keywords: Unpack[MethodKeywords]) -> Attribution:
    """phi_i = F(x) - F(x without i): one forward pass per feature, no gradient, nothing sampled.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis.

    Returns
    -------
    Attribution
        The values, averaged over the baselines if there are several.

    Raises
    ------
    BudgetError
        If `budget` is smaller than the number of features times the number of baselines.

    Examples
    --------
    >>> occlusion(lambda z: z[:, 0] * z[:, 1] + z[:, 1], np.array([2.0, 3.0])).values.tolist()
    [6.0, 9.0]
    """
    settings = MethodSettings.of(occlusion, keywords)
    with settings.evaluator(model, x) as evaluator:
        problem = evaluator.problem
        n, weights = problem.n_features, problem.baselines.weights
        if n * len(weights) > settings.budget:
            raise BudgetError(
                f"Occlusion takes one forward for every feature and baseline, {n * len(weights)} here, and "
                f"budget={settings.budget}; join coordinates with features=..., or raise the budget."
            )
        delta = delta_of(evaluator)
        everyone, without = np.ones((1, n), dtype=bool), ~np.eye(n, dtype=bool)
        values = np.zeros(n)
        for number, share in enumerate(weights):
            (v,) = evaluator.values(np.concatenate([everyone, without]), np.full(n + 1, number))
            values += share * (v[0] - v[1:])
    return Attribution(exact_estimate(values, "occlusion"), problem.features.names, delta, features=problem.features)
