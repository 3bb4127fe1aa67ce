"""phi and the Shapley values of one ledger side by side, and the features where their signs are opposite."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.results.attribution import Attribution
from gralis.results.other_explainers import OtherExplainers
from gralis.results.tables import error_text

__all__ = ["BothAnswers", "SignConflict", "conflict_sentence"]

MOST_NUMBERS = 2**21  # masks of a ledger; above this the Shapley values would take seconds
_MOST_NAMED = 3
_NEGLIGIBLE = 0.01  # of the largest |phi|


@dataclass(frozen=True)
class SignConflict:
    """A feature whose phi and whose Shapley value have opposite signs, both beyond their 95% intervals.

    Attributes
    ----------
    feature : int
        The index of the feature.
    name : str
        Its name.
    phi, phi_half_width : float
        phi, and the half-width of its simultaneous 95% interval.
    shapley, shapley_half_width : float
        The Shapley value, and the half-width of its simultaneous 95% interval.
    """

    feature: int
    name: str
    phi: float
    phi_half_width: float
    shapley: float
    shapley_half_width: float

    @property
    def numbers(self) -> str:
        """Both values with their half-widths."""
        shapley = _with_error(self.shapley, self.shapley_half_width)
        return f"phi {_with_error(self.phi, self.phi_half_width)}, Shapley {shapley}"


def _with_error(value: float, half_width: float) -> str:
    return f"{value:.3g}" if half_width == 0 else f"{value:.3g} +- {error_text(half_width)}"


def conflict_sentence(conflicts: tuple[SignConflict, ...], largest: float = 0.0) -> str:
    """What opposite signs mean, with the features that have them; the largest come first.

    `largest` is the largest |phi| of all features: beside it, the features may be negligible.

    >>> conflict_sentence((SignConflict(8, "region 9", 11.9, 1.8, -1.04, 0.4),))
    "opposite signs: region 9 (phi 11.9 +- 1.8, Shapley -1.04 +- 0.4) raises the output on the way from x' to x or \
beside few other features (phi), and lowers it on average when it joins at its full value (Shapley); read both numbers"
    """
    first = conflicts[0]
    negligible = min(abs(first.phi), abs(first.shapley)) < _NEGLIGIBLE * largest
    end = f"; below {_NEGLIGIBLE:.0%} of the largest phi this matters little" if negligible else "; read both numbers"
    if len(conflicts) == 1:
        does = ("raises", "lowers") if first.phi > 0 else ("lowers", "raises")
        return (
            f"opposite signs: {first.name} ({first.numbers}) {does[0]} the output on the way from x' to x or beside "
            f"few other features (phi), and {does[1]} it on average when it joins at its full value (Shapley){end}"
        )
    named = ", ".join(one.name for one in conflicts[:_MOST_NAMED])
    more = f" and {len(conflicts) - _MOST_NAMED} more" if len(conflicts) > _MOST_NAMED else ""
    return (
        f"opposite signs: {named}{more} push the output one way on the way from x' to x or beside few other features "
        f"(phi), and the other way on average when they join at their full value (Shapley){end}"
    )


class BothAnswers(OtherExplainers):
    """The part of an `Explanation` that sets the Shapley values beside phi. The model is not called."""

    @cached_property
    def shapley_beside(self) -> Attribution | None:
        """The Shapley values that tables show beside phi.

        None if `values` are Shapley values already, if the ledger has no coalition values, or if it is so large that
        a table would take seconds; call `shapley()` then.
        """
        rows = self.ledger.kept_rows
        if not self.design.estimator.has_kernel or (rows is not None and rows.masks.size > MOST_NUMBERS):
            return None
        try:
            return self.shapley()
        except (GralisError, np.linalg.LinAlgError):  # the second: rows from a file that cannot be fitted
            return None

    @cached_property
    def shapley_half_widths(self) -> Array | None:
        """The half-widths of `shapley_beside` as tables show them: 0 where a value is exact."""
        return None if self.shapley_beside is None else self.shapley_beside.printed_half_widths

    @cached_property
    def sign_conflicts(self) -> tuple[SignConflict, ...]:
        """The features whose phi and Shapley value have opposite signs beyond their errors; the largest come first.

        Both simultaneous 95% intervals exclude zero, on opposite sides. The feature then pushes the output one way on
        the path from x' to x or beside few other features, and the other way, on average, when it joins at its full
        value. Empty if there is no such feature, or if `shapley_beside` is None.
        """
        shapley, beside = self.shapley_beside, self.shapley_half_widths
        if shapley is None or beside is None:
            return ()
        phi, own = self.values, self.printed_half_widths
        # Rounding counts here, although tables show it as exact.
        sure = (np.abs(phi) > self.half_widths()) & (np.abs(shapley.values) > shapley.half_widths())
        found = np.flatnonzero(sure & (phi * shapley.values < 0))
        order = found[np.argsort(-np.minimum(np.abs(phi), np.abs(shapley.values))[found], kind="stable")]
        return tuple(
            SignConflict(
                int(i), self.names[int(i)], float(phi[i]), float(own[i]), float(shapley.values[i]), float(beside[i])
            )
            for i in order
        )
