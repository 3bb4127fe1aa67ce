"""Indices for few inputs: F on a tensor grid of Gauss-Legendre nodes (or of the distinct values of a column).

A few lines along an input show how many nodes it needs: on a line F is a Legendre series, and m nodes integrate its
square up to the products of coefficients whose degrees add up to 2m or more. For a kink in the middle of the range, the
range is halved. At the end the grid must predict F at random points (`grid_check`). If it does not, or if F is rough on
a line, F has to be sampled. If every input is discrete, the grid contains every point, and only rounding is left.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gralis.arrays import Array
from gralis.errors import BudgetError, bad
from gralis.laws.law import stratified
from gralis.sobol.axis import Axis, gauss
from gralis.sobol.grid_check import LEAST_TRIALS, GridCheck, UnresolvedError, check_grid, reduce
from gralis.sobol.inputs import Column, Inputs, Marginals
from gralis.sobol.settings import Settings
from gralis.sobol.values import PointValues

_TOLERANCE = 1e-11  # the error allowed for each input, as a share of the variance
_LINES = 6  # along each input
_DEGREES = 32  # the Legendre coefficients computed on each line
_PANELS = (1, 2, 4)
_MOST_POINTS = 2**27
_MOST_TRIALS = 2**14

__all__ = ["Grid", "UnresolvedError", "grid", "parts", "reduce"]


@dataclass(frozen=True, eq=False)
class Grid:
    """F on a tensor grid: the axes, the values, and what is known about the error."""

    axes: list[Axis]
    tensor: Array
    check: GridCheck

    @property
    def enumerated(self) -> bool:
        """Whether the grid contains every point that the inputs can take."""
        return not any(axis.m for axis in self.axes)

    def error(self, variance: float) -> float:
        """The error of quadrature and rounding as a share of the variance, if F is as smooth as on the lines."""
        return 2 * sum(axis.missed for axis in self.axes) / variance + self.check.rounding / math.sqrt(variance)


def grid(values: PointValues, inputs: Inputs, settings: Settings, reserve: int, at: Array | None = None) -> Grid | None:
    """F on a tensor grid; None if method="auto" and the grid does not resolve F or is too expensive.

    `reserve` is the part of the budget that must remain for sampling. `at` adds a node of weight zero to every axis.
    """
    required = settings.method == "quadrature"
    if required and not isinstance(inputs, Marginals):
        advice = "A sampler has no known marginals: give bounds, distributions or a data matrix."
        raise bad("method", settings.owner, "'sampling' or 'auto' with a sampler", "'quadrature'", advice)
    if settings.method == "sampling" or not isinstance(inputs, Marginals):
        return None
    limit = _MOST_POINTS
    if settings.budget is not None:
        limit = min(limit, settings.budget if required else min(settings.budget // 2, settings.budget - reserve))
    line_limit = limit if required else limit // 2
    try:
        axes = _resolve(values, inputs, (line_limit, limit), least=1 if required else 2, extra=int(at is not None))
        if at is not None:
            axes = [axis.with_node(x) for axis, x in zip(axes, at, strict=True)]
        tensor = _on_grid(values, [axis.nodes for axis in axes])
        wanted = _MOST_TRIALS if settings.budget is None else settings.budget // 4
        n_trials = max(LEAST_TRIALS, min(limit - values.n_evaluations, wanted))
        return Grid(axes, tensor, check_grid(values, inputs, axes, tensor, settings.seed, n_trials))
    except (BudgetError, UnresolvedError):
        if required:
            raise
        return None


def parts(tensor: Array, axes: Sequence[Axis]) -> tuple[float, Array]:
    """E F, and Var f_T for every T as an array (2, ..., 2), whose index is 1 at the members of T.

    Along each axis F is expanded in an orthonormal basis that begins with the constant. Var f_T is the sum of the
    squared coefficients that belong to the constant exactly on the axes outside T. Nothing is subtracted, so nothing
    cancels.
    """
    coefficients = reduce(tensor, [_basis(axis.weights) * np.sqrt(axis.weights) for axis in axes])
    mean = float(coefficients[(0,) * len(axes)])
    squares = coefficients**2
    for _ in axes:  # as in `reduce`, from the first axis to the last
        squares = np.stack([squares[0], squares[1:].sum(0)], axis=-1)
    squares[(0,) * len(axes)] = 0.0
    return mean, squares


def _basis(weights: Array) -> Array:
    """Orthonormal rows that begin with sqrt(weights): the reflection that exchanges it with (1, 0, ..., 0)."""
    direction = np.sqrt(weights)
    direction[0] -= 1.0
    length = direction @ direction
    identity = np.eye(len(weights))
    return identity if length == 0 else identity - 2 * np.outer(direction, direction) / length


def _resolve(values: PointValues, inputs: Marginals, limits: tuple[int, int], least: int, extra: int) -> list[Axis]:
    """The smallest axes that integrate F and F^2 along every input; raises early if the limits are too low."""
    counts = [len(marginal.atoms[0]) if isinstance(marginal, Column) else least for marginal in inputs.marginals]
    n_continuous = sum(not isinstance(marginal, Column) for marginal in inputs.marginals)
    _require(values, counts, extra, limits, _LINES * (1 + n_continuous * _DEGREES))
    rng = np.random.default_rng(0)  # the lines are part of the method, not of the sample
    at = inputs.at(np.stack([stratified(rng, _LINES) for _ in counts], axis=1))  # the lines pass through these points
    scale = _Magnitude(values)
    scale.include(values(_LINES, lambda part: at[part]))
    axes = []
    for j, marginal in enumerate(inputs.marginals):
        if isinstance(marginal, Column):
            axes.append(Axis.of_atoms(*marginal.atoms))
            continue
        for n_panels in _PANELS:
            _require(values, counts, extra, limits, _LINES * n_panels * _DEGREES)
            axis = _along(values, inputs, j, at, n_panels, scale)
            if axis is not None:
                break
        else:
            raise UnresolvedError(
                f"The model is too rough along input {j} for quadrature to be exact (kinks, steps, or rapid "
                "oscillation); use method='sampling'."
            )
        axes.append(axis)
        counts[j] = len(axis.nodes)
    _require(values, counts, extra, limits, 0)
    return axes


def _require(values: PointValues, counts: Sequence[int], extra: int, limits: tuple[int, int], n_points: int) -> None:
    """Require that n_points more on lines fit into the first limit, and the grid and the trials into the second."""
    on_lines = values.n_evaluations + n_points
    needed = on_lines + math.prod(count + extra for count in counts) + LEAST_TRIALS
    if on_lines > limits[0] or needed > limits[1]:
        raise BudgetError(
            f"Quadrature needs at least {needed} model evaluations, more than the limit of {limits[1]}; raise the "
            "budget, or use method='sampling'."
        )


class _Magnitude:
    """The variance and the size of the values of F so far, which decide what is negligible."""

    def __init__(self, values: PointValues) -> None:
        self._values, self._largest, self.centre, self._variance = values, 0.0, 0.0, 0.0

    def include(self, outputs: Array) -> None:
        """Include more values of F."""
        self.centre = self.centre if self._largest else float(outputs.mean())
        self._largest = max(self._largest, float(np.abs(outputs).max()))
        self._variance = max(self._variance, float(outputs.var()))

    @property
    def negligible(self) -> float:
        """The error that is negligible beside the variance or below rounding."""
        rounding = 64 * self._values.eps * self._largest
        return max(_TOLERANCE * self._variance, rounding * math.sqrt(self._variance), rounding**2)


def _along(values: PointValues, inputs: Marginals, j: int, at: Array, n_panels: int, scale: _Magnitude) -> Axis | None:
    """The fewest nodes on n_panels panels along input j that suffice on every line; None if F is too rough."""
    u, _ = gauss(_DEGREES, n_panels)
    x = inputs.marginals[j].quantile(u)

    def points(part: slice) -> Array:
        line, place = np.divmod(np.arange(part.start, part.stop), len(x))
        rows = at[line]
        rows[:, j] = x[place]
        return rows

    lines = values(_LINES * len(x), points)
    scale.include(lines)
    size = np.abs((lines - scale.centre).reshape(_LINES, n_panels, _DEGREES) @ _legendre().T)
    # Coefficients beyond the last degree are taken to be no larger than the last three.
    unseen = float((size[..., -3:].max(-1) * size.sum(-1)).max())
    if unseen > scale.negligible:
        return None
    missed = np.array([_missed(size, m).mean(1).max() for m in range(1, _DEGREES)])  # for m = 1, 2, ... nodes
    good = np.flatnonzero(missed <= scale.negligible)
    if not len(good):
        return None
    m = int(good[0]) + 1
    tail = float(size[..., m:].sum(-1).max())
    return Axis.of_panels(inputs.marginals[j].quantile, m, n_panels, float(missed[m - 1]) + unseen, tail)


def _missed(size: Array, m: int) -> Array:
    """sum over a + b >= 2m of |c_a c_b|: the error that m nodes may make in F^2, per line and panel."""
    tail = np.cumsum(size[..., ::-1], axis=-1)[..., ::-1]  # sums of |c_b| over b >= k
    tail = np.concatenate([tail, np.zeros((*size.shape[:-1], 2 * m))], axis=-1)
    return np.asarray(sum(size[..., a] * tail[..., max(2 * m - a, 0)] for a in range(_DEGREES)))


def _legendre() -> Array:
    """The matrix (_DEGREES, _DEGREES) from values at the Gauss nodes to Legendre coefficients."""
    node, weight = np.polynomial.legendre.leggauss(_DEGREES)
    basis = np.polynomial.legendre.legvander(node, _DEGREES - 1)
    return np.asarray((np.arange(_DEGREES)[:, None] + 0.5) * (basis * weight[:, None]).T)


def _on_grid(values: PointValues, nodes: Sequence[Array]) -> Array:
    """F at every point of the tensor grid, shaped (len(nodes[0]), len(nodes[1]), ...)."""
    shape = tuple(len(part) for part in nodes)

    def points(part: slice) -> Array:
        places = np.unravel_index(np.arange(part.start, part.stop), shape)
        return np.stack([along[place] for along, place in zip(nodes, places, strict=True)], axis=1)

    return values(math.prod(shape), points).reshape(shape)
