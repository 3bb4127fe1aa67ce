"""Estimates by pick-freeze: two tables A and B of rows, and rows that take some columns from A and the rest from B.

With A_i = A but column i from B, B_i = B but column i from A, and D_i = F(A) - F(A_i), E_i = F(B) - F(B_i):

    single    Var f_i                            = -E[D_i E_i] / 2
    pair      Var f_ij                           = E[D_i E_j]
    total     sum of Var f_T over T with i       = E[D_i^2 + E_i^2] / 4
    overlap   sum of Var f_T over T with i and j = E[D_i D_j + E_i E_j] / 2
    variance  Var F                              = E[(F(A) - F(B))^2] / 2 = E[(F(A_i) - F(B_i))^2] / 2

A product of differences contains only the terms with i (and j), so small indices have small errors. Shapley effects
need coalitions of every size: the two smallest and the two largest sizes follow from the moments above, the sizes
between them from walks from A to B.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.errors import BudgetError, GralisError
from gralis.estimators.estimate import Estimate
from gralis.sobol.design import PickFreezeDesign, cost_of_a_row
from gralis.sobol.inputs import Inputs
from gralis.sobol.settings import Settings
from gralis.sobol.surrogate import LegendreSurrogate, fit
from gralis.sobol.values import PointValues


@dataclass(frozen=True, eq=False)
class VarianceMoments:
    """The moments that determine all indices, estimated without bias or known; a leading axis counts replicates."""

    mean: Array  # ()
    variance: Array  # ()
    single: Array  # (n,)
    total: Array  # (n,)
    pair: Array  # (n, n), zero on the diagonal
    overlap: Array  # (n, n), zero on the diagonal
    walk: Array  # (n,), the part of the Shapley effects from coalitions of 2 .. n - 3 others


def estimate(values: PointValues, inputs: Inputs, settings: Settings) -> dict[str, Estimate]:
    """Estimate every index as a ratio of moments pooled over independent replicates, with jackknife errors."""
    n_replicates, n_rows = settings.split(cost_of_a_row(inputs.n_inputs), values.n_evaluations)
    seeds = np.random.SeedSequence(settings.seed).spawn(n_replicates)
    designs = [PickFreezeDesign.draw(inputs, seed, n_rows) for seed in seeds]
    outputs = [values(design.n_points, design.points) for design in designs]
    if np.ptp(np.concatenate(outputs)) <= 64 * values.eps * max(float(np.abs(part).max()) for part in outputs):
        raise constant_model()
    centre = float(outputs[0].mean())
    moments = _adjusted(designs, [part - centre for part in outputs])
    pooled = np.full((1, n_replicates), 1 / n_replicates)
    without = (1 - np.eye(n_replicates)) / (n_replicates - 1)
    whole, left = (_indices(_each(lambda part, w=w: np.tensordot(w, part, 1), moments)) for w in (pooled, without))
    result = {}
    for name, value in whole.items():
        departures = (n_replicates - 1) * (left[name].mean(0) - left[name])
        result[name] = Estimate(value[0] + (centre if name == "mean" else 0.0), departures, "pick-freeze")
    return result


def constant_model() -> GralisError:
    """The error for a model without variance."""
    return GralisError("The model does not vary over the inputs (Var F = 0), so it has no sensitivity indices.")


def _adjusted(designs: list[PickFreezeDesign], outputs: list[Array]) -> VarianceMoments:
    """The moments of F in every replicate; with a surrogate M, minus the moments of M there, plus its known moments."""
    surrogates = None if designs[0].tables.levels is None else fit(designs, outputs)
    rows = []
    for number, (design, values) in enumerate(zip(designs, outputs, strict=True)):
        moments = _moments(values, design.place)
        if surrogates is not None:
            surrogate = surrogates[number % 2]
            control = _moments(surrogate.at(design.levels(slice(0, design.n_points))), design.place)
            moments = _each(lambda seen, of_m, known: seen - of_m + known, moments, control, _known(surrogate))
        rows.append(moments)
    return _each(lambda *parts: np.stack(parts), *rows)


def _moments(values: Array, place: NDArray[np.int64]) -> VarianceMoments:
    """The moments in one replicate, by the formulas at the top of this file."""
    n_rows, n = place.shape
    f = values.reshape(-1, n_rows)
    a, b, a_i, b_i, steps = f[0], f[1], f[2 : n + 2], f[n + 2 : 2 * n + 2], f[2 * n + 2 :]
    d, e = a - a_i, b - b_i  # (n, n_rows)
    cross, both = d @ e.T / n_rows, (d @ d.T + e @ e.T) / (2 * n_rows)
    off = ~np.eye(n, dtype=bool)
    return VarianceMoments(
        f[: 2 * n + 2].mean(),
        (((a - b) ** 2).mean() + ((a_i - b_i) ** 2).mean(1).sum()) / (2 * n + 2),
        -np.diag(cross) / 2,
        np.diag(both) / 2,
        (cross + cross.T) / 2 * off,
        both * off,
        _walk(steps, d - e, place),
    )


def _walk(steps: Array, difference: Array, place: NDArray[np.int64]) -> Array:
    """sum over the places p = 2 .. n - 3 of E[(F after p steps - F after p + 1) (D_i - E_i)] / 4, i the column at p.

    While column i changes, the later columns are as in A, as for D_i, and the earlier columns are as in B, as for E_i.
    """
    n_rows, n = place.shape
    moved = np.zeros((n_rows, n))  # by place
    if len(steps):
        moved[:, 2 : n - 2] = -np.diff(steps, axis=0).T
    by_column = np.take_along_axis(moved, place, axis=1)
    return np.asarray((by_column * difference.T).mean(0) / 4)


def _known(surrogate: LegendreSurrogate) -> VarianceMoments:
    """The exact moments of the surrogate, whose terms have one or two inputs."""
    n = surrogate.basis.n
    single, pair = surrogate.basis.parts(surrogate.coefficients)
    total = single + pair.sum(1)
    between = (n - 4) / n * (single + pair.sum(1) / 2) if n > 4 else np.zeros(n)
    constant = surrogate.coefficients[0]
    return VarianceMoments(constant, single.sum() + pair.sum() / 2, single, total, pair, pair, between)


def _indices(m: VarianceMoments) -> dict[str, Array]:
    """Every index, (n_rows, n_indices), one row per entry of the leading axis of the moments."""
    n = m.single.shape[1]
    if not (m.variance > 0).all():
        raise BudgetError(
            "The rows are too few to estimate the variance of the model; raise the 'budget' of sensitivity."
        )
    i, j = np.array(list(combinations(range(n), 2)), dtype=np.int64).reshape(-1, 2).T
    share = 1 / m.variance[:, None]
    first, pairs, effects = m.single * share, m.pair[:, i, j] * share, _shapley(m)
    return {
        "mean": m.mean[:, None],
        "variance": m.variance[:, None],
        "first": first,
        "total": m.total * share,
        "pairs": pairs,
        "closed": first[:, i] + first[:, j] + pairs,
        "shapley": effects / effects.sum(1, keepdims=True),
    }


def _shapley(m: VarianceMoments) -> Array:
    """Sh_i Var F = (1 / n) sum over k of the mean gain of i on coalitions of k others.

    k = 0: single; k = 1: single + mean_j pair; k = n - 2: total - mean_j overlap; k = n - 1: total; between: walk.
    """
    n = m.single.shape[1]
    others = max(n - 1, 1)
    second, last_but_one = m.single + m.pair.sum(2) / others, m.total - m.overlap.sum(2) / others
    if n <= 2:
        return np.asarray((m.single + m.total) / 2)
    if n == 3:
        return np.asarray((m.single + (second + last_but_one) / 2 + m.total) / 3)
    return np.asarray((m.single + second + last_but_one + m.total) / n + m.walk)


def _each(fn: Callable[..., Array], *moments: VarianceMoments) -> VarianceMoments:
    """Apply fn to every field."""
    return VarianceMoments(*(fn(*(getattr(part, field.name) for part in moments)) for field in fields(VarianceMoments)))
