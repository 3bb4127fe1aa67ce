"""phi over sigma, or over the number of nodes on a ray: several explanations, all from one ledger (C3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.checks import whole
from gralis.errors import GralisError
from gralis.results.printed import Printed
from gralis.results.result import Result
from gralis.results.tables import doubt_lines, error_text, largest_first, united

__all__ = ["Sweep"]

_MOST_DOUBTS = 3  # that are printed; those of neighbouring settings say almost the same


@dataclass(frozen=True, eq=False, repr=False)
class Sweep(Result):
    """One explanation per setting of a parameter, all from one ledger.

    Attributes
    ----------
    settings : tuple of float
        Kernel widths, of which infinity stands for the uniform kernel, or numbers of nodes.
    explanations : tuple of Explanation
        The explanation under each of them.
    parameter : {"sigma", "n_nodes"}, default="sigma"
        What was varied.
    """

    settings: tuple[float, ...]
    explanations: Sequence[Printed]
    parameter: str = "sigma"

    @property
    def sigmas(self) -> tuple[float, ...]:
        """The settings of a sweep over sigma."""
        return self.settings

    @property
    def values(self) -> Array:
        """phi, (n_settings, n_features)."""
        return np.stack([e.values for e in self.explanations])

    @property
    def _numbers(self) -> Array:
        return self.values

    @property
    def stderr(self) -> Array:
        """Standard errors, (n_settings, n_features)."""
        return np.stack([e.stderr for e in self.explanations])

    @property
    def exact(self) -> bool:
        return all(e.exact for e in self.explanations)

    @property
    def _exact_numbers(self) -> NDArray[np.bool_]:
        return np.stack([e._exact_numbers for e in self.explanations])

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why the intervals may not hold, in sentences: those of all explanations."""
        return united(e.doubts for e in self.explanations)

    def _half_widths(self, level: float) -> Array:
        """Half-widths that hold together within each setting, (n_settings, n_features)."""
        return np.stack([e.half_widths(level) for e in self.explanations])

    @property
    def effective_rays(self) -> Array:
        """How many equally weighted rays each value is worth, (n_settings, n_features)."""
        return np.stack([e.effective_rays for e in self.explanations])

    def plot(self, top: int = 6, ax: Any = None) -> Any:
        """Draw phi of the largest features over the settings. This needs the extra `plot`.

        Parameters
        ----------
        top : int, default=6
            How many features to draw.
        ax : matplotlib.axes.Axes, optional
            Where to draw; by default on a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            The figure; it is never shown.
        """
        from gralis.views.charts import sweep
        from gralis.views.plots import axes

        ax = axes(ax, 6.4, 4.0)
        sweep(self, ax, top=whole(top, "top", 1))
        return ax.figure.figure

    def _frame_columns(self) -> Mapping[str, Any]:
        names, intervals = list(self.explanations[0].names), self.interval().reshape(-1, 2)
        return {
            self.parameter: np.repeat(self.settings, len(names)),
            "feature": names * len(self.settings),
            "value": self.values.ravel(),
            "stderr": self.stderr.ravel(),
            "low": intervals[:, 0],
            "high": intervals[:, 1],
        }

    def __repr__(self) -> str:
        half, order = self.printed_half_widths, largest_first(self.values, 6)
        names = [self.explanations[0].names[int(i)][:12] for i in order]
        lines = [f"{self.parameter:>8}  {'sum':>10}  {'rays':>7}  " + "  ".join(f"{name:>18}" for name in names)]
        for setting, e, errors in zip(self.settings, self.explanations, half, strict=True):
            cells = (f"{e.values[i]:>9.4g} +-{error_text(errors[i]):<7}" for i in order)
            lines.append(f"{setting:>8.3g}  {e.values.sum():>10.5g}  {_effective(e):>7}  " + "  ".join(cells))
        return "\n".join([*lines, *doubt_lines(self.doubts, _MOST_DOUBTS)])


def _effective(e: Printed) -> str:
    """The least number of effective rays behind a value."""
    try:
        return f"{e.effective_rays.min():.3g}"
    except GralisError:  # a folded ledger has no rays to count
        return "-"
