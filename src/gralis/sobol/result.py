"""`Sensitivity`, which `sensitivity` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from gralis.arrays import Array
from gralis.certificates.simultaneous import half_widths
from gralis.estimators.estimate import Estimate

__all__ = ["Sensitivity"]

_MOST_ROWS = 15
_MOST_PAIRS = 5


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity:
    """Which inputs and interactions the variance of F comes from; printing it shows a table.

    `first`, `total` and `shapley` are arrays (n_inputs,); `pairs` and `closed` map (i, j), i < j, to a number.
    Each of them has a half-width, for example `first_half_width`. The half-widths of one array or mapping hold
    simultaneously with probability `level`; they are 0 if the indices are exact.

    Attributes
    ----------
    estimates : mapping of str to Estimate
        All estimates with their replicates: "mean", "variance", "first", "total", "pairs", "closed", "shapley".
    names : sequence of str
        The names of the inputs.
    inputs : str
        A sentence on how the inputs are distributed and what is assumed about them.
    level : float
        The probability with which the half-widths hold.
    n_evaluations : int
        How many points the model was evaluated at.
    quadrature_error : float or None
        The estimated quadrature error of the indices; None if they were sampled.

    Examples
    --------
    >>> from gralis import sensitivity
    >>> result = sensitivity(lambda z: z[:, 0] + z[:, 0] * z[:, 1], [(-1, 1), (-1, 1)])
    >>> result.first.round(6).tolist(), result.total.round(6).tolist()
    ([0.75, 0.0], [1.0, 0.25])
    """

    estimates: Mapping[str, Estimate]
    names: Sequence[str]
    inputs: str
    level: float
    n_evaluations: int
    quadrature_error: float | None

    @property
    def exact(self) -> bool:
        """Whether the indices have no sampling error."""
        return self.estimates["first"].exact

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
    def closed(self) -> Mapping[tuple[int, int], float]:
        """S^closed_ij = Var E[F | x_i, x_j] / Var F = S_i + S_j + S_ij."""
        return self._by_pair(self.estimates["closed"].values)

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
    def closed_half_width(self) -> Mapping[tuple[int, int], float]:
        """The half-widths of `closed`."""
        return self._by_pair(self._half("closed"))

    def _half(self, name: str) -> Array:
        return half_widths(self.estimates[name], self.level)

    def _by_pair(self, values: Array) -> dict[tuple[int, int], float]:
        return dict(zip(combinations(range(self.n_inputs), 2), values.tolist(), strict=True))

    def __repr__(self) -> str:
        order = np.argsort(-self.total, kind="stable")[:_MOST_ROWS]
        width = max([5, *(len(self.names[int(i)]) for i in order)])
        how = "exact by quadrature" if self.exact else f"sampled, {self.level:.0%} intervals"
        mean = plus_minus(self.mean, self.mean_half_width)
        variance = plus_minus(self.variance, self.variance_half_width)
        lines = [
            f"Sensitivity of {self.n_inputs} inputs, {how}, {self.n_evaluations} model evaluations",
            f"E F = {mean}   Var F = {variance}",
            "",
            f"{'input':<{width}}  {'first':>17}  {'total':>17}  {'Shapley':>17}",
        ]
        shown = [(getattr(self, name), getattr(self, f"{name}_half_width")) for name in ("first", "total", "shapley")]
        for i in order:
            cells = "  ".join(f"{_index(value[i], half[i]):>17}" for value, half in shown)
            lines.append(f"{self.names[int(i)]:<{width}}  {cells}")
        if len(order) < self.n_inputs:
            lines.append(f"({self.n_inputs - len(order)} more)")
        lines += ["", *self._pair_lines()]
        lines.append(f"inputs: {self.inputs}")
        return "\n".join(lines)

    def _pair_lines(self) -> list[str]:
        largest = sorted(self.pairs, key=lambda pair: -self.pairs[pair])[:_MOST_PAIRS]
        lines = []
        if largest:
            cells = (
                f"{self.names[i]} x {self.names[j]} {_index(self.pairs[i, j], self.pairs_half_width[i, j])}"
                for i, j in largest
            )
            lines.append(f"largest pairs: {', '.join(cells)}")
        lines.append(f"main effects explain {self.first.sum():.1%} of the variance, interactions the rest")
        return lines


def exactly(values: Array) -> Estimate:
    """An estimate without sampling error."""
    return Estimate(values, np.zeros((0, len(values))), "quadrature", exact=True)


def plus_minus(value: float, half: float) -> str:
    """A number as text, with its half-width unless that is 0."""
    return f"{value:.6g}" if half == 0 else f"{value:.6g} +- {half:.2g}"


def _index(value: float, half: float) -> str:
    value = value + 0.0 if abs(value) >= 5e-5 else 0.0  # avoids -0.0000
    return f"{value:.4f}" if half == 0 else f"{value:.4f} +- {half:.1e}"
