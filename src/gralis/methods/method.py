"""What a method is: one signature, the same features, one number per feature."""

from __future__ import annotations

from typing import Protocol, Unpack

from gralis.evaluation.evaluator import Evaluator
from gralis.explainers.from_values import exact_estimate
from gralis.methods.settings import MethodKeywords
from gralis.results import Attribution

__all__ = ["Method", "delta_of", "exact_estimate"]


class Method(Protocol):
    """A function that says why F(x) differs from F(x'), feature by feature.

    It takes the keywords of `gralis.methods.occlusion`, and may take others that have defaults. `register` gives it a
    name that `run`, the metrics and `gralis bench` know.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis.

    Returns
    -------
    Attribution
        One number per feature, with the features that they belong to.
    """

    def __call__(self, model: object, x: object, **keywords: Unpack[MethodKeywords]) -> Attribution: ...


def delta_of(evaluator: Evaluator) -> float:
    """F(x) - F(x'), averaged over the baselines."""
    f_x, f_baselines = evaluator.endpoints()
    return float(f_x[0] - evaluator.problem.baselines.weights @ f_baselines[0])
