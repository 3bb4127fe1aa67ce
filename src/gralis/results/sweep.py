"""phi over sigma: one explanation per kernel width, all from one ledger (C3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gralis.arrays import Array
from gralis.checks import whole
from gralis.views.table import sweep_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gralis.results.explanation import Explanation


@dataclass(frozen=True, eq=False)
class Sweep:
    """One explanation per sigma, all from one ledger."""

    sigmas: tuple[float, ...]
    explanations: tuple[Explanation, ...]

    @property
    def values(self) -> Array:
        """phi, (n_sigmas, n_features)."""
        return np.stack([e.values for e in self.explanations])

    @property
    def stderr(self) -> Array:
        return np.stack([e.stderr for e in self.explanations])

    @property
    def effective_rays(self) -> Array:
        """How many equally weighted rays each value is worth, (n_sigmas, n_features)."""
        return np.stack([e.effective_rays for e in self.explanations])

    def plot(self, top: int = 6, ax: Axes | None = None) -> Figure:
        """phi of the `top` features over sigma (extra `plot`); the figure is returned, never shown."""
        from gralis.views.charts import sweep
        from gralis.views.plots import new_figure

        ax = new_figure(6.4, 4.0).add_subplot() if ax is None else ax
        sweep(self, ax, top=whole(top, "top", 1))
        return ax.figure.figure

    def __repr__(self) -> str:
        return sweep_table(self)
