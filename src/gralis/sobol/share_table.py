"""`TermShares`, which `term_shares` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from gralis.certificates.simultaneous import half_widths
from gralis.estimators.estimate import Estimate
from gralis.notebook import InNotebooks, n_shown
from gralis.sobol.input_sets import InputSet

__all__ = ["TermShares"]


@dataclass(frozen=True, eq=False, repr=False)
class TermShares(InNotebooks):
    """The share of every term in the variance of F over explained inputs; printing it shows a table.

    Attributes
    ----------
    shares_estimate : Estimate
        S_T in the order of `sets`, with its jackknife.
    closed_estimate : Estimate
        The sum of S_L over the subsets L of T, in the order of `sets`, with its jackknife.
    sets : tuple of tuple of int
        The sets T.
    names : sequence of str
        The names of the features.
    level : float
        The probability with which the half-widths of `shares`, and those of `closed`, hold simultaneously.
    n_inputs : int
        The number of explanations.
    n_baselines : int
        The number of baselines of each explanation that are treated separately.
    doubts : tuple of str
        Sentences that say why the half-widths may not hold, or why S_T is no Sobol index; empty if nothing objects.
    """

    shares_estimate: Estimate
    closed_estimate: Estimate
    sets: tuple[InputSet, ...]
    names: Sequence[str]
    level: float
    n_inputs: int
    n_baselines: int
    doubts: tuple[str, ...]

    @cached_property
    def shares(self) -> Mapping[InputSet, float]:
        """S_T by T."""
        return dict(zip(self.sets, self.shares_estimate.values.tolist(), strict=True))

    @cached_property
    def half_width(self) -> Mapping[InputSet, float]:
        """The half-widths of `shares`."""
        return dict(zip(self.sets, half_widths(self.shares_estimate, self.level).tolist(), strict=True))

    @cached_property
    def closed(self) -> Mapping[InputSet, float]:
        """The sum of S_L over the subsets L of T, by T."""
        return dict(zip(self.sets, self.closed_estimate.values.tolist(), strict=True))

    @cached_property
    def closed_half_width(self) -> Mapping[InputSet, float]:
        """The half-widths of `closed`."""
        return dict(zip(self.sets, half_widths(self.closed_estimate, self.level).tolist(), strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The numbers and the doubts, which JSON can store.

        Returns
        -------
        dict
            The keys of the shares join names by " x ".
        """
        result: dict[str, Any] = {
            "names": list(self.names),
            "level": self.level,
            "n_inputs": self.n_inputs,
            "n_baselines": self.n_baselines,
            "doubts": list(self.doubts),
        }
        for key in ("shares", "half_width", "closed", "closed_half_width"):
            result[key] = {self._label(t): number for t, number in getattr(self, key).items()}
        return result

    def _label(self, t: InputSet) -> str:
        return " x ".join(self.names[i] for i in t)

    def _frame_columns(self) -> Mapping[str, Any]:
        labels = [" x ".join(self.names[i] for i in t) for t in self.sets]
        numbers = {"share": self.shares, "half_width": self.half_width, "closed": self.closed}
        return {"inputs": labels, **{name: [of[t] for t in self.sets] for name, of in numbers.items()}}

    def __repr__(self) -> str:
        order = sorted(self.sets, key=lambda t: -self.shares[t])[: n_shown(len(self.sets))]
        width = max(5, *(len(self._label(t)) for t in order))
        lines = [
            f"Shares of the variance from {self.n_inputs} explanations, {self.level:.0%} intervals",
            "",
            f"{'terms':<{width}}  {'share':>17}  {'closed':>17}",
        ]
        for t in order:
            pairs = ((self.shares[t], self.half_width[t]), (self.closed[t], self.closed_half_width[t]))
            cells = "  ".join(f"{f'{value:.4f} +- {half:.1e}':>17}" for value, half in pairs)
            lines.append(f"{self._label(t):<{width}}  {cells}")
        if len(order) < len(self.sets):
            lines.append(f"({len(self.sets) - len(order)} more)")
        return "\n".join([*lines, *(f"doubt: {doubt}" for doubt in self.doubts)])
