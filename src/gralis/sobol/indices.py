"""`sensitivity`: Sobol indices and Shapley effects of all inputs in one call."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import numpy as np
import torch

from gralis.arrays import Array
from gralis.estimators.estimate import Estimate
from gralis.sobol import pick_freeze, quadrature
from gralis.sobol.axis import Axis
from gralis.sobol.design import cost_of_a_row
from gralis.sobol.inputs import resolve
from gralis.sobol.result import Sensitivity, exactly
from gralis.sobol.settings import Settings
from gralis.sobol.values import PointValues
from gralis.targets import Target

__all__ = ["sensitivity"]


def sensitivity(
    model: object,
    sampler: object,
    *,
    target: Target = None,
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
    exact where quadrature is exact; otherwise they are sampled, and independent replicates give their intervals.

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
    method : {"auto", "quadrature", "sampling"}, default="auto"
        "quadrature" evaluates F on a tensor grid and raises if that is not exact; "sampling" uses the pick-freeze
        design. "auto" takes quadrature if a few lines along every input show that it is exact and if it needs at most
        half of the budget, and sampling otherwise.
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
    >>> result.first.round(4).tolist(), round(result.pairs[0, 2], 4), result.exact
    ([0.3139, 0.4424, 0.0], 0.2437, True)
    """
    settings = Settings.check("sensitivity", method, budget, level, replicates, seed, batch_size)
    inputs, labels = resolve(sampler, names, "sensitivity")
    values = PointValues(model, target, inputs.n_inputs, settings.batch_size, device, dtype)
    with values.session():
        grid = quadrature.grid(values, inputs, settings, settings.least(cost_of_a_row(inputs.n_inputs)))
        if grid is not None:
            estimates, error = _exact(values, *grid)
        else:
            estimates, error = pick_freeze.estimate(values, inputs, settings), None
    return Sensitivity(estimates, labels, inputs.words, settings.level, values.n_evaluations, error)


def _exact(values: PointValues, axes: list[Axis], tensor: Array) -> tuple[dict[str, Estimate], float | None]:
    """Every index without sampling error, and the quadrature error."""
    mean, parts = quadrature.parts(tensor, axes)
    variance = float(parts.sum())
    if variance <= (64 * values.eps * float(np.abs(tensor).max())) ** 2:
        raise pick_freeze.constant_model()
    indices = {"mean": np.array([mean]), "variance": np.array([variance]), **_shares(parts / variance)}
    return {name: exactly(value) for name, value in indices.items()}, sum(axis.missed for axis in axes) / variance


def _shares(parts: Array) -> dict[str, Array]:
    """All indices, computed from S_T for every T, an array (2, ..., 2)."""
    n = parts.ndim
    inside = np.indices(parts.shape).reshape(n, -1)  # (n, 2^n)
    flat, size = parts.ravel(), np.maximum(inside.sum(0), 1)
    first = np.array([parts[tuple(int(k == i) for k in range(n))] for i in range(n)])
    sets = list(combinations(range(n), 2))
    pairs = np.array([parts[tuple(int(k in pair) for k in range(n))] for pair in sets])
    closed = np.array([first[i] + first[j] for i, j in sets]) + pairs
    return {
        "first": first,
        "total": inside @ flat,
        "pairs": pairs,
        "closed": closed,
        "shapley": inside @ (flat / size),
    }
