"""Exact for few inputs: F on a tensor grid of Gauss-Legendre nodes (or of the distinct values of a column).

How many nodes an input needs is read off a few lines along it: on a line F is a Legendre series, and m nodes integrate
its square up to the products of coefficients whose degrees add up to 2m or more. A kink in the middle of a range is met
by halving the range. In the end the grid must predict F at points it has not seen; where it does not, or where F is
rough on a line, quadrature is not for this model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from gralis.arrays import Array
from gralis.errors import BudgetError, GralisError, bad
from gralis.laws.law import stratified
from gralis.sobol.axis import Axis, gauss
from gralis.sobol.inputs import Column, Inputs, Marginals, uniforms
from gralis.sobol.settings import Settings
from gralis.sobol.values import Values

_TOLERANCE = 1e-11  # of the variance, for each input
_LINES = 6
_DEGREES = 32  # coefficients looked at on each line
_PANELS = (1, 2, 4)
_TRIALS = 256  # unseen points that the grid must predict
_MOST_POINTS = 2**27


class UnresolvedError(GralisError):
    """Quadrature would not be exact here."""


def grid(
    values: Values, inputs: Inputs, settings: Settings, reserve: int, at: Array | None = None
) -> tuple[list[Axis], Array] | None:
    """The axes and F on their tensor grid; None where that is not exact, or too dear, and was not asked for.

    `reserve`: what to leave of the budget for sampling instead. `at`: one more node on every axis, of weight zero.
    """
    asked = settings.method == "quadrature"
    if asked and not isinstance(inputs, Marginals):
        advice = "A sampler has no known marginals: give bounds, distributions or a data matrix."
        raise bad("method", settings.owner, "'sampling' or 'auto' with a sampler", "'quadrature'", advice)
    if settings.method == "sampling" or not isinstance(inputs, Marginals):
        return None
    limit = _MOST_POINTS
    if settings.budget is not None:
        limit = min(limit, settings.budget if asked else min(settings.budget // 2, settings.budget - reserve))
    looks = limit if asked else limit // 2
    try:
        axes = _resolve(values, inputs, limit, looks, least=1 if asked else 2, extra=int(at is not None))
        if at is not None:
            axes = [axis.with_node(x) for axis, x in zip(axes, at, strict=True)]
        tensor = _on_grid(values, [axis.nodes for axis in axes])
        _try(values, inputs, axes, tensor, settings.seed)
    except (BudgetError, UnresolvedError):
        if asked:
            raise
        return None
    return axes, tensor


def reduce(tensor: Array, functionals: Sequence[Array]) -> Array:
    """One matrix per axis applied to it: functionals[j] is (n_out, n_nodes of axis j)."""
    for matrix in functionals:  # each step takes the first axis and puts its image last
        tensor = np.tensordot(tensor, matrix, axes=([0], [1]))
    return tensor


def parts(tensor: Array, axes: Sequence[Axis]) -> tuple[float, Array]:
    """E F, and Var f_T for every T as an array (2, ..., 2), T where the index is 1.

    Along each axis F is expanded in an orthonormal basis that begins with the constant: Var f_T is the sum of squared
    coefficients that are not constant exactly along T. No subtraction, so nothing cancels.
    """
    coefficients = reduce(tensor, [_basis(axis.weights) * np.sqrt(axis.weights) for axis in axes])
    mean = float(coefficients[(0,) * len(axes)])
    squares = coefficients**2
    for _ in axes:  # as in `reduce`: first axis in, last axis out
        squares = np.stack([squares[0], squares[1:].sum(0)], axis=-1)
    squares[(0,) * len(axes)] = 0.0
    return mean, squares


def _basis(weights: Array) -> Array:
    """Orthonormal rows, the first of them sqrt(weights): a reflection that exchanges it with (1, 0, ..., 0)."""
    direction = np.sqrt(weights)
    direction[0] -= 1.0
    length = direction @ direction
    identity = np.eye(len(weights))
    return identity if length == 0 else identity - 2 * np.outer(direction, direction) / length


def _resolve(values: Values, inputs: Marginals, limit: int, looks: int, least: int, extra: int) -> list[Axis]:
    """The cheapest axes that integrate F and F^2 along every input, given up early if looks or grid are too dear."""
    counts = [len(marginal.atoms[0]) if isinstance(marginal, Column) else least for marginal in inputs.marginals]
    n_looks = sum(not isinstance(marginal, Column) for marginal in inputs.marginals)
    _require(values, counts, extra, (looks, limit), _LINES * (1 + n_looks * _DEGREES))
    rng = np.random.default_rng(0)  # the looks are part of the method, not of the sample
    at = inputs.at(np.stack([stratified(rng, _LINES) for _ in counts], axis=1))  # the lines pass through these points
    scale = _Scale(values)
    scale.see(values(_LINES, lambda part: at[part]))
    axes = []
    for j, marginal in enumerate(inputs.marginals):
        if isinstance(marginal, Column):
            axes.append(Axis.of_atoms(*marginal.atoms))
            continue
        for n_panels in _PANELS:
            _require(values, counts, extra, (looks, limit), _LINES * n_panels * _DEGREES)
            found = _along(values, inputs, j, at, n_panels, scale)
            if found is not None:
                break
        else:
            raise UnresolvedError(
                f"The model is too rough along input {j} for quadrature to be exact (kinks, steps, or rapid "
                "oscillation); use method='sampling'."
            )
        axes.append(found)
        counts[j] = len(found.nodes)
    _require(values, counts, extra, (looks, limit), 0)
    return axes


def _require(values: Values, counts: Sequence[int], extra: int, limits: tuple[int, int], n_looks: int) -> None:
    """So many more looks must stay within the first limit, with the grid and the trials within the second."""
    looked = values.n_evaluations + n_looks
    needed = looked + math.prod(count + extra for count in counts) + _TRIALS
    if looked > limits[0] or needed > limits[1]:
        raise BudgetError(
            f"Quadrature needs at least {needed} model evaluations, more than the limit of {limits[1]}; raise the "
            "budget, or use method='sampling'."
        )


class _Scale:
    """The variance seen so far, and the size of the numbers, to judge what is small."""

    def __init__(self, values: Values) -> None:
        self._values, self._largest, self.centre, self._variance = values, 0.0, 0.0, 0.0

    def see(self, found: Array) -> None:
        """Take notice of values of F."""
        self.centre = self.centre if self._largest else float(found.mean())
        self._largest = max(self._largest, float(np.abs(found).max()))
        self._variance = max(self._variance, float(found.var()))

    @property
    def small(self) -> float:
        """What is small beside the variance, or lost in rounding."""
        rounding = 64 * self._values.eps * self._largest
        return max(_TOLERANCE * self._variance, rounding * math.sqrt(self._variance), rounding**2)


def _along(values: Values, inputs: Marginals, j: int, at: Array, n_panels: int, scale: _Scale) -> Axis | None:
    """The fewest nodes on so many panels along input j that are good on every line; None: rough."""
    u, _ = gauss(_DEGREES, n_panels)
    x = inputs.marginals[j].quantile(u)

    def points(part: slice) -> Array:
        line, place = np.divmod(np.arange(part.start, part.stop), len(x))
        rows = at[line]
        rows[:, j] = x[place]
        return rows

    lines = values(_LINES * len(x), points)
    scale.see(lines)
    size = np.abs((lines - scale.centre).reshape(_LINES, n_panels, _DEGREES) @ _legendre().T)
    unseen = float((size[..., -3:].max(-1) * size.sum(-1)).max())  # what lies beyond is no larger than the last ones
    if unseen > scale.small:
        return None
    missed = np.array([_missed(size, m).mean(1).max() for m in range(1, _DEGREES)])  # by number of nodes
    good = np.flatnonzero(missed <= scale.small)
    if not len(good):
        return None
    m = int(good[0]) + 1
    return Axis.of_panels(inputs.marginals[j].quantile, m, n_panels, float(missed[m - 1]) + unseen)


def _missed(size: Array, m: int) -> Array:
    """sum over a + b >= 2m of |c_a c_b|: what m nodes may miss of F^2, per line and panel."""
    tail = np.cumsum(size[..., ::-1], axis=-1)[..., ::-1]  # sums of |c_b| over b >= k
    tail = np.concatenate([tail, np.zeros((*size.shape[:-1], 2 * m))], axis=-1)
    return np.asarray(sum(size[..., a] * tail[..., max(2 * m - a, 0)] for a in range(_DEGREES)))


def _legendre() -> Array:
    """From values at the Gauss nodes to Legendre coefficients, (_DEGREES, _DEGREES)."""
    node, weight = np.polynomial.legendre.leggauss(_DEGREES)
    basis = np.polynomial.legendre.legvander(node, _DEGREES - 1)
    return np.asarray((np.arange(_DEGREES)[:, None] + 0.5) * (basis * weight[:, None]).T)


def _on_grid(values: Values, nodes: Sequence[Array]) -> Array:
    """F at every point of the tensor grid, shaped (len(nodes[0]), len(nodes[1]), ...)."""
    shape = tuple(len(part) for part in nodes)

    def points(part: slice) -> Array:
        places = np.unravel_index(np.arange(part.start, part.stop), shape)
        return np.stack([along[place] for along, place in zip(nodes, places, strict=True)], axis=1)

    return values(math.prod(shape), points).reshape(shape)


def _try(values: Values, inputs: Marginals, axes: Sequence[Axis], tensor: Array, seed: int) -> None:
    """F at unseen points against the polynomial through the grid: no further off than a twentieth of its deviation."""
    if all(isinstance(marginal, Column) for marginal in inputs.marginals):
        return  # there are no other points
    u = uniforms(np.random.SeedSequence(seed), _TRIALS, inputs.n_inputs)
    at = inputs.at(u)
    seen = values(_TRIALS, lambda part: at[part])
    weights = [axis.interpolation(u[:, j], at[:, j]) for j, axis in enumerate(axes)]  # (n_trials, n_nodes)
    predicted = np.array(
        [reduce(tensor, [row[trial : trial + 1] for row in weights]).item() for trial in range(_TRIALS)]
    )
    off = np.abs(seen - predicted)
    worst = int(np.argmax(off))
    if off[worst] > max(0.05 * float(seen.std()), 1e3 * values.eps * float(np.abs(seen).max())):
        place = ", ".join(f"{value:.4g}" for value in at[worst])
        raise UnresolvedError(
            f"The model at ({place}) is {seen[worst]:.6g}, where the grid says {predicted[worst]:.6g}: it is too rough "
            "for quadrature to be exact; use method='sampling'."
        )
