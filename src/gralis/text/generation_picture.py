"""The matrix of a generation as a matplotlib figure."""

from __future__ import annotations

from typing import Any

import numpy as np

from gralis.checks import probability
from gralis.text.explained_answer import ExplainedAnswer
from gralis.views.colours import DIVERGING, INK
from gralis.views.names import literal

__all__ = ["draw"]


def draw(generation: ExplainedAnswer, level: float, ax: Any = None) -> Any:
    """Tokens down, features across; a dot marks an interval that excludes zero."""
    import matplotlib.pyplot as plt

    g, values = generation, generation.values
    half = g.half_widths(probability(level, "level", "plot"))
    if ax is None:
        size = (min(2.5 + 0.55 * len(g.names), 16), min(1.6 + 0.3 * len(g.tokens), 18))
        _, ax = plt.subplots(figsize=size, layout="constrained")
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    image = ax.imshow(values, cmap=DIVERGING, vmin=-largest, vmax=largest, aspect="auto")
    rows, columns = np.nonzero(np.abs(values) > np.where(np.isfinite(half), half, np.inf))
    ax.plot(columns, rows, ".", color=INK, markersize=3)
    ax.set_yticks(range(len(g.tokens)), [literal(token) for token in g.tokens], fontsize="small")
    ax.set_xticks(
        range(len(g.names)), [literal(name[:28]) for name in g.names], rotation=40, ha="right", fontsize="small"
    )
    ax.set_title(f"{g.score}: red raises, blue lowers; dots: not 0 at {level:.4g}", fontsize="small")
    ax.figure.colorbar(image, ax=ax, shrink=0.8)
    return ax.figure
