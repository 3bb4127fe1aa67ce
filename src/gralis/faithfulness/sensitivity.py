"""Max-sensitivity: how far an attribution moves when the input hardly moves."""

from __future__ import annotations

from typing import Unpack

import numpy as np
import torch

from gralis.api.signature import keywords_of
from gralis.checks import positive, whole
from gralis.errors import GralisError, bad
from gralis.faithfulness.rerun import method_of, values_again
from gralis.faithfulness.score import Curve, Score
from gralis.faithfulness.scored_input import ScoredInput
from gralis.methods.method import Method
from gralis.methods.settings import BUDGET, SharedKeywords, SharedSettings

__all__ = ["max_sensitivity"]


@keywords_of(SharedSettings)
def max_sensitivity(
    model: object,
    x: object,
    attribution: object,
    *,
    method: str | Method,
    radius: float = 0.02,
    n_perturbations: int = 10,
    budget: int = BUDGET,
    **keywords: Unpack[SharedKeywords],
) -> Score:
    """max over |d| <= radius of ||phi(x + d) - phi(x)|| / ||phi(x)||; lower is better.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis; a single array.
    attribution : Attribution, Explanation or array
        What is scored: a result with `.values`, or an array with one number per feature or shaped like x.
    method : str or callable
        The method that made the attribution: a name in `gralis.methods.METHODS`, or a function with the signature of
        a method. It explains x + d with this seed and budget.
    radius : float, default=0.02
        The largest change of a coordinate. Each coordinate of d is drawn uniformly from -radius to radius.
    n_perturbations : int, default=10
        The number of draws of d.
    budget : int, default=1024
        The budget of each run of the method, which should be the budget of the attribution.

    Returns
    -------
    Score
        The maximum, with the relative change of every draw as the curve.
    """
    radius = positive(radius, "radius", "max_sensitivity")
    if radius > 1e30:
        raise bad("radius", "max_sensitivity", "a number up to 1e30", f"{radius:g}")
    run = method_of(method, "max_sensitivity")
    with ScoredInput.open(max_sensitivity, model, x, attribution, keywords) as scored:
        if len(scored.problem.x) != 1:
            raise bad("x", "max_sensitivity", "one array", f"{len(scored.problem.x)} of them")
        size = float(np.linalg.norm(scored.values))
        if size == 0:
            raise GralisError("The attribution is zero, so a relative change of it has no meaning.")
        rng, leaf = np.random.default_rng(scored.seed), scored.problem.x[0]
        moves = np.empty(whole(n_perturbations, "n_perturbations", 1, "max_sensitivity", most=10**6))
        for number in range(len(moves)):
            step = torch.from_numpy(rng.uniform(-radius, radius, tuple(leaf.shape))).to(leaf)
            values = values_again(run, scored, model, leaf + step, budget=budget)
            moves[number] = np.linalg.norm(values - scored.values) / size
        curve = Curve(np.arange(1.0, len(moves) + 1), moves)
        return Score("max_sensitivity", float(moves.max()), "lower", curve)
