"""Max-sensitivity: how far an attribution moves when the input hardly does."""

from __future__ import annotations

from typing import Unpack

import numpy as np
import torch

from gralis.checks import whole
from gralis.errors import GralisError, bad
from gralis.faithfulness.rerun import again, method_of
from gralis.faithfulness.score import Curve, Score
from gralis.faithfulness.scored_input import case
from gralis.methods.method import BUDGET, Method, Words


def max_sensitivity(
    model: object,
    x: object,
    attribution: object,
    *,
    method: str | Method,
    radius: float = 0.02,
    n_perturbations: int = 10,
    budget: int = BUDGET,
    **asked: Unpack[Words],
) -> Score:
    """max over |d| <= radius of ||phi(x + d) - phi(x)|| / ||phi(x)||; lower is better.

    d is drawn uniformly, coordinate by coordinate, n_perturbations times; `method` makes phi again at x + d, with
    the seed and the budget given here, which should be those of `attribution`. The curve has every draw.
    """
    if isinstance(radius, bool) or not isinstance(radius, int | float | np.floating) or not 0 < radius < np.inf:
        raise bad("radius", "max_sensitivity", "a number > 0", repr(radius))
    run = method_of(method, "max_sensitivity")
    with case(max_sensitivity, model, x, attribution, asked) as found:
        if len(found.problem.x) != 1:
            raise bad("x", "max_sensitivity", "one array", f"{len(found.problem.x)} of them")
        size = float(np.linalg.norm(found.values))
        if size == 0:
            raise GralisError("The attribution is zero, so a relative change of it has no meaning.")
        rng, leaf = np.random.default_rng(found.seed), found.problem.x[0]
        moves = np.empty(whole(n_perturbations, "n_perturbations", 1, "max_sensitivity"))
        for number in range(len(moves)):
            step = torch.from_numpy(rng.uniform(-radius, radius, tuple(leaf.shape))).to(leaf)
            values = again(run, found, model, leaf + step, budget=budget)
            moves[number] = np.linalg.norm(values - found.values) / size
        curve = Curve(np.arange(1.0, len(moves) + 1), moves)
        return Score("max_sensitivity", float(moves.max()), "lower", curve)
