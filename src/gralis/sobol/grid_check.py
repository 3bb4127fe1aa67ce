"""Does the polynomial through a grid predict F at random points? The lines that chose it may have missed some of F.

The indices on a Gauss grid are those of the polynomial M through it. With rho^2 = E (F - M)^2 / Var F, no sqrt(S_T) of
F differs from that of M by more than about 2 rho, so S_T differs by at most 4 rho sqrt(S_T) + 4 rho^2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.sobol.axis import Axis
from gralis.sobol.inputs import Marginals, uniforms
from gralis.sobol.values import PointValues

LEAST_TRIALS = 256
_TAIL = 30.0  # F may be so many times rougher between the lines than on them
_ROUNDING = 64.0
_LARGEST = 1e-3  # the largest unexpected departure that is allowed, in standard deviations of F
_MOST_WORK = 2**32  # multiplications


class UnresolvedError(GralisError):
    """The model is too rough for quadrature."""


@dataclass(frozen=True)
class GridCheck:
    """What the random points say.

    Attributes
    ----------
    n_trials : int
        The number of random points; 0 if the grid contains every point.
    excess : float
        The upper end of the root mean square of F - M beyond what the lines let expect, in units of F.
    rounding : float
        The rounding error of F, in units of F.
    """

    n_trials: int
    excess: float
    rounding: float

    def unseen(self, level: float) -> float:
        """The largest share of the inputs on which F may depart from M without a trace, at this level."""
        return -math.log(1 - level) / self.n_trials if self.n_trials else 0.0


def check_grid(
    values: PointValues, inputs: Marginals, axes: Sequence[Axis], tensor: Array, seed: int, n_trials: int
) -> GridCheck:
    """Compare the grid with F at random points; raise `UnresolvedError` if it predicts F badly."""
    if not any(axis.m for axis in axes):
        return GridCheck(0, 0.0, _ROUNDING * values.eps * float(np.abs(tensor).max()))
    n_trials = max(LEAST_TRIALS, min(n_trials, _MOST_WORK // tensor.size))
    u = uniforms(np.random.SeedSequence(seed), n_trials, inputs.n_inputs)
    at = inputs.at(u)
    actual = values(n_trials, lambda part: at[part])
    predicted = _interpolated(tensor, [axis.interpolation(u[:, j], at[:, j]) for j, axis in enumerate(axes)])
    rounding = _ROUNDING * values.eps * float(max(np.abs(actual).max(), np.abs(tensor).max()))
    expected = _TAIL * sum(axis.tail for axis in axes) + 16 * rounding
    excess = np.maximum(np.abs(actual - predicted) - expected, 0.0)
    worst = int(np.argmax(excess))
    if excess[worst] > _LARGEST * float(actual.std()):
        place = ", ".join(f"{value:.4g}" for value in at[worst])
        raise UnresolvedError(
            f"The model at ({place}) is {actual[worst]:.6g}, but the grid predicts {predicted[worst]:.6g}: it is too "
            "rough for quadrature; use method='sampling'."
        )
    upper = math.sqrt((float((excess**2).sum()) + 3 * float(excess[worst]) ** 2) / n_trials)  # three more of the worst
    return GridCheck(n_trials, upper, rounding)


def reduce(tensor: Array, functionals: Sequence[Array]) -> Array:
    """Apply one matrix to every axis; functionals[j] has the shape (n_out, n_nodes of axis j)."""
    for matrix in functionals:  # each step contracts the first axis and appends the result as the last axis
        tensor = np.tensordot(tensor, matrix, axes=([0], [1]))
    return tensor


def _interpolated(tensor: Array, weights: Sequence[Array]) -> Array:
    """The polynomial through the grid at points; weights[j] has the shape (n_points, n_nodes of axis j)."""
    first, *others = weights
    n_block = max(1, 2**22 // (tensor.size // len(tensor) + 1))
    result = np.empty(len(first))
    for start in range(0, len(result), n_block):
        part = slice(start, start + n_block)
        values = np.tensordot(first[part], tensor, axes=1)  # (n_block, nodes of axis 1, ...)
        for weight in others:
            values = np.einsum("pk,pk...->p...", weight[part], values)
        result[part] = values
    return result
