"""All rows at a glance: beeswarm, bars with intervals, and the heat map of rows and features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from gralis.arrays import Array
from gralis.results.stacked import Stacked
from gralis.views.colours import DIVERGING, GREY, INK
from gralis.views.names import short
from gralis.views.row_parts import by_size, clean, colour_bar, colours_of, error_caption

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["bar", "beeswarm", "heatmap", "size_bars"]

_SKEW = 4  # attributions are skewed: fewer degrees of freedom, as in global_importance
_BINS = 60


def beeswarm(rows: Stacked, ax: Axes, *, top: int, rng: np.random.Generator, **_: Any) -> None:
    """One dot per row and feature, moved aside where dots would cover each other."""
    order, values, data = by_size(rows, top), rows.values, rows.data
    size = float(np.clip(900 / max(len(rows), 1), 4, 22))
    for place, feature in enumerate(order):
        own = values[:, feature]
        height = place + _swarm(own, values, rng)
        ax.scatter(own, height, s=size, c=colours_of(data[:, feature]), linewidths=0, alpha=0.85, zorder=3)
    ax.axvline(0, color=INK, linewidth=0.8, zorder=1)
    _feature_axis(ax, [rows.names[int(i)] for i in order])
    for place in range(len(order)):
        ax.axhline(place, color=GREY, linewidth=0.4, alpha=0.5, zorder=0)
    clean(ax, "top", "right", "left")
    ax.set_xlabel(f"{_what(rows)} of {len(rows)} rows\n{error_caption(rows, order)}")
    colour_bar(ax, "entry of the feature" + (" (grey: text or missing)" if data.dtype == object else ""))


def _swarm(own: Array, values: Array, rng: np.random.Generator) -> Array:
    """How far each dot is moved up or down, at most 0.38: the more dots in the same bin, the further."""
    low, high = float(values.min()), float(values.max())
    bins = np.minimum((_BINS * (own - low) / ((high - low) or 1.0)).astype(int), _BINS - 1)
    moved = np.zeros(len(own))
    for each in np.unique(bins):
        members = rng.permutation(np.flatnonzero(bins == each))
        steps = np.arange(len(members))
        moved[members] = (steps + 1) // 2 * np.where(steps % 2, 1, -1)
    widest = float(np.abs(moved).max())
    return moved * (min(0.38 / widest, 0.09) if widest else 0.0)


def bar(rows: Stacked, ax: Axes, *, top: int, level: float, **_: Any) -> None:
    """Mean |value| of every feature, with simultaneous intervals for the rows as a sample of more rows."""
    order = by_size(rows, top)
    mean, half = mean_with_interval(rows, level)
    why = f"lines: {100 * level:.4g}% intervals for all features together, {len(rows)} rows as a sample"
    why = why if len(rows) > 1 else "one row has no interval"
    caption = f"mean |{_what(rows)}|\n{why}\n{error_caption(rows, order)}"
    size_bars(ax, [rows.names[int(i)] for i in order], mean[order], half[order], caption)


def size_bars(ax: Axes, names: list[str], sizes: Array, half_widths: Array, caption: str) -> None:
    """Bars of sizes from top to bottom, with lines for the intervals that are known."""
    places, known = np.arange(len(sizes)), np.isfinite(half_widths)
    ax.barh(places, sizes, color="#6b7f99", height=0.68)
    if known.any():
        at, width = sizes[known], half_widths[known]
        ax.errorbar(at, places[known], xerr=width, fmt="none", ecolor=INK, elinewidth=1, capsize=2.5)
    _feature_axis(ax, names)
    clean(ax, "top", "right", "left")
    ax.set_xlim(left=0)
    ax.set_xlabel(caption)


def mean_with_interval(rows: Stacked, level: float) -> tuple[Array, Array]:
    """Mean |value| of every feature and its simultaneous half-width, with the sampling error of the values on top."""
    sizes, n = np.abs(rows.values), len(rows)
    if n < 2:
        return sizes.mean(0), np.full(sizes.shape[1], np.nan)
    quantile = float(stdtrit(max((n - 1) / _SKEW, 1.0), 1 - (1 - level) / sizes.shape[1] / 2))
    between = sizes.std(0, ddof=1) / np.sqrt(n)
    return sizes.mean(0), quantile * between + np.sqrt((rows.stderr**2).mean(0))


def heatmap(rows: Stacked, ax: Axes, *, top: int, **_: Any) -> None:
    """Values in colour: rows from left to right, similar ones beside each other, and F(x) as a line above."""
    order, values = by_size(rows, top), rows.values
    sequence = _similar(values[:, order])
    shown = values[np.ix_(sequence, order)].T
    limit = float(np.quantile(np.abs(shown), 0.99)) or 1.0
    drawn = ax.imshow(shown, cmap=DIVERGING, vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest")
    _feature_axis(ax, [rows.names[int(i)] for i in order])
    line = rows.f_x[sequence]
    low, high = float(line.min()), float(line.max())
    ax.plot(np.arange(len(line)), -1.2 - 1.6 * (line - low) / ((high - low) or 1.0), color=INK, linewidth=1)
    ax.text(len(line) - 0.4, -2.0, f"F(x)\n{low:.3g} to {high:.3g}", fontsize="x-small", va="center", clip_on=False)
    ax.set_ylim(len(order) - 0.5, -3.1)
    clean(ax, "top", "right", "left")
    ax.set_xlabel(f"{len(rows)} rows, similar ones beside each other\n{error_caption(rows, order)}")
    ax.figure.colorbar(drawn, ax=ax, fraction=0.025, pad=0.12, aspect=40, label=_what(rows))


def _similar(values: Array) -> NDArray[np.int64]:
    """An order of the rows in which similar ones are neighbours: the leaves of a hierarchical clustering."""
    if not 3 <= len(values) <= 3000:
        return np.argsort(values.sum(1), kind="stable")
    from scipy.cluster.hierarchy import leaves_list, linkage

    return np.asarray(leaves_list(linkage(values, "ward")), dtype=np.int64)


def _feature_axis(ax: Axes, names: list[str]) -> None:
    """The features as labels from top to bottom."""
    ax.set_yticks(np.arange(len(names)), [short(name) for name in names])
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def _what(rows: Stacked) -> str:
    """What the values are called."""
    method = getattr(rows.each[0], "method", "")
    return "Shapley value" if "Shapley" in method else "phi"
