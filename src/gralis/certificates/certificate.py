"""|phi_hat_i - phi_i| <= half_widths[i] for all features together, with probability 1 - delta.

Sampling error, and the error that no replicate can show, are separate entries; half_widths is their sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gralis.arrays import Array
from gralis.ledger import Ledger
from gralis.notebook import InNotebooks

Kind = Literal["asymptotic", "calibrated", "guaranteed"]


@dataclass(frozen=True)
class Checksum:
    """Lemma A on the rays: sum_i ray_i - v(T), zero for exact quadrature, mean zero for random nodes.

    Attributes
    ----------
    n_rays : int
        The number of rays whose value is known.
    mean, rms, largest : float
        The mean, the root mean square and the largest magnitude of the checksum over these rays.
    """

    n_rays: int
    mean: float
    rms: float
    largest: float

    @staticmethod
    def of(ledger: Ledger) -> Checksum | None:
        """The checksum over all rays whose value is known; None if there are none."""
        known = np.isfinite(ledger.value) & (ledger.nodes_per_ray > 0)
        if not known.any():
            return None
        rows = ledger.checksum[known]
        return Checksum(len(rows), float(rows.mean()), float(np.sqrt((rows**2).mean())), float(np.abs(rows).max()))

    def __str__(self) -> str:
        return f"Lemma A checksum over {self.n_rays} rays: mean {self.mean:.2g}, rms {self.rms:.2g}"


@dataclass(frozen=True, eq=False)
class Certificate(InNotebooks):
    """How far off the values may be, for all features together, and why.

    Attributes
    ----------
    method : {"replicates", "bernstein", "paper"}
        How the certificate was computed.
    kind : {"asymptotic", "calibrated", "guaranteed"}
        Whether it holds for large samples, under constants that were estimated or assumed, or for every sample size.
    delta : float
        The probability with which it may fail.
    sampling : array of shape (n_features,)
        The half-widths for the sampling error.
    quadrature : array of shape (n_features,)
        The error that no replicate can show: that of fixed nodes and, if `method` is "replicates", what random rays may
        have missed. NaN if nothing is known about it.
    aggregate : float
        A bound on |R_obs - R_pop| = |sum phi_hat - sum phi|.
    difference : float
        |F(x) - F(x')|; NaN if it is not known, as before a run.
    constants : mapping
        The constants behind the numbers, by name.
    ground : str
        In a few words, why the certificate holds.
    checksum : Checksum or None
        The Lemma A checksum of the ledger.
    rounding : array of shape (n_features,) or float, default=0.0
        The error that the arithmetic of the model may leave in each value.
    """

    method: str
    kind: Kind
    delta: float
    sampling: Array
    quadrature: Array
    aggregate: float
    difference: float
    constants: Mapping[str, Any]
    ground: str
    checksum: Checksum | None = None
    rounding: Array | float = 0.0

    @property
    def half_widths(self) -> Array:
        """Simultaneous half-widths: the sampling error, the quadrature error and rounding.

        With method="replicates" they are NaN if the quadrature error is unknown, as `Explanation.half_widths` is. The
        bounds "bernstein" and "paper" are about the sampling error; they leave out an unknown quadrature error and
        say so.
        """
        quadrature = self.quadrature if self.method == "replicates" else np.nan_to_num(self.quadrature)
        return np.asarray(self.sampling + quadrature + self.rounding)

    @property
    def vacuous(self) -> bool:
        """Whether some half-width is wider than |F(x) - F(x')| itself."""
        return bool((self.half_widths > self.difference).any())

    def _frame_columns(self) -> Mapping[str, Any]:
        return {"half_width": self.half_widths, "sampling": self.sampling, "quadrature": self.quadrature}

    def __repr__(self) -> str:
        widest = float(self.half_widths.max())
        if np.isnan(widest):
            return f"The half-widths are not known, because {self._about_quadrature()}."
        share = f" ({widest / self.difference:.2g} of |F(x) - F(x')|)" if self.difference > 0 else ""
        sentence = (
            f"With probability {1 - self.delta:.4g} every phi_i is within its half-width, at most {widest:.3g}{share}, "
            f"and their sum within {self.aggregate:.3g}: {self.kind}, by {self.ground}; {self._about_quadrature()}."
        )
        if self.vacuous:
            sentence += " It is vacuous: wider than |F(x) - F(x')|."
        return sentence if self.checksum is None else f"{sentence} {self.checksum}."

    def _about_quadrature(self) -> str:
        if np.isnan(self.quadrature).any():
            return "the error of the fixed nodes is not known and not covered (coalition_values=True would show it)"
        if not self.quadrature.any():
            return "no quadrature error"
        part = f"of this, at most {self.quadrature.max():.3g}"
        if self.method == "replicates":
            return f"{part} is for errors that no replicate shows (fixed nodes; jumps or coalitions that were missed)"
        return f"{part} is quadrature error"
