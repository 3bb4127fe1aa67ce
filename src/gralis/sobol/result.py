"""`Sensitivity`, which `sensitivity` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from gralis.arrays import Array
from gralis.certificates.simultaneous import half_widths
from gralis.estimators.estimate import Estimate
from gralis.notebook import MOST_ROWS, InNotebooks, n_shown
from gralis.sobol.found import Found
from gralis.sobol.input_sets import InputSet

__all__ = ["Sensitivity"]

_MOST_PAIRS = 5


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity(InNotebooks):
    """Which inputs and interactions the variance of F comes from; printing it shows a table.

    `first`, `total` and `shapley` are arrays (n_inputs,). `pairs` maps (i, j), i < j, to a number; `interactions` and
    `closed` map every pair and every set in `sets` to a number. Each of them has a half-width, for example
    `first_half_width`. The half-widths of one array or mapping hold simultaneously with probability `level`, unless
    `doubts` objects.

    Attributes
    ----------
    found : Found
        The estimates with their replicates, what their half-widths have beside sampling error, and the doubts.
    sets : tuple of tuple of int
        The sets of inputs in `interactions` and `closed`: all pairs, and then the sets that were asked for.
    names : sequence of str
        The names of the inputs.
    inputs : str
        A sentence on how the inputs are distributed and what is assumed about them.
    level : float
        The probability with which the half-widths hold.
    n_evaluations : int
        How many points the model was evaluated at.

    Examples
    --------
    >>> from gralis import sensitivity
    >>> result = sensitivity(lambda z: z[:, 0] + z[:, 0] * z[:, 1], [(-1, 1), (-1, 1)])
    >>> result.first.round(6).tolist(), result.total.round(6).tolist()
    ([0.75, 0.0], [1.0, 0.25])
    """

    found: Found
    sets: tuple[InputSet, ...]
    names: Sequence[str]
    inputs: str
    level: float
    n_evaluations: int

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """All estimates with their replicates, by name: "mean", "variance", "first", "total", "pairs", ..."""
        return self.found.estimates

    @property
    def doubts(self) -> tuple[str, ...]:
        """Sentences that say why the half-widths may not hold; empty if nothing objects."""
        return self.found.doubts

    @property
    def exact(self) -> bool:
        """Whether F was evaluated at every point that the inputs can take, so that only rounding is left."""
        return self.found.enumerated

    @property
    def quadrature_error(self) -> float | None:
        """The largest error that quadrature and rounding may make in an index; None if F was sampled."""
        if self.found.unseen is None:
            return None
        return float(max(self.found.margins[name].max() for name in ("first", "total", "shapley")))

    @property
    def n_inputs(self) -> int:
        """The number of inputs."""
        return len(self.names)

    @property
    def mean(self) -> float:
        """E F."""
        return float(self.estimates["mean"].values[0])

    @property
    def variance(self) -> float:
        """Var F."""
        return float(self.estimates["variance"].values[0])

    @property
    def first(self) -> Array:
        """S_i = Var E[F | x_i] / Var F."""
        return self.estimates["first"].values

    @property
    def total(self) -> Array:
        """S^tot_i = E Var[F | all inputs except x_i] / Var F: the share of all terms that x_i takes part in."""
        return self.estimates["total"].values

    @property
    def shapley(self) -> Array:
        """Shapley effects: each interaction is shared equally among its inputs, so the effects sum to one."""
        return self.estimates["shapley"].values

    @cached_property
    def pairs(self) -> Mapping[tuple[int, int], float]:
        """S_ij = Var f_ij / Var F: the share of the interaction of the two inputs alone."""
        return self._by_pair(self.estimates["pairs"].values)

    @cached_property
    def interactions(self) -> Mapping[InputSet, float]:
        """S_T = Var f_T / Var F for every T in `sets`: the share of the interaction of all inputs of T."""
        return self._by_set(self.estimates["interactions"].values)

    @cached_property
    def closed(self) -> Mapping[InputSet, float]:
        """S^closed_T = Var E[F | x_T] / Var F for every T in `sets`: the sum of S_L over the subsets L of T."""
        return self._by_set(self.estimates["closed"].values)

    @cached_property
    def mean_half_width(self) -> float:
        """The half-width of `mean`."""
        return float(self._half("mean")[0])

    @cached_property
    def variance_half_width(self) -> float:
        """The half-width of `variance`."""
        return float(self._half("variance")[0])

    @cached_property
    def first_half_width(self) -> Array:
        """The half-widths of `first`."""
        return self._half("first")

    @cached_property
    def total_half_width(self) -> Array:
        """The half-widths of `total`."""
        return self._half("total")

    @cached_property
    def shapley_half_width(self) -> Array:
        """The half-widths of `shapley`."""
        return self._half("shapley")

    @cached_property
    def pairs_half_width(self) -> Mapping[tuple[int, int], float]:
        """The half-widths of `pairs`."""
        return self._by_pair(self._half("pairs"))

    @cached_property
    def interactions_half_width(self) -> Mapping[InputSet, float]:
        """The half-widths of `interactions`."""
        return self._by_set(self._half("interactions"))

    @cached_property
    def closed_half_width(self) -> Mapping[InputSet, float]:
        """The half-widths of `closed`."""
        return self._by_set(self._half("closed"))

    def to_dict(self) -> dict[str, Any]:
        """Everything that the table shows as plain numbers and text; JSON can store it.

        Returns
        -------
        dict
            Names, values and half-widths. The keys of `pairs`, `interactions` and `closed` join names by " x ".
        """
        result: dict[str, Any] = {
            "names": list(self.names),
            "inputs": self.inputs,
            "level": self.level,
            "exact": self.exact,
            "n_evaluations": self.n_evaluations,
            "quadrature_error": self.quadrature_error,
            "doubts": list(self.doubts),
        }
        for name in self.estimates:
            for key in (name, f"{name}_half_width"):
                value = getattr(self, key)
                if isinstance(value, Mapping):
                    value = {self._label(t): number for t, number in value.items()}
                result[key] = value.tolist() if isinstance(value, np.ndarray) else value
        return result

    def _half(self, name: str) -> Array:
        return half_widths(self.estimates[name], self.level) + self.found.margins[name]

    def _by_pair(self, values: Array) -> dict[tuple[int, int], float]:
        return dict(zip(combinations(range(self.n_inputs), 2), values.tolist(), strict=True))

    def _by_set(self, values: Array) -> dict[InputSet, float]:
        return dict(zip(self.sets, values.tolist(), strict=True))

    def _label(self, t: InputSet) -> str:
        return " x ".join(self.names[i] for i in t)

    def _frame_columns(self) -> Mapping[str, Any]:
        columns: dict[str, Any] = {"input": list(self.names)}
        for name in ("first", "total", "shapley"):
            columns |= {name: getattr(self, name), f"{name}_half_width": getattr(self, f"{name}_half_width")}
        return columns

    def __repr__(self) -> str:
        order = np.argsort(-self.total, kind="stable")[: n_shown(self.n_inputs)]
        width = max([5, *(len(self.names[int(i)]) for i in order)])
        how = self.found.words(self.level)
        mean = plus_minus(self.mean, 0.0 if self.exact else self.mean_half_width)
        variance = plus_minus(self.variance, 0.0 if self.exact else self.variance_half_width)
        lines = [
            f"Sensitivity of {self.n_inputs} inputs, {how}, {self.n_evaluations} model evaluations",
            f"E F = {mean}   Var F = {variance}",
            "",
            f"{'input':<{width}}  {'first':>17}  {'total':>17}  {'Shapley':>17}",
        ]
        shown = [(getattr(self, name), getattr(self, f"{name}_half_width")) for name in ("first", "total", "shapley")]
        for i in order:
            cells = "  ".join(f"{self._cell(value[i], half[i]):>17}" for value, half in shown)
            lines.append(f"{self.names[int(i)]:<{width}}  {cells}")
        if len(order) < self.n_inputs:
            lines.append(f"({self.n_inputs - len(order)} more)")
        lines += ["", *self._set_lines()]
        lines.append(f"inputs: {self.inputs}")
        return "\n".join([*lines, *self.found.notes(self.level)])

    def _cell(self, value: float, half: float) -> str:
        value = value + 0.0 if abs(value) >= 5e-5 else 0.0  # avoids -0.0000
        return f"{value:.4f}" if self.exact else f"{value:.4f} +- {half:.1e}"

    def _set_lines(self) -> list[str]:
        largest = sorted(self.pairs, key=lambda pair: -self.pairs[pair])[:_MOST_PAIRS]
        cells = [f"{self._label(t)} {self._cell(self.pairs[t], self.pairs_half_width[t])}" for t in largest]
        lines = [f"largest pairs: {', '.join(cells)}"] if largest else []
        for t in self.sets[len(self.pairs) :][:MOST_ROWS]:
            own = self._cell(self.interactions[t], self.interactions_half_width[t])
            lines.append(f"{self._label(t)}: {own}, closed {self._cell(self.closed[t], self.closed_half_width[t])}")
        lines.append(f"main effects explain {self.first.sum():.1%} of the variance, interactions the rest")
        return lines


def plus_minus(value: float, half: float) -> str:
    """A number as text, with its half-width unless that is 0."""
    return f"{value:.6g}" if half == 0 else f"{value:.6g} +- {half:.2g}"
