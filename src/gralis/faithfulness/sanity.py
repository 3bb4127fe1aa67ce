"""Model randomisation: an explanation of the model must change when the model's parameters become random."""

from __future__ import annotations

import copy
from typing import Literal, Unpack

import numpy as np
import torch
from torch import nn

from gralis.checks import whole
from gralis.errors import bad
from gralis.faithfulness.repeats import agreement
from gralis.faithfulness.rerun import again, method_of
from gralis.faithfulness.score import Curve, Score
from gralis.faithfulness.scored_input import case
from gralis.methods.method import BUDGET, Method, Words
from gralis.models.failures import kind


def model_randomisation(
    model: object,
    x: object,
    attribution: object,
    *,
    method: str | Method,
    mode: Literal["cascading", "full"] = "cascading",
    stages: int = 5,
    budget: int = BUDGET,
    **asked: Unpack[Words],
) -> Score:
    """The mean |rank correlation| with the attributions of randomised models; 0 is right, lower is better.

    "cascading" randomises from the output layer down to the input, in at most `stages` steps, "full" all at once.
    Parameters become normal numbers of the same size (root mean square). It happens on a copy of the model. The
    curve is the correlation, with its sign, over the share of layers that are random: the opposite order (-1) is as
    little an effect of chance as the same one.
    """
    if not isinstance(model, nn.Module):
        raise bad("model", "model_randomisation", "a torch.nn.Module, which has parameters", kind(model))
    if mode not in ("cascading", "full"):
        raise bad("mode", "model_randomisation", "'cascading' or 'full'", repr(mode))
    run = method_of(method, "model_randomisation")
    twin = copy.deepcopy(model)
    layers = [part for part in twin.modules() if any(True for _ in part.parameters(recurse=False))][::-1]
    if not layers:
        raise bad("model", "model_randomisation", "a module with parameters", f"{kind(model)} without")
    n_stages = 1 if mode == "full" else min(len(layers), whole(stages, "stages", 1, "model_randomisation"))
    ends = np.round(np.linspace(0, len(layers), n_stages + 1)).astype(np.int64)
    correlations = np.empty(n_stages)
    with case(model_randomisation, model, x, attribution, asked) as found:
        generator = torch.Generator().manual_seed(found.seed)
        for stage in range(n_stages):
            for layer in layers[ends[stage] : ends[stage + 1]]:
                _randomise(layer, generator)
            values = again(run, found, twin, x, budget=budget)
            correlations[stage] = agreement(found.values, values)
    curve = Curve(ends[1:] / len(layers), correlations)
    return Score("model_randomisation", float(np.abs(correlations).mean()), "lower", curve, note=mode)


def _randomise(layer: nn.Module, generator: torch.Generator) -> None:
    with torch.no_grad():
        for parameter in layer.parameters(recurse=False):
            if parameter.is_floating_point():
                size = float(parameter.double().square().mean().sqrt())
                drawn = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                parameter.copy_((size * drawn).to(parameter))
