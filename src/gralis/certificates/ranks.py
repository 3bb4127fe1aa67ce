"""Which feature is larger: simultaneous intervals for phi_i - phi_j, and the ranks that they allow.

Feature i is surely above feature j if the interval of phi_i - phi_j lies above zero. For ranks by magnitude,
|phi_i| > |phi_j| means that phi_i - phi_j and phi_i + phi_j have the same sign, so the intervals of all differences and
sums must hold together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.certificates.simultaneous import half_widths
from gralis.errors import GralisError, bad
from gralis.estimators import Estimate
from gralis.notebook import InNotebooks, more, n_shown

_MOST_FEATURES = 1000


@dataclass(frozen=True, eq=False)
class Ranks(InNotebooks):
    """The ranks that each feature may have; 1 is the first. All statements hold together with probability `level`.

    Attributes
    ----------
    names : sequence of str
        The names of the features.
    values : array of shape (n_features,)
        phi.
    lowest, highest : array of shape (n_features,)
        The best and the worst rank that each feature may have.
    above : array of bool of shape (n_features, n_features)
        above[i, j] says that feature i is surely ranked above feature j.
    difference, difference_half_width : array of shape (n_features, n_features)
        phi_i - phi_j and its simultaneous half-width.
    by : {"magnitude", "value"}
        What the ranks compare.
    level : float
        The probability with which all statements hold together.
    """

    names: Sequence[str]
    values: Array
    lowest: NDArray[np.int64]
    highest: NDArray[np.int64]
    above: NDArray[np.bool_]
    difference: Array
    difference_half_width: Array
    by: str
    level: float

    def top(self, k: int) -> tuple[list[str], list[str]]:
        """The features that are surely among the first k, and those that may be: a confidence set for the top k.

        Parameters
        ----------
        k : int
            How many ranks count as the top.

        Returns
        -------
        tuple of two lists of str
            The names of the sure features, and the names of the possible features.
        """
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= len(self.values):
            raise bad("k", "Ranks.top", f"a whole number from 1 to {len(self.values)}", repr(k))
        sure, possible = np.flatnonzero(self.highest <= k), np.flatnonzero(self.lowest <= k)
        return [self.names[int(i)] for i in sure], [self.names[int(i)] for i in possible]

    def _frame_columns(self) -> Mapping[str, Any]:
        return {"feature": list(self.names), "value": self.values, "lowest": self.lowest, "highest": self.highest}

    def __repr__(self) -> str:
        score = np.abs(self.values) if self.by == "magnitude" else self.values
        order = np.argsort(-score, kind="stable")[: n_shown(len(score))]
        width = max([7, *(len(self.names[int(i)]) for i in order)])
        lines = [f"ranks by {self.by}, all of them together at {self.level:.4g}"]
        lines += [f"{'feature':<{width}}  {'phi':>11}  rank"]
        for i in order:
            low, high = int(self.lowest[i]), int(self.highest[i])
            rank = f"{low}" if low == high else f"{low} to {high}"
            lines.append(f"{self.names[int(i)]:<{width}}  {self.values[i]:>11.5g}  {rank}")
        return "\n".join([*lines, *more(len(score), len(order))])


def ranks(
    estimate: Estimate, names: Sequence[str], level: float, price: float, by: Literal["magnitude", "value"]
) -> Ranks:
    """The possible ranks of every feature, from simultaneous intervals for all pairs."""
    if not isinstance(by, str) or by not in ("magnitude", "value"):
        raise bad("by", "ranks", "'magnitude' or 'value'", repr(by))
    n = len(estimate.values)
    if n > _MOST_FEATURES:
        raise GralisError(f"ranks compares all pairs of up to {_MOST_FEATURES} features; here n_features = {n}.")
    first, second = np.triu_indices(n, 1)
    signs = (-1, 1) if by == "magnitude" else (-1,)
    pairs = Estimate.beside([_pairs(estimate, first, second, sign) for sign in signs])
    half = np.zeros(0) if n == 1 else half_widths(pairs, 1 - (1 - level) / price)
    sure = np.where(np.abs(pairs.values) > half, np.sign(pairs.values), 0.0)
    n_pairs = len(first)
    sign_above = sure[:n_pairs] if by == "value" else sure[:n_pairs] * sure[n_pairs:]
    above = np.zeros((n, n), dtype=bool)
    above[first, second], above[second, first] = sign_above > 0, sign_above < 0
    return Ranks(
        names,
        estimate.values,
        1 + above.sum(0),
        n - above.sum(1),
        above,
        estimate.values[:, None] - estimate.values,
        _square(half[:n_pairs], n),
        by,
        level,
    )


def _pairs(estimate: Estimate, first: NDArray[np.intp], second: NDArray[np.intp], sign: int) -> Estimate:
    """phi_first + sign * phi_second."""
    carriers, margin, rounding = estimate.carriers, estimate.margin, estimate.rounding
    return Estimate(
        estimate.values[first] + sign * estimate.values[second],
        estimate.departures[:, first] + sign * estimate.departures[:, second],
        estimate.method,
        estimate.exact,
        None if carriers is None else np.minimum(carriers[first], carriers[second]),
        None if margin is None else margin[first] + margin[second],
        None if rounding is None else rounding[first] + rounding[second],
    )


def _square(half: Array, n: int) -> Array:
    table = np.zeros((n, n))
    table[np.triu_indices(n, 1)] = half
    return table + table.T
