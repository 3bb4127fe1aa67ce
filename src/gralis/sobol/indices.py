"""Where the variance of F over its inputs comes from: Sobol indices and Shapley effects, in one call."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal

import numpy as np
import torch

from gralis.arrays import Array
from gralis.checks import whole
from gralis.estimators.estimate import Estimate
from gralis.sobol import pick_freeze, quadrature
from gralis.sobol.axis import Axis
from gralis.sobol.design import cost_of_a_row
from gralis.sobol.inputs import named, resolve
from gralis.sobol.result import Sensitivity, exactly
from gralis.sobol.settings import Settings
from gralis.sobol.values import Values
from gralis.targets import Target


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

    >>> from gralis.games import Ishigami
    >>> F = Ishigami()
    >>> found = sensitivity(F, F.bounds)
    >>> found.first.round(4).tolist(), round(found.pairs[0, 2], 4), found.exact
    ([0.3139, 0.4424, 0.0], 0.2437, True)

    model: whatever `explain` takes, on points (rows, n_inputs); only values are needed. sampler: a list or tuple of
    (low, high) bounds (or scipy.stats distributions), one per input; an array X of data, whose columns are then treated
    as independent; or a function (rng, n) -> rows, likewise. method="auto" takes quadrature where a few lines along
    every input show that it is exact, at no more than half the budget (model evaluations in all), and pick-freeze
    sampling otherwise; independent replicates of the design give the intervals.
    """
    settings = Settings.check("sensitivity", method, budget, level, replicates, seed)
    if batch_size != "auto":
        batch_size = whole(batch_size, "batch_size", 1, "sensitivity")
    inputs, own_names = resolve(sampler, "sensitivity")
    labels = named(names, own_names, "sensitivity")
    values = Values(model, target, batch_size, device, dtype)
    with values.session():
        found = quadrature.grid(values, inputs, settings, settings.least(cost_of_a_row(inputs.n_inputs)))
        if found is not None:
            estimates, error = _exact(values, *found)
        else:
            estimates, error = pick_freeze.estimate(values, inputs, settings), None
    return Sensitivity(estimates, labels, inputs.words, settings.level, values.n_evaluations, error)


def _exact(values: Values, axes: list[Axis], tensor: Array) -> tuple[dict[str, Estimate], float | None]:
    """Every index without sampling error, and the error of the quadrature."""
    mean, parts = quadrature.parts(tensor, axes)
    variance = float(parts.sum())
    if variance <= (64 * values.eps * float(np.abs(tensor).max())) ** 2:
        raise pick_freeze.still()
    indices = {"mean": np.array([mean]), "variance": np.array([variance]), **_shares(parts / variance)}
    return {name: exactly(value) for name, value in indices.items()}, sum(axis.missed for axis in axes) / variance


def _shares(parts: Array) -> dict[str, Array]:
    """Indices from S_T for every T, an array (2, ..., 2)."""
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
