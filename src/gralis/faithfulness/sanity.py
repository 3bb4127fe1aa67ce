"""Model randomisation: an explanation of the model must change when the model's parameters become random."""

from __future__ import annotations

import copy
from typing import Literal, Unpack

import numpy as np
import torch
from torch import nn

from gralis.api.signature import keywords_of
from gralis.checks import one_of, whole
from gralis.errors import bad
from gralis.faithfulness.repeats import agreement
from gralis.faithfulness.rerun import method_of, values_again
from gralis.faithfulness.score import Curve, Score
from gralis.faithfulness.scored_input import ScoredInput
from gralis.methods.method import Method
from gralis.methods.settings import BUDGET, SharedKeywords, SharedSettings
from gralis.models.failures import kind

__all__ = ["model_randomisation"]


@keywords_of(SharedSettings)
def model_randomisation(
    model: object,
    x: object,
    attribution: object,
    *,
    method: str | Method,
    mode: Literal["cascading", "full"] = "cascading",
    stages: int = 5,
    budget: int = BUDGET,
    **keywords: Unpack[SharedKeywords],
) -> Score:
    """The mean |rank correlation| with the attributions of randomised models: 0 is right, lower is better.

    A copy of the model gets normal random numbers as parameters, with the root mean square of the trained ones. The
    score ignores the sign of the correlation, because a reversed order (-1) depends on the trained parameters as
    little as the same order (1).

    Parameters
    ----------
    model : torch.nn.Module
        The model, which must have parameters. It is not changed.
    x : object
        One input, without a batch axis.
    attribution : Attribution, Explanation or array
        What is scored: a result with `.values`, or an array with one number per feature or shaped like x.
    method : str or callable
        The method that made the attribution: a name in `gralis.methods.METHODS`, or a function with the signature of
        a method. It explains the randomised models.
    mode : {"cascading", "full"}, default="cascading"
        Whether the layers are randomised from the output down to the input in several stages, or all at once.
    stages : int, default=5
        The largest number of stages of "cascading".
    budget : int, default=1024
        The budget of each run of the method, which should be the budget of the attribution.

    Returns
    -------
    Score
        The mean, with the signed correlation over the share of randomised layers as the curve.
    """
    if not isinstance(model, nn.Module):
        raise bad("model", "model_randomisation", "a torch.nn.Module, which has parameters", kind(model))
    one_of(mode, ("cascading", "full"), "mode", "model_randomisation")
    run = method_of(method, "model_randomisation")
    twin = copy.deepcopy(model)
    layers = [part for part in twin.modules() if any(True for _ in part.parameters(recurse=False))][::-1]
    if not layers:
        raise bad("model", "model_randomisation", "a module with parameters", f"{kind(model)} without")
    n_stages = 1 if mode == "full" else min(len(layers), whole(stages, "stages", 1, "model_randomisation"))
    ends = np.round(np.linspace(0, len(layers), n_stages + 1)).astype(np.int64)
    correlations = np.empty(n_stages)
    with ScoredInput.open(model_randomisation, model, x, attribution, keywords) as scored:
        generator = torch.Generator().manual_seed(scored.seed)
        for stage in range(n_stages):
            for layer in layers[ends[stage] : ends[stage + 1]]:
                _randomise(layer, generator)
            values = values_again(run, scored, twin, x, budget=budget)
            correlations[stage] = agreement(scored.values, values)
    curve = Curve(ends[1:] / len(layers), correlations)
    return Score("model_randomisation", float(np.abs(correlations).mean()), "lower", curve, note=mode)


def _randomise(layer: nn.Module, generator: torch.Generator) -> None:
    """Give the parameters of one layer random values of the same root mean square."""
    with torch.no_grad():
        for parameter in layer.parameters(recurse=False):
            if parameter.is_floating_point():
                size = float(parameter.double().square().mean().sqrt())
                drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                parameter.copy_((size * drawn).to(parameter))
