"""How the values of each row add up: lines from F(x') on, and stacked forces for and against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gralis.results.stacked import Stacked
from gralis.views.colours import AGAINST, FOR, GREY, INK
from gralis.views.names import short
from gralis.views.row_parts import by_size, clean, error_caption, low_to_high

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["decision", "force"]


def decision(rows: Stacked, ax: Axes, *, top: int, level: float, **_: Any) -> None:
    """One line per row, from F(x') at the bottom, adding up the values of the features, the smallest first."""
    order, values = by_size(rows, top)[::-1], rows.values
    others = values.sum(1) - values[:, order].sum(1)
    steps = np.column_stack([rows.f_baseline + others, values[:, order]]).cumsum(1)  # (n_rows, top + 1)
    ends = steps[:, -1]
    span = float(ends.max() - ends.min()) or 1.0
    colours, heights = low_to_high()((ends - ends.min()) / span), np.arange(steps.shape[1])
    for line, colour in zip(steps, colours, strict=True):
        ax.plot(line, heights, color=colour, linewidth=0.9, alpha=max(0.25, min(0.9, 30 / len(rows))))
    half = np.where(rows.stderr == 0, 0.0, rows.half_widths(level))
    ax.axvline(float(rows.f_baseline.mean()), color=INK, linewidth=0.8, linestyle=":")
    ax.set_yticks(heights[1:] - 0.5, [short(rows.names[int(i)]) for i in order])
    ax.set_ylim(0, heights[-1])
    ax.tick_params(axis="y", length=0)
    ax.grid(axis="y", linewidth=0.3, alpha=0.5)
    clean(ax, "top", "right", "left")
    left = len(rows.names) - len(order)
    widest = float(np.nanmax(half, initial=0.0))
    notes = [f"F(x') + sum of the values; dotted: mean F(x') = {rows.f_baseline.mean():.4g}"]
    notes += [f"each line begins with {left} smaller feature{'s together' if left > 1 else ''}"] if left else []
    notes += [error_caption(rows, order) + (f"; widest step +- {widest:.2g}" if widest else "")]
    ax.set_xlabel("\n".join(notes))


def force(rows: Stacked, ax: Axes, *, top: int, **_: Any) -> None:
    """What raises and what lowers the output: stacked along the rows, or for a single row as one bar."""
    if len(rows) == 1:
        _one_force(rows, ax, top)
    else:
        _many_forces(rows, ax)


def _many_forces(rows: Stacked, ax: Axes) -> None:
    """Two areas for every row, in the order of F(x): from the end up to what is lowered, and down to what is raised."""
    sequence = np.argsort(rows.f_x, kind="stable")
    values, ends = rows.values[sequence], (rows.f_baseline + rows.values.sum(1))[sequence]
    raised, lowered = np.maximum(values, 0).sum(1), np.minimum(values, 0).sum(1)
    places = np.arange(len(ends))
    ax.fill_between(places, ends - raised, ends, color=FOR, alpha=0.75, linewidth=0, step="mid", label="raises")
    ax.fill_between(places, ends, ends - lowered, color=AGAINST, alpha=0.75, linewidth=0, step="mid", label="lowers")
    ax.step(places, ends, color="white", linewidth=1.4, where="mid")
    ax.step(places, rows.f_x[sequence], color=INK, linewidth=0.9, where="mid", label="F(x)")
    ax.axhline(float(rows.f_baseline.mean()), color=INK, linewidth=0.7, linestyle=":", label="mean F(x')")
    clean(ax, "top", "right")
    ax.margins(x=0)
    ax.legend(fontsize="x-small", frameon=False, ncols=4, loc="upper left")
    every = np.arange(len(rows.names))
    white = "white line: F(x') + sum of the values"
    ax.set_xlabel(f"{len(rows)} rows in the order of F(x); {white}\n{error_caption(rows, every)}")
    ax.set_ylabel("output")


def _one_force(rows: Stacked, ax: Axes, top: int) -> None:
    """One bar: what raises to the left of the sum, what lowers to its right, the largest next to it."""
    values, end = rows.values[0], float(rows.f_baseline[0] + rows.values[0].sum())
    labels = getattr(rows._explained[0], "labels", rows.names)
    shown = set(by_size(rows, min(top, 6)).tolist())
    for sign, colour in ((1, FOR), (-1, AGAINST)):
        at = end
        for rank, i in enumerate(sorted(np.flatnonzero(values * sign > 0), key=lambda k: -abs(values[k]))):
            start = at - values[i]
            ax.barh(0, values[i], left=start, height=0.5, color=colour, edgecolor="white", linewidth=1.0)
            if int(i) in shown:
                middle, lower = (start + at) / 2, -0.32 - 0.17 * (rank % 3)
                ax.text(middle, lower, short(labels[int(i)]), ha="center", va="top", fontsize="x-small", color=colour)
            at = start
    f_x, f_baseline = float(rows.f_x[0]), float(rows.f_baseline[0])
    for value, name in ((f_x, "F(x)"), (f_baseline, "F(x')"), (end, "sum")):
        if name != "sum" or abs(end - f_x) > 0.02 * (abs(f_x - f_baseline) or 1.0):
            ax.axvline(value, color=GREY if name == "sum" else INK, linewidth=0.8, linestyle=":")
            height = 0.3 if name == "sum" else 0.45
            ax.text(value, height, f"{name} = {value:.4g}", ha="center", fontsize="x-small")
    ax.set_ylim(-1.0, 0.6)
    ax.set_yticks([])
    clean(ax, "top", "right", "left")
    ax.set_xlabel(f"red raises the output, blue lowers it\n{error_caption(rows, np.arange(len(values)))}")
