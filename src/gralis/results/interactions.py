"""What an interaction index returns: one number per coalition, keyed by sorted feature indices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.checks import whole
from gralis.errors import bad
from gralis.estimators import Estimate
from gralis.notebook import n_shown
from gralis.results.result import EstimateResult
from gralis.results.tables import error_text, titled

__all__ = ["Interactions"]

Coalition: TypeAlias = tuple[int, ...]
_MOST_ROWS = 12


@dataclass(frozen=True, eq=False, repr=False)
class Interactions(EstimateResult, Mapping[Coalition, float]):
    """One number per coalition of up to `order` features, a mapping keyed by sorted feature indices.

    Attributes
    ----------
    estimate : Estimate
        The numbers in the order of `coalitions`, and the deviation of each replicate from them.
    coalitions : tuple of tuple of int
        The coalitions.
    index : str
        The name of the index.
    order : int
        The largest size of a coalition.
    names : sequence of str
        The names of the features.
    note : str
        What a reader should know about the numbers.
    """

    estimate: Estimate
    coalitions: tuple[Coalition, ...]
    index: str
    order: int
    names: Sequence[str]
    note: str = ""

    @cached_property
    def _where(self) -> dict[Coalition, int]:
        return {coalition: row for row, coalition in enumerate(self.coalitions)}

    def __getitem__(self, coalition: Coalition | int) -> float:
        return float(self._numbers[self._row(coalition)])

    def error(self, coalition: Coalition | int) -> float:
        """The standard error of one number.

        Parameters
        ----------
        coalition : tuple of int, or int
            The features, in any order.

        Returns
        -------
        float
            0 if the number is exact.
        """
        return float(self.estimate.stderr[self._row(coalition)])

    def _row(self, coalition: Coalition | int) -> int:
        try:
            key = (coalition,) if isinstance(coalition, int | np.integer) else tuple(sorted(coalition))
            row = self._where.get(key)
        except (TypeError, RuntimeError):  # not a coalition
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

    def matrix(self) -> Array:
        """The pairs as a symmetric matrix (n_features, n_features), with the single features on its diagonal."""
        n = len(self.names)
        table = np.zeros((n, n))
        for coalition, value in zip(self.coalitions, self._numbers, strict=True):
            if len(coalition) <= 2:
                i, j = coalition[0], coalition[-1]
                table[i, j] = table[j, i] = value
        return table

    def top(self, k: int = 5) -> list[tuple[Coalition, float]]:
        """The coalitions of two and more features with the largest magnitudes.

        Parameters
        ----------
        k : int, default=5
            How many coalitions to return.

        Returns
        -------
        list of (coalition, value)
            The largest magnitude comes first.
        """
        return self._largest(2)[: whole(k, "k", 1, "top")]

    def _largest(self, least_size: int) -> list[tuple[Coalition, float]]:
        """The coalitions of at least this size and their numbers; the largest magnitude comes first."""
        rows = [row for row, coalition in enumerate(self.coalitions) if len(coalition) >= least_size]
        rows.sort(key=lambda row: -abs(self._numbers[row]))
        return [(self.coalitions[row], float(self._numbers[row])) for row in rows]

    @property
    def _exact_numbers(self) -> NDArray[np.bool_]:
        """All or none; but a Moebius coefficient is known as soon as v of its subsets is."""
        return np.asarray(self.stderr == 0) if self.index == "Moebius" else super()._exact_numbers

    def _frame_columns(self) -> Mapping[str, Any]:
        low, high = self.interval().T
        return {
            "features": [" x ".join(self.names[i] for i in coalition) for coalition in self.coalitions],
            "order": [len(coalition) for coalition in self.coalitions],
            "value": self._numbers,
            "stderr": self.stderr,
            "low": low,
            "high": high,
        }

    def __repr__(self) -> str:
        lines = [titled(f"{self.index} up to order {self.order}", self.exact, self.note)]
        half = self.printed_half_widths
        listed = self._largest(2) or self._largest(1)
        shown = listed[: n_shown(len(listed), _MOST_ROWS)]
        for coalition, value in shown:
            names = " x ".join(self.names[i] for i in coalition)
            error = "" if self.exact else f"+- {error_text(half[self._row(coalition)])}"
            lines.append(f"{names}  {value:.5g}  {error}".rstrip())
        if len(listed) > len(shown):
            lines.append(f"({len(listed) - len(shown)} more)")
        return "\n".join(lines)
