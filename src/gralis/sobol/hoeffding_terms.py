"""`hoeffding`: the terms of F(x) = E F + sum over T of f_T(x), what each set of inputs adds at one x."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, Literal

import numpy as np
import torch

from gralis.arrays import Array, describe, to_numpy
from gralis.certificates.simultaneous import half_widths
from gralis.checks import whole
from gralis.errors import bad
from gralis.estimators.estimate import Estimate
from gralis.notebook import InNotebooks, n_shown
from gralis.sobol import quadrature
from gralis.sobol.found import Found, without_sampling
from gralis.sobol.input_sets import InputSet, subsets
from gralis.sobol.inputs import Inputs, resolve
from gralis.sobol.result import plus_minus
from gralis.sobol.settings import Settings
from gralis.sobol.values import PointValues
from gralis.targets import Target

__all__ = ["Hoeffding", "hoeffding"]


def hoeffding(
    model: object,
    x: object,
    sampler: object,
    *,
    target: Target = None,
    max_order: int = 2,
    method: Literal["auto", "quadrature", "sampling"] = "auto",
    budget: int | None = 2**14,
    level: float = 0.95,
    replicates: int | None = None,
    seed: int | None = 0,
    names: Sequence[str] | None = None,
    batch_size: int | Literal["auto"] = "auto",
    device: torch.device | str | None = None,
    dtype: torch.dtype | None = None,
) -> Hoeffding:
    """f_T(x) = sum over A within T of (-1)^(|T| - |A|) E[F(x_A, X_rest)]: the terms of F at x, up to max_order inputs.

    The terms are the Moebius coefficients of the game v(T) = E[F(x_T, X_rest)] - E F, whose baseline is averaged over
    the distribution of the inputs. Var f_T / Var F is the Sobol index of T.

    Parameters
    ----------
    model : object
        Any model that `explain` takes, evaluated at points (rows, n_inputs). It needs no gradients.
    x : array
        The input at which the terms are computed, one number per input of the model.
    sampler : list, tuple, array or callable
        How the inputs are distributed: bounds or distributions, data, or a function, as in `sensitivity`.
    target : int, tuple or callable, optional
        Which output of the model is F, as in `explain`. A model with one output needs no target.
    max_order : int, default=2
        The largest number of inputs in a term.
    method : {"auto", "quadrature", "sampling"}, default="auto"
        How the averages are computed, as in `sensitivity`.
    budget : int or None, default=16384
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
    Hoeffding
        The terms with their half-widths; printing it shows a table.

    Examples
    --------
    >>> result = hoeffding(lambda z: z[:, 0] * z[:, 1], [1.0, 1.0], [(0, 1), (0, 1)])
    >>> {t: round(f, 12) for t, f in result.terms.items()}, round(result.mean, 12)
    ({(0,): 0.25, (1,): 0.25, (0, 1): 0.25}, 0.25)
    """
    settings = Settings.check("hoeffding", method, budget, level, replicates, seed, batch_size)
    inputs, labels = resolve(sampler, names, "hoeffding")
    point = _point(x, inputs.n_inputs)
    largest = min(whole(max_order, "max_order", 1, "hoeffding"), inputs.n_inputs)
    sets = [t for size in range(1, largest + 1) for t in combinations(range(inputs.n_inputs), size)]
    values = PointValues(model, target, inputs.n_inputs, settings.batch_size, device, dtype)
    with values.session():
        f_x = float(values(1, lambda part: point[None])[0])
        open_sets = [t for t in [(), *sets] if len(t) < len(point)]  # for the full set there is nothing to average
        grid = quadrature.grid(values, inputs, settings, settings.least(len(open_sets)) + 1, point)
        if grid is not None:
            found = _on_grid(grid, sets, settings.level)
        else:
            averages = _averages(values, inputs, settings, point, open_sets)
            estimates = {
                "mean": Estimate.mean(averages[:, :1], "sampling"),
                "terms": _terms(averages, open_sets, f_x, sets),
            }
            margins = {name: np.zeros(len(estimate.values)) for name, estimate in estimates.items()}
            found = Found(estimates, margins, (), False, None)
    return Hoeffding(found, tuple(sets), f_x, labels, inputs.words, settings.level, values.n_evaluations)


@dataclass(frozen=True, eq=False, repr=False)
class Hoeffding(InNotebooks):
    """f_T(x) for every set T of at most max_order inputs; printing it shows a table.

    Attributes
    ----------
    found : Found
        The estimates of E F ("mean") and of the terms ("terms", in the order of `sets`) with their replicates, and what
        their half-widths have beside sampling error.
    sets : tuple of tuple of int
        The sets T, each with its inputs in increasing order.
    f_x : float
        F(x).
    names : sequence of str
        The names of the inputs.
    inputs : str
        A sentence on how the inputs are distributed and what is assumed about them.
    level : float
        The probability with which the half-widths of all terms hold simultaneously.
    n_evaluations : int
        How many points the model was evaluated at.
    """

    found: Found
    sets: tuple[InputSet, ...]
    f_x: float
    names: Sequence[str]
    inputs: str
    level: float
    n_evaluations: int

    @property
    def exact(self) -> bool:
        """Whether F was evaluated at every point that the inputs can take, so that only rounding is left."""
        return self.found.enumerated

    @property
    def doubts(self) -> tuple[str, ...]:
        """Sentences that say why the half-widths may not hold; empty if nothing objects."""
        return self.found.doubts

    @property
    def terms_estimate(self) -> Estimate:
        """The estimate of the terms with its replicates, in the order of `sets`."""
        return self.found.estimates["terms"]

    @cached_property
    def terms(self) -> Mapping[InputSet, float]:
        """f_T(x) by T, a tuple of input numbers in increasing order."""
        return dict(zip(self.sets, self.terms_estimate.values.tolist(), strict=True))

    @cached_property
    def half_width(self) -> Mapping[InputSet, float]:
        """The half-width of every term."""
        return dict(zip(self.sets, self._half("terms").tolist(), strict=True))

    @property
    def mean(self) -> float:
        """E F."""
        return float(self.found.estimates["mean"].values[0])

    @cached_property
    def mean_half_width(self) -> float:
        """The half-width of `mean`."""
        return float(self._half("mean")[0])

    def _half(self, name: str) -> Array:
        return half_widths(self.found.estimates[name], self.level) + self.found.margins[name]

    @property
    def remainder(self) -> float:
        """F(x) - E F - the sum of the terms: the contribution of sets with more than max_order inputs."""
        return float(self.f_x - self.mean - self.terms_estimate.values.sum())

    def _frame_columns(self) -> Mapping[str, Any]:
        half = half_widths(self.terms_estimate, self.level) + self.found.margins["terms"]
        labels = [" x ".join(self.names[i] for i in t) for t in self.sets]
        return {"inputs": labels, "term": self.terms_estimate.values, "half_width": half}

    def __repr__(self) -> str:
        shown = 0.0 if self.exact else 1.0
        lines = [
            f"Hoeffding terms at x, {self.found.words(self.level)}, {self.n_evaluations} model evaluations",
            f"F(x) = {self.f_x:.6g}   E F = {plus_minus(self.mean, shown * self.mean_half_width)}",
            "",
        ]
        order = sorted(self.sets, key=lambda t: -abs(self.terms[t]))[: n_shown(len(self.sets))]
        labels = [" x ".join(self.names[i] for i in t) for t in order]
        width = max(len(label) for label in labels)
        for t, label in zip(order, labels, strict=True):
            lines.append(f"{label:<{width}}  {plus_minus(self.terms[t], shown * self.half_width[t])}")
        if len(order) < len(self.sets):
            lines.append(f"({len(self.sets) - len(order)} more)")
        lines.append(f"larger sets of inputs  {self.remainder:.6g}")
        lines.append(f"inputs: {self.inputs}")
        return "\n".join([*lines, *self.found.notes(self.level)])


def _on_grid(grid: quadrature.Grid, sets: list[InputSet], level: float) -> Found:
    """Along each axis, take either the mean over the nodes, or the value at x (the last node) minus that mean."""
    axes = grid.axes
    here = [np.eye(len(axis.nodes))[-1] for axis in axes]
    functionals = [np.stack([axis.weights, x - axis.weights]) for axis, x in zip(axes, here, strict=True)]
    terms = quadrature.reduce(grid.tensor, functionals)  # (2, ..., 2); the index is 1 at the members of T
    values = np.array([terms[tuple(int(j in t) for j in range(len(axes)))] for t in sets])
    deviation = math.sqrt(max(float(quadrature.parts(grid.tensor, axes)[1].sum()), 0.0))
    error = grid.check.excess + (grid.error(deviation**2) * deviation if deviation else grid.check.rounding)
    estimates = {"mean": without_sampling(terms[(0,) * len(axes)].reshape(1)), "terms": without_sampling(values)}
    margins = {"mean": np.array([error]), "terms": np.array([2.0 ** len(t) * error for t in sets])}
    return Found(estimates, margins, (), grid.enumerated, grid.check.unseen(level))


def _averages(values: PointValues, inputs: Inputs, settings: Settings, x: Array, open_sets: list[InputSet]) -> Array:
    """E[F(x_A, X_rest)] for every A, (n_replicates, n_open_sets); all A use the same rows."""
    fixed = np.array([[j in t for j in range(len(x))] for t in open_sets])
    n_replicates, n_rows = settings.split(len(open_sets), values.n_evaluations)
    averages = np.empty((n_replicates, len(open_sets)))
    for row, seed in zip(averages, np.random.SeedSequence(settings.seed).spawn(n_replicates), strict=True):
        table = inputs.tables(seed, n_rows, 1).points[0]

        def points(part: slice, table: Array = table) -> Array:
            which, place = np.divmod(np.arange(part.start, part.stop), n_rows)
            return np.asarray(np.where(fixed[which], x, table[place]))

        row[:] = values(len(open_sets) * n_rows, points).reshape(-1, n_rows).mean(1)
    return averages


def _terms(averages: Array, open_sets: list[InputSet], f_x: float, sets: list[InputSet]) -> Estimate:
    """The terms by inclusion and exclusion in every replicate."""
    column: dict[InputSet, Any] = dict(zip(open_sets, averages.T, strict=True))
    terms = [_moebius(lambda a: column.get(a, f_x), t) for t in sets]  # only the full set has no column
    return Estimate.mean(np.stack(terms, axis=1), "sampling")


def _moebius(value: Callable[[InputSet], Any], t: InputSet) -> Any:
    """sum over A within T of (-1)^(|T| - |A|) value(A)."""
    return sum((-1) ** (len(t) - len(a)) * value(a) for a in subsets(t))


def _point(x: object, n: int) -> Array:
    """The user's x as an array of n finite numbers."""
    try:
        point = to_numpy(x)
    except (TypeError, ValueError, RuntimeError):
        point = np.array(None)
    if point.dtype.kind not in "biuf" or point.shape != (n,):
        got = describe(x) if point.dtype.kind not in "biuf" else f"shape {point.shape}"
        raise bad("x", "hoeffding", f"one number per input, shape ({n},)", got)
    if not np.isfinite(point).all():
        place = int(np.flatnonzero(~np.isfinite(point))[0])
        raise bad("x", "hoeffding", "finite", f"{point[place]} at index {place}")
    return point.astype(np.float64)
