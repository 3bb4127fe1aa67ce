"""What pictures of many rows share: the order of features, colours of entries, and how much is sampling error."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.results.stacked import Stacked
from gralis.views.colours import AGAINST, FOR, GREY, LINES
from gralis.views.names import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

__all__ = [
    "as_numbers",
    "by_size",
    "clean",
    "colour_bar",
    "colour_legend",
    "colours_of",
    "error_caption",
    "error_share",
    "low_to_high",
    "ranked",
    "text_colours",
]


def low_to_high() -> Colormap:
    """The colours of entries from low to high."""
    from matplotlib.colors import LinearSegmentedColormap

    return LinearSegmentedColormap.from_list("low to high", [AGAINST, "#b9a3c9", FOR], N=256)


def by_size(rows: Stacked, top: int) -> NDArray[np.int64]:
    """The features with the largest mean |value|, the largest first."""
    return np.argsort(-np.abs(rows.values).mean(0), kind="stable")[:top]


def as_numbers(entries: NDArray[Any]) -> Array:
    """What a feature is in every row as numbers; NaN for texts and missing entries."""
    if entries.dtype != object:
        return entries.astype(np.float64)
    known = [isinstance(entry, int | float | np.number) and not isinstance(entry, str) for entry in entries]
    return np.array([float(e) if ok and e is not None else np.nan for e, ok in zip(entries, known, strict=True)])


def ranked(entries: NDArray[Any]) -> Array:
    """The entries of one feature between 0 and 1, by rank, so that no outlier takes all colours; NaN for texts."""
    numbers = as_numbers(entries)
    known = np.unique(numbers[np.isfinite(numbers)])
    if len(known) < 2:
        return np.where(np.isfinite(numbers), 0.5, np.nan)
    places = np.searchsorted(known, numbers) / (len(known) - 1)
    return np.where(np.isfinite(numbers), places, np.nan)


def error_share(rows: Stacked, features: NDArray[np.int64]) -> float:
    """mean stderr^2 / variance of the values over the rows, for these features together; NaN if an error is unknown."""
    values, errors = rows.values[:, features], rows.stderr[:, features]
    spread = float(((values - values.mean(0)) ** 2).mean()) if len(values) > 1 else float((values**2).mean())
    noise = float((errors**2).mean())
    return noise / spread if spread else (0.0 if noise == 0 else float("nan"))


def error_caption(rows: Stacked, features: NDArray[np.int64]) -> str:
    """How much of the spread of these values is sampling error, as a line of a caption."""
    if not rows.stderr[:, features].any():
        return "no sampling error"
    share = error_share(rows, features)
    if np.isnan(share):
        return "sampling error unknown"
    of = "spread over the rows" if len(rows) > 1 else "squared values"
    text = f"{100 * share:.0f}%" if share >= 0.01 else "less than 1%"
    return f"sampling error: {text} of the {of} (variance)"


def colour_bar(ax: Axes, label: str, low: str = "low", high: str = "high") -> None:
    """A bar of the colours of entries beside the axes; grey stands for texts and missing entries."""
    from matplotlib.cm import ScalarMappable

    bar = ax.figure.colorbar(ScalarMappable(cmap=low_to_high()), ax=ax, fraction=0.025, pad=0.02, aspect=40)
    bar.set_ticks([0, 1], labels=[low, high])
    bar.ax.tick_params(length=0, labelsize="small")
    bar.set_label(label, fontsize="small", labelpad=-6)
    bar.outline.set_visible(False)


def colours_of(entries: NDArray[Any]) -> NDArray[Any]:
    """The colour of every entry, (n_rows, 4)."""
    from matplotlib.colors import to_rgba

    places = ranked(entries)
    return np.where(np.isfinite(places)[:, None], low_to_high()(np.nan_to_num(places)), to_rgba(GREY))


def text_colours(entries: NDArray[Any]) -> dict[str, str]:
    """A colour for each of the most frequent texts of a feature, in the order of the texts; empty if there are none."""
    numbers = as_numbers(entries)
    texts = Counter(str(e) for e, x in zip(entries, numbers, strict=True) if np.isnan(x) and e is not None and e == e)
    frequent = sorted(text for text, _ in texts.most_common(len(LINES) - 1))
    return dict(zip(frequent, LINES, strict=False))


def colour_legend(ax: Axes, label: str, colours: dict[str, str], others: bool) -> None:
    """The colours of texts beside the axes, and grey for other texts and missing entries if there are some."""
    from matplotlib.lines import Line2D

    shown = {short(text): colour for text, colour in colours.items()} | ({"other or missing": GREY} if others else {})
    dots = [Line2D([], [], marker="o", linestyle="", color=colour, label=text) for text, colour in shown.items()]
    found = ax.legend(handles=dots, title=label, loc="upper left", bbox_to_anchor=(1.0, 1.0), fontsize="small")
    found.get_title().set_fontsize("small")
    found.set_frame_on(False)


def clean(ax: Axes, *sides: str) -> None:
    """Hide these sides of the frame."""
    ax.spines[list(sides)].set_visible(False)
