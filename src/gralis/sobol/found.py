"""What quadrature and sampling hand over: estimates, margins and doubts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from gralis.arrays import Array
from gralis.estimators.estimate import Estimate


@dataclass(frozen=True, eq=False)
class Found:
    """Numbers by name, and what may be wrong with them.

    Attributes
    ----------
    estimates : mapping of str to Estimate
        The numbers with their replicates.
    margins : mapping of str to array
        What the half-widths have beside sampling error: quadrature, rounding, and rare events that were not seen.
    doubts : tuple of str
        Sentences on why the half-widths may not hold.
    enumerated : bool
        Whether F was evaluated at every point that the inputs can take.
    unseen : float or None
        The share of the inputs on which F may depart from its interpolant without a trace; None if F was sampled.
    """

    estimates: Mapping[str, Estimate]
    margins: Mapping[str, Array]
    doubts: tuple[str, ...]
    enumerated: bool
    unseen: float | None

    def words(self, level: float) -> str:
        """How the numbers were computed."""
        if self.enumerated:
            return "every point evaluated, exact up to rounding"
        return f"sampled, {level:.0%} intervals" if self.unseen is None else "by quadrature"

    def notes(self, level: float) -> list[str]:
        """Sentences below a table: how far the check of the quadrature reaches, and the doubts."""
        notes = []
        if self.unseen:
            notes.append(
                f"quadrature: random points agree with the grid; a departure on less than {self.unseen:.2%} of the "
                f"inputs could go unnoticed ({level:.0%}), and no interval contains it"
            )
        return [*notes, *(f"doubt: {doubt}" for doubt in self.doubts)]


def without_sampling(values: Array) -> Estimate:
    """An estimate without sampling error."""
    return Estimate(values, np.zeros((0, len(values))), "quadrature", exact=True)
