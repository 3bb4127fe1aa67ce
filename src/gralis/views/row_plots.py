"""Pictures of many rows by their kind. Each says how much of what it shows is sampling error."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from gralis.arrays import describe
from gralis.checks import one_of, probability, whole
from gralis.errors import GralisError, bad
from gralis.results.stacked import Stacked
from gralis.views import row_paths, row_relations, row_summaries
from gralis.views.plots import axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["plot_rows", "row_plot_kinds"]

_DRAWN: dict[str, Callable[..., None]] = {
    "beeswarm": row_summaries.beeswarm,
    "bar": row_summaries.bar,
    "scatter": row_relations.scatter,
    "heatmap": row_summaries.heatmap,
    "decision": row_paths.decision,
    "force": row_paths.force,
}
_WIDTH, _LINE = 6.8, 0.34


def plot_rows(
    rows: Stacked,
    kind: str = "beeswarm",
    *,
    ax: Axes | None = None,
    top: int = 12,
    level: float = 0.95,
    feature: int | str | None = None,
    partner: int | str | None = None,
    seed: int = 0,
) -> Figure:
    """A picture of the values of many rows, on `ax` or on a new figure.

    Parameters
    ----------
    rows : Explanations or Attributions
        What is drawn; `Explainer(...)(X)` makes it.
    kind : str, default="beeswarm"
        What to draw.

        - "beeswarm": one dot per row and feature, at its value, coloured by what the feature is in that row.
        - "bar": the mean |value| of every feature, with intervals for the data set as a sample of more rows.
        - "scatter": the values of one feature over what it is, with error bars, coloured by the partner with which it
          interacts most.
        - "heatmap": rows from left to right, features from top to bottom, values in colour; F(x) above.
        - "decision": one line per row, which adds up the values from F(x') to the sum, the smallest features first.
        - "force": what raises and what lowers the output, stacked row by row; for one row, as a bar from F(x') on.
    ax : matplotlib.axes.Axes, optional
        Where to draw. By default a new figure is made.
    top : int, default=12
        How many features are shown.
    level : float, default=0.95
        The level of the intervals.
    feature : int or str, optional
        For "scatter": the feature, by its number or its name. By default the one with the largest mean |value|.
    partner : int or str, optional
        For "scatter": the feature that gives the colours. By default the one with the strongest interaction.
    seed : int, default=0
        For "beeswarm" and "scatter": the seed of the jitter of dots that would cover each other.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. A notebook shows it.

    Examples
    --------
    >>> import gralis, numpy as np
    >>> from sklearn.linear_model import LinearRegression
    >>> X = np.random.default_rng(0).normal(size=(30, 3))
    >>> explainer = gralis.Explainer(LinearRegression().fit(X, X[:, 0]), baseline=X[:5])
    >>> [len(explainer(X).plot(kind).axes) for kind in ("beeswarm", "bar")]  # the colours have a bar of their own
    [2, 1]
    """
    if not isinstance(rows, Stacked):
        raise bad("rows", "plot_rows", "the explanations of several rows", describe(rows))
    draw = _DRAWN[one_of(kind, tuple(_DRAWN), "kind", "plot")]
    top, level = min(whole(top, "top", 1, "plot"), len(rows.names)), probability(level, "level", "plot")
    chosen = {name: _number(rows, value, name) for name, value in (("feature", feature), ("partner", partner))}
    ax = axes(ax, *_size(kind, top, len(rows)))
    draw(rows, ax, top=top, level=level, rng=np.random.default_rng(whole(seed, "seed", 0, "plot")), **chosen)
    return ax.figure.figure


def row_plot_kinds() -> tuple[str, ...]:
    """The kinds that `plot_rows` knows.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> row_plot_kinds()
    ('beeswarm', 'bar', 'scatter', 'heatmap', 'decision', 'force')
    """
    return tuple(_DRAWN)


def _size(kind: str, top: int, n_rows: int) -> tuple[float, float]:
    if kind == "scatter":
        return 6.2, 4.4
    if kind == "force":
        return _WIDTH, 2.4 if n_rows == 1 else 4.0
    return _WIDTH, 1.7 + _LINE * (top + (kind == "heatmap") * 3)


def _number(rows: Stacked, value: int | str | None, parameter: str) -> int | None:
    """The number of a feature that is named by its number or its name."""
    if value is None:
        return None
    names = rows.names
    if isinstance(value, str):
        if value not in names:
            raise GralisError(f"There is no feature {value!r} to plot; there are {', '.join(names[:8])}.")
        return names.index(value)
    return whole(value, parameter, 0, "plot", most=len(names) - 1)
