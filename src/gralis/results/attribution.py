"""What an explainer returns: numbers that know what they are, whether they are exact, and their errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gralis.arrays import Array
from gralis.certificates.simultaneous import half_widths
from gralis.checks import probability
from gralis.errors import GralisError, bad
from gralis.estimators import Estimate
from gralis.features import Features

Coalition = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Attribution:
    """One number per feature by some method, exact or with errors from the replicates."""

    estimate: Estimate
    names: Sequence[str]
    delta: float  # F(x) - F(x')
    note: str = ""
    features: Features | None = None  # what the values belong to

    @property
    def values(self) -> Array:
        return self.estimate.values

    @property
    def stderr(self) -> Array:
        return self.estimate.stderr

    @property
    def method(self) -> str:
        return self.estimate.method

    @property
    def exact(self) -> bool:
        return self.estimate.exact

    def interval(self, level: float = 0.95) -> Array:
        """Simultaneous intervals, (n_features, 2)."""
        half = half_widths(self.estimate, probability(level, "level", "interval"))
        return np.stack([self.values - half, self.values + half], axis=1)

    def to_input(self) -> Any:
        """The values on the input's own shape, each coordinate with its feature's; a tuple if x has several arrays."""
        if self.features is None:
            raise GralisError("This attribution does not know its features; use features.to_input(values).")
        leaves = self.features.to_input(self.values)
        return leaves if len(leaves) > 1 else leaves[0]

    def __repr__(self) -> str:
        half = np.diff(self.interval(), axis=1)[:, 0] / 2
        order = np.argsort(-np.abs(self.values), kind="stable")[:15]
        width = max([7, *(len(self.names[int(i)]) for i in order)])
        lines = [_title(self.method, self.exact, self.note)]
        for i in order:
            lines.append(f"{self.names[int(i)]:<{width}}  {self.values[i]:>11.5g}  {_error(half[i])}")
        lines.append(f"sum {self.values.sum():.6g} of F(x) - F(x') = {self.delta:.6g}")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Interactions(Mapping[Coalition, float]):
    """One number per coalition of up to `order` features, keyed by sorted feature indices."""

    estimate: Estimate
    coalitions: tuple[Coalition, ...]
    index: str
    order: int
    names: Sequence[str]
    note: str = ""

    @property
    def exact(self) -> bool:
        return self.estimate.exact

    @cached_property
    def _where(self) -> dict[Coalition, int]:
        return {coalition: row for row, coalition in enumerate(self.coalitions)}

    def __getitem__(self, coalition: Coalition | int) -> float:
        return float(self.estimate.values[self._row(coalition)])

    def error(self, coalition: Coalition | int) -> float:
        """The standard error of one number; 0 if exact."""
        return float(self.estimate.stderr[self._row(coalition)])

    def _row(self, coalition: Coalition | int) -> int:
        try:
            key = (coalition,) if isinstance(coalition, int | np.integer) else tuple(sorted(coalition))
            row = self._where.get(key)
        except TypeError:  # nothing that could be a coalition
            row = None
        if row is None:
            raise bad(
                "coalition",
                f"{self.index} of order {self.order}",
                f"1 to {self.order} different features out of 0 .. {len(self.names) - 1}",
                repr(coalition),
            )
        return row

    def __contains__(self, coalition: object) -> bool:
        return coalition in self._where

    def __iter__(self) -> Iterator[Coalition]:
        return iter(self.coalitions)

    def __len__(self) -> int:
        return len(self.coalitions)

    def interval(self, level: float = 0.95) -> Array:
        """Simultaneous intervals over all coalitions, in the order of `coalitions`."""
        half = half_widths(self.estimate, probability(level, "level", "interval"))
        return np.stack([self.estimate.values - half, self.estimate.values + half], axis=1)

    def matrix(self) -> Array:
        """Pairs as a symmetric matrix (n_features, n_features), the single features on its diagonal."""
        n = len(self.names)
        table = np.zeros((n, n))
        for coalition, value in zip(self.coalitions, self.estimate.values, strict=True):
            if len(coalition) <= 2:
                i, j = coalition[0], coalition[-1]
                table[i, j] = table[j, i] = value
        return table

    def top(self, k: int = 5) -> list[tuple[Coalition, float]]:
        """The k largest by magnitude among coalitions of two and more."""
        rows = [row for row, coalition in enumerate(self.coalitions) if len(coalition) > 1]
        rows.sort(key=lambda row: -abs(self.estimate.values[row]))
        return [(self.coalitions[row], float(self.estimate.values[row])) for row in rows[:k]]

    def __repr__(self) -> str:
        lines = [_title(f"{self.index} up to order {self.order}", self.exact, self.note)]
        stderr = self.estimate.stderr
        for coalition, value in self.top(12):
            names = " x ".join(self.names[i] for i in coalition)
            error = stderr[self._row(coalition)]
            lines.append(f"{names}  {value:.5g}  {'' if self.exact else f'(stderr {error:.2g})'}".rstrip())
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class Surrogate(Attribution):
    """A fitted linear model on 0/1 features: its coefficients are the values."""

    intercept: float = 0.0
    r2: float = float("nan")  # weighted
    support: tuple[int, ...] = ()  # features that take part; the others are zero

    @property
    def coef_(self) -> Array:
        """The coefficients on 0/1 features, so that `audit` takes it as the affine surrogate it is."""
        return self.values

    def __repr__(self) -> str:
        return f"{super().__repr__()}\nintercept {self.intercept:.5g}, weighted R2 {self.r2:.4g}"


def _title(what: str, exact: bool, note: str) -> str:
    return f"{what} ({'exact' if exact else 'estimated'}{'; ' + note if note else ''})"


def _error(half: float) -> str:
    return "" if half == 0 else "+- unknown" if np.isnan(half) else f"+- {half:.2g}"
