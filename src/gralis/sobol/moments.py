"""The moments of pick-freeze rows that determine all indices.

With A_T = A but the columns of T from B, B_T = B but the columns of T from A, D_T = F(A) - F(A_T), E_T = F(B) - F(B_T):

    single     Var f_i                            = -E[D_i E_i] / 2
    pair       Var f_ij                           = E[D_i E_j]
    total      sum of Var f_T over T with i       = E[D_i^2 + E_i^2] / 4
    overlap    sum of Var f_T over T with i and j = E[D_i D_j + E_i E_j] / 2
    variance   Var F                              = E[(F(A) - F(B))^2] / 2 = E[(F(A_i) - F(B_i))^2] / 2
    explained  Var E[F | x_T]                     = -E[D_T E_T] / 2
    own        Var f_T                            = (-1/2)^|T| E[G_T H_T]

where G_T = sum over L within T of (-1)^|L| F(A_L), and H_T is the same with B_L. A product of differences contains only
the terms with i (and j, or all of T), so small indices have small errors. Shapley effects need coalitions of every
size: the two smallest and the two largest sizes follow from the moments above, the sizes between them from walks from A
to B.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.sobol.design import PickFreezeDesign, cost_of_a_row
from gralis.sobol.input_sets import InputSet, subsets
from gralis.sobol.surrogate import LegendreSurrogate

_BLOCK = 2**22  # numbers in the largest array of a block of rows


@dataclass(frozen=True, eq=False)
class VarianceMoments:
    """The moments that determine all indices; a leading axis counts rows or replicates."""

    mean: Array  # ()
    variance: Array  # ()
    single: Array  # (n,)
    total: Array  # (n,)
    pair: Array  # (n, n), zero on the diagonal
    overlap: Array  # (n, n), zero on the diagonal
    walk: Array  # (n,), the part of the Shapley effects from coalitions of 2 .. n - 3 others
    explained: Array  # (n_sets,)
    own: Array  # (n_sets,)


@dataclass(frozen=True, eq=False)
class Differences:
    """The factors of the products of differences, (n_rows, ...) each: of single inputs, and of sets of inputs."""

    single: tuple[Array, Array]  # D_i and E_i
    exchanged: tuple[Array, Array]  # D_T and E_T
    mixed: tuple[Array, Array]  # G_T and H_T


def each(fn: Callable[..., Array], *moments: VarianceMoments) -> VarianceMoments:
    """Apply fn to every field."""
    return VarianceMoments(*(fn(*(getattr(part, field.name) for part in moments)) for field in fields(VarianceMoments)))


def blocks(design: PickFreezeDesign) -> Iterator[slice]:
    """The rows of a design in slices that keep the arrays of their moments small."""
    n_rows, n = design.place.shape
    step = max(1, _BLOCK // (n * n + 1))
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def row_differences(values: Array, design: PickFreezeDesign, sets: tuple[InputSet, ...], rows: slice) -> Differences:
    """The differences of every row; `values` holds one number per point of the design."""
    n_rows, n = design.place.shape
    f = values.reshape(-1, n_rows)[:, rows]
    single = ((f[0] - f[2 : n + 2]).T, (f[1] - f[n + 2 : 2 * n + 2]).T)
    at: dict[InputSet, tuple[Array, Array]] = {(): (f[0], f[1])}
    at.update({(i,): (f[2 + i], f[n + 2 + i]) for i in range(n)})
    start = cost_of_a_row(n)
    at.update({t: (f[start + 2 * k], f[start + 2 * k + 1]) for k, t in enumerate(design.exchanged)})

    def columns(of_set: Callable[[InputSet, int], Array]) -> tuple[Array, Array]:
        empty = np.zeros((f.shape[1], 0))
        a, b = ([of_set(t, side) for t in sets] for side in (0, 1))
        return (np.stack(a, axis=1), np.stack(b, axis=1)) if sets else (empty, empty)

    return Differences(
        single,
        columns(lambda t, side: at[()][side] - at[t][side]),
        columns(lambda t, side: np.asarray(sum((-1) ** len(part) * at[part][side] for part in subsets(t)))),
    )


def row_moments(values: Array, design: PickFreezeDesign, sets: tuple[InputSet, ...], rows: slice) -> VarianceMoments:
    """The contribution of every row, by the formulas at the top of this file; the moments are the means over the rows.

    The fields have a leading axis for the rows.
    """
    n_rows, n = design.place.shape
    f = values.reshape(-1, n_rows)[:, rows]
    between = row_differences(values, design, sets, rows)
    d, e = between.single
    cross, both = d[:, :, None] * e[:, None, :], (d[:, :, None] * d[:, None, :] + e[:, :, None] * e[:, None, :]) / 2
    off = ~np.eye(n, dtype=bool)
    squares = (f[0] - f[1]) ** 2 + ((f[2 : n + 2] - f[n + 2 : 2 * n + 2]) ** 2).sum(0)
    sign = (-0.5) ** np.array([len(t) for t in sets])
    return VarianceMoments(
        f[: 2 * n + 2].mean(0),
        squares / (2 * n + 2),
        -d * e / 2,
        (d**2 + e**2) / 4,
        (cross + cross.transpose(0, 2, 1)) / 2 * off,
        both * off,
        _walk(f[2 * n + 2 : cost_of_a_row(n)], d - e, design.place[rows]),
        -between.exchanged[0] * between.exchanged[1] / 2,
        between.mixed[0] * between.mixed[1] * sign,
    )


def _walk(steps: Array, difference: Array, place: NDArray[np.int64]) -> Array:
    """sum over the places p = 2 .. n - 3 of (F after p steps - F after p + 1) (D_i - E_i) / 4, i the column at p.

    While column i changes, the later columns are as in A, as for D_i, and the earlier columns are as in B, as for E_i.
    """
    n_rows, n = place.shape
    moved = np.zeros((n_rows, n))  # by place
    if len(steps):
        moved[:, 2 : n - 2] = -np.diff(steps, axis=0).T
    return np.asarray(np.take_along_axis(moved, place, axis=1) * difference / 4)


def known_moments(surrogate: LegendreSurrogate, sets: tuple[InputSet, ...]) -> VarianceMoments:
    """The moments of the surrogate, whose terms have one or two inputs, in closed form."""
    n = surrogate.basis.n
    single, pair = surrogate.basis.parts(surrogate.coefficients)
    total = single + pair.sum(1)
    between = (n - 4) / n * (single + pair.sum(1) / 2) if n > 4 else np.zeros(n)
    inside = np.array([[float(j in t) for j in range(n)] for t in sets]).reshape(len(sets), n)
    return VarianceMoments(
        surrogate.coefficients[0],
        single.sum() + pair.sum() / 2,
        single,
        total,
        pair,
        pair,
        between,
        inside @ single + np.einsum("ti,ij,tj->t", inside, pair, inside) / 2,
        np.array([single[t[0]] if len(t) == 1 else pair[t] if len(t) == 2 else 0.0 for t in sets]),
    )
