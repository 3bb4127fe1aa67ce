"""`sensitivity`: Sobol indices and Shapley effects of all inputs in one call."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Literal

import numpy as np
import torch

from gralis.arrays import Array
from gralis.sobol import pick_freeze, quadrature
from gralis.sobol.design import cost_of_a_row
from gralis.sobol.found import Found, without_sampling
from gralis.sobol.input_sets import InputSet, named_sets, with_pairs
from gralis.sobol.inputs import resolve
from gralis.sobol.result import Sensitivity
from gralis.sobol.settings import Settings
from gralis.sobol.values import PointValues
from gralis.targets import Target

__all__ = ["sensitivity"]


def sensitivity(
    model: object,
    sampler: object,
    *,
    target: Target = None,
    sets: Iterable[Sequence[int | str]] | None = None,
    method: Literal["auto", "quadrature", "sampling"] = "auto",
    budget: int | None = 2**16,
    level: float = 0.95,
    replicates: int | None = None,
    seed: int | None = 0,
    names: Sequence[str] | None = None,
    batch_size: int | Literal["auto"] = "auto",
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> Sensitivity:
    """Var F = sum over T of Var f_T: Sobol indices S_T = Var f_T / Var F, total indices and Shapley effects.

    The indices say how much of the variance of F over its inputs comes from each input and from interactions. They are
    exact if the inputs take finitely many values and F was evaluated at all of them. Otherwise they come from
    quadrature, which random points check, or from sampling, where independent replicates give the intervals.

    Parameters
    ----------
    model : object
        Any model that `explain` takes, evaluated at points (rows, n_inputs). It needs no gradients.
    sampler : list, tuple, array or callable
        How the inputs are distributed: a list or tuple with one pair (low, high) or scipy.stats distribution per input;
        an array or data frame X of data (rows, n_inputs); or a function (rng, n) -> array (n, n_inputs). The inputs are
        treated as independent in every case.
    target : int, tuple or callable, optional
        Which output of the model is F, as in `explain`. A model with one output needs no target.
    sets : iterable of tuples of int or str, optional
        Further sets T whose indices are wanted, each by the numbers or by the names of its inputs: `interactions` and
        `closed` of the result have them beside all pairs. In sampling, a set costs up to 2^(|T| + 1) points per row.
    method : {"auto", "quadrature", "sampling"}, default="auto"
        "quadrature" evaluates F on a tensor grid and raises if F is too rough for it; "sampling" uses the pick-freeze
        design. "auto" takes quadrature if a few lines along every input and up to a quarter of the budget at random
        points show that F is smooth enough, and if it needs at most half of the budget. Otherwise it takes sampling.
    budget : int or None, default=65536
        The largest number of model evaluations. None means no limit and requires method="quadrature".
    level : float, default=0.95
        The probability with which the half-widths hold.
    replicates : int, optional
        The number of independent replicates of the sampling design, at least 2. By default it depends on the budget.
    seed : int or None, default=0
        The seed of every random choice. None draws a fresh seed.
    names : sequence of str, optional
        The names of the inputs. By default the columns of a data frame, or numbers.
    batch_size : int or "auto", default="auto"
        The number of points in one call of the model. "auto" measures which size is fastest.
    device : torch.device or str, optional
        Where a torch model runs. By default where its parameters are.
    dtype : torch.dtype, optional
        The type in which points are evaluated. By default that of the model.

    Returns
    -------
    Sensitivity
        The indices with their half-widths; printing it shows a table.

    Examples
    --------
    >>> from gralis.games import Ishigami
    >>> F = Ishigami()
    >>> result = sensitivity(F, F.bounds)
    >>> result.first.round(4).tolist(), round(result.pairs[0, 2], 4), bool(result.first_half_width.max() < 1e-9)
    ([0.3139, 0.4424, 0.0], 0.2437, True)
    >>> triple = sensitivity(F, F.bounds, sets=[(0, 1, 2)])
    >>> round(triple.closed[0, 1, 2], 4), triple.doubts
    (1.0, ())
    """
    settings = Settings.check("sensitivity", method, budget, level, replicates, seed, batch_size)
    inputs, labels = resolve(sampler, names, "sensitivity")
    wanted = with_pairs(named_sets(() if sets is None else sets, labels, "sensitivity"), inputs.n_inputs)
    values = PointValues(model, target, inputs.n_inputs, settings.batch_size, device, dtype)
    with values.session():
        grid = quadrature.grid(values, inputs, settings, settings.least(cost_of_a_row(inputs.n_inputs)))
        if grid is not None:
            found = _on_grid(values, grid, wanted, settings.level)
        else:
            found = pick_freeze.estimate(values, inputs, settings, wanted)
    return Sensitivity(found, wanted, labels, inputs.words, settings.level, values.n_evaluations)


def _on_grid(values: PointValues, grid: quadrature.Grid, sets: tuple[InputSet, ...], level: float) -> Found:
    """Every index on a grid, with the error of quadrature and of rounding as the margin."""
    mean, parts = quadrature.parts(grid.tensor, grid.axes)
    variance = float(parts.sum())
    if variance <= (64 * values.eps * float(np.abs(grid.tensor).max())) ** 2:
        raise pick_freeze.constant_model()
    indices = {"mean": np.array([mean]), "variance": np.array([variance]), **_shares(parts / variance, sets)}
    error, rough = grid.error(variance), grid.check.excess / math.sqrt(variance)
    margins = {
        name: error + 4 * rough * np.sqrt(np.maximum(index, 0)) + 4 * rough**2 for name, index in indices.items()
    }
    margins["mean"] = np.array([(error + rough) * math.sqrt(variance)])
    margins["variance"] = np.array([(error + 2 * rough + rough**2) * variance])
    estimates = {name: without_sampling(value) for name, value in indices.items()}
    return Found(estimates, margins, (), grid.enumerated, grid.check.unseen(level))


def _shares(parts: Array, sets: tuple[InputSet, ...]) -> dict[str, Array]:
    """All indices, computed from S_T for every T, an array (2, ..., 2)."""
    n = parts.ndim
    inside = np.indices(parts.shape).reshape(n, -1)  # (n, 2^n)
    flat, size = parts.ravel(), np.maximum(inside.sum(0), 1)

    def of(t: InputSet) -> float:
        return float(parts[tuple(int(k in t) for k in range(n))])

    return {
        "first": np.array([of((i,)) for i in range(n)]),
        "total": inside @ flat,
        "pairs": np.array([of(t) for t in combinations(range(n), 2)]),
        "interactions": np.array([of(t) for t in sets]),
        "closed": np.array([parts[tuple(slice(None) if k in t else 0 for k in range(n))].sum() for t in sets]),
        "shapley": inside @ (flat / size),
    }
