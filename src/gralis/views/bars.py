"""Bars: the largest values with their simultaneous intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gralis.results.explanation import Explanation
from gralis.views.colours import AGAINST, FOR, INK
from gralis.views.names import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["bars", "doubt_count", "headline"]


def bars(e: Explanation, ax: Axes, *, top: int, level: float, **_: Any) -> None:
    """The `top` features with the largest |phi|, with their simultaneous intervals at `level`."""
    order = np.argsort(-np.abs(e.values), kind="stable")[:top]
    places, values, half = (
        np.arange(len(order)),
        e.values[order],
        np.where(e.stderr == 0, 0.0, e.half_widths(level))[order],
    )
    ax.barh(places, values, color=[FOR if value > 0 else AGAINST for value in values], height=0.72)
    known = np.isfinite(half) & (half > 0)
    if known.any():
        ax.errorbar(values[known], places[known], xerr=half[known], fmt="none", ecolor=INK, elinewidth=1, capsize=2.5)
    ax.axvline(0, color=INK, linewidth=0.8)
    ax.set_yticks(places, [short(e.labels[int(i)]) for i in order])
    ax.set_ylim(len(order) - 0.4, -0.6)  # the largest on top
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_title(headline(e), fontsize="medium")
    ax.set_xlabel("\n".join(_caption(e, order, known, level)))


def doubt_count(doubts: Sequence[str]) -> str:
    """How many doubts there are, and where to read them; a picture has no room for the sentences.

    >>> doubt_count(["a"]), doubt_count(["a", "b"])
    ('1 doubt, see explanation.doubts', '2 doubts, see explanation.doubts')
    """
    return f"{len(doubts)} doubt{'' if len(doubts) == 1 else 's'}, see explanation.doubts"


def headline(e: Explanation) -> str:
    """F(x), F(x') and the residual in one line."""
    residual = e.delta - e.values.sum()
    return f"F(x) = {e.f_x:.4g}   F(x') = {e.f_baseline:.4g}   residual {residual:.3g}"


def _caption(e: Explanation, order: NDArray[np.int64], known: NDArray[np.bool_], level: float) -> list[str]:
    """What the axis shows, and what the bars leave out."""
    errors = f"lines: simultaneous {100 * level:.4g}% intervals" if known.any() else "errors unknown"
    lines = [f"phi ({'no error above rounding' if e.exact else errors})"]
    if e.doubts:
        lines[0] += f"; {doubt_count(e.doubts)}"
    if e.n_features > len(order):
        rest = e.values.sum() - e.values[order].sum()
        lines.append(f"{e.n_features - len(order)} more features, together {rest:.3g}")
    return lines
