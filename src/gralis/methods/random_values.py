"""Random numbers in place of an explanation: every metric must be able to tell them from one."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from gralis.api.signature import keywords_of
from gralis.methods.method import delta_of, exact_estimate
from gralis.methods.settings import MethodKeywords, MethodSettings
from gralis.results import Attribution

__all__ = ["random"]


@keywords_of(MethodSettings)
def random(model: object, x: object, **keywords: Unpack[MethodKeywords]) -> Attribution:
    """phi_i ~ N(0, 1), whatever the model is.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes. It is called for F(x) - F(x') only.
    x : object
        One input, without a batch axis.

    Returns
    -------
    Attribution

    Examples
    --------
    >>> random(lambda z: z.sum(1), np.ones(3), seed=1).values.round(2).tolist()
    [0.35, 0.82, 0.33]
    """
    settings = MethodSettings.of(random, keywords)
    with settings.evaluator(model, x) as evaluator:
        delta, features = delta_of(evaluator), evaluator.problem.features
    values = np.random.default_rng(settings.seed).standard_normal(features.n_features)
    return Attribution(exact_estimate(values, "random"), features.names, delta, "not an explanation", features)
