"""The values of one feature over what it is, coloured by the partner with which it interacts most."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.results.stacked import Stacked
from gralis.views.colours import GREY, INK
from gralis.views.names import short
from gralis.views.row_parts import (
    as_numbers,
    by_size,
    clean,
    colour_bar,
    colour_legend,
    colours_of,
    error_caption,
    text_colours,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["scatter", "strongest_partner"]

_AT_ROUNDING = 1e-12  # of the largest value: an interaction below this is rounding
_MOST_ROWS = 30  # whose interactions are read to choose the partner


def scatter(
    rows: Stacked, ax: Axes, *, level: float, feature: int | None, partner: int | None, rng: Any, **_: Any
) -> None:
    """One dot per row with its interval: what the feature is, and its value."""
    own = int(by_size(rows, 1)[0]) if feature is None else feature
    chosen, how = (partner, "chosen by you") if partner is not None else strongest_partner(rows, own)
    values, data = rows.values[:, own], rows.data
    places, ticks = _places(data[:, own], rng)
    half = np.where(rows.stderr[:, own] == 0, 0.0, rows.half_widths(level)[:, own])
    known = np.isfinite(half) & (half > 0)
    if known.any():
        ax.errorbar(places[known], values[known], yerr=half[known], fmt="none", ecolor=GREY, elinewidth=0.7, zorder=2)
    beside = None if chosen is None else data[:, chosen]
    texts = {} if beside is None else text_colours(beside)
    colours: Any = INK if beside is None else colours_of(beside)
    if beside is not None and texts:
        colours = [texts.get(str(entry), GREY) for entry in beside]
    ax.scatter(places, values, s=18, c=colours, linewidths=0, alpha=0.9, zorder=3)
    ax.axhline(0, color=INK, linewidth=0.6, zorder=1)
    if ticks:
        ax.set_xticks(list(ticks.values()), [short(str(name)) for name in ticks], rotation=30 if len(ticks) > 5 else 0)
    clean(ax, "top", "right")
    errors = f"\nlines: {100 * level:.4g}% intervals, together within a row" if known.any() else ""
    ax.set_xlabel(f"{rows.names[own]}\n{error_caption(rows, np.array([own]))}{errors}", fontsize="medium")
    ax.set_ylabel(f"value of {short(rows.names[own])}")
    if chosen is None or beside is None:
        return
    ax.set_title(f"coloured by {short(rows.names[chosen])}, {how}", fontsize="medium")
    if texts:
        colour_legend(ax, short(rows.names[chosen]), texts, any(str(entry) not in texts for entry in beside))
        return
    numbers = as_numbers(beside)
    seen = numbers[np.isfinite(numbers)]
    ends = (f"{seen.min():.3g}", f"{seen.max():.3g}") if len(seen) else ("", "")
    colour_bar(ax, short(rows.names[chosen]), *ends)


def strongest_partner(rows: Stacked, feature: int) -> tuple[int | None, str]:
    """The feature with the largest Shapley interaction with this one over the rows, and how it was found.

    If the ledgers give no interactions, it is the feature whose entries go best with what the feature itself leaves
    unexplained in its values.

    Parameters
    ----------
    rows : Stacked
        The rows.
    feature : int
        The feature.

    Returns
    -------
    partner : int or None
        None if there is no other feature, or none that interacts with this one.
    how : str
        How it was found, as part of a title.
    """
    n = len(rows.names)
    if n < 2:
        return None, ""
    try:
        strength = _interactions(rows)[feature]
        how = "its strongest partner (SII {:.2g})"
    except GralisError:
        strength = _association(rows, feature)
        how = "which goes best with what is left (|correlation| {:.2g})"
    strength[feature] = -1.0
    partner = int(strength.argmax())
    if strength[partner] <= _AT_ROUNDING * np.abs(rows.values).max():
        return None, ""
    return partner, how.format(strength[partner])


def _interactions(rows: Stacked) -> Array:
    """The root mean square of SII of all pairs over rows of the data set, without the part that is sampling error."""
    explained = rows._explained
    chosen = np.unique(np.linspace(0, len(explained) - 1, min(len(explained), _MOST_ROWS)).astype(int))
    squares = []
    for found in (explained[int(k)].interactions(2) for k in chosen):
        errors = np.zeros((len(rows.names), len(rows.names)))
        for (i, *others), error in zip(found.coalitions, found.stderr, strict=True):
            j = others[0] if others else i
            errors[i, j] = errors[j, i] = error
        squares.append(found.matrix() ** 2 - errors**2)
    mean = np.mean(squares, axis=0)
    if not (np.nan_to_num(mean - np.diag(np.diag(mean))) > 0).any():
        raise GralisError("The interactions of these rows are smaller than their errors.")
    return np.asarray(np.sqrt(np.maximum(np.nan_to_num(mean), 0.0)))


def _association(rows: Stacked, feature: int) -> Array:
    """|correlation| of every other feature with the values, after the trend over the feature itself is removed."""
    values, data = rows.values[:, feature], rows.data
    own = np.argsort(as_numbers(data[:, feature]), kind="stable")
    window = max(3, len(values) // 10)
    smooth = np.convolve(values[own], np.ones(window) / window, mode="same")
    left = values[own] - smooth
    strength = np.zeros(len(rows.names))
    for other in range(len(rows.names)):
        entries = as_numbers(data[:, other])[own]
        known = np.isfinite(entries)
        if known.sum() > 3 and entries[known].std() > 0 and left[known].std() > 0:
            strength[other] = abs(np.corrcoef(entries[known], left[known])[0, 1])
    return strength


def _places(entries: NDArray[Any], rng: np.random.Generator) -> tuple[Array, dict[str, float]]:
    """Where the rows stand: at their numbers, or at the place of their text with jitter; and the ticks of texts."""
    numbers = as_numbers(entries)
    texts = {str(e) for e, x in zip(entries, numbers, strict=True) if not np.isfinite(x) and e is not None}
    missing = np.array([e is None or (isinstance(e, float) and np.isnan(e)) for e in entries])
    if not texts and not missing.any():
        return numbers, {}
    if texts:
        ticks = {name: float(k) for k, name in enumerate([*sorted({str(e) for e in entries if e is not None})])}
        if missing.any():
            ticks["missing"] = float(len(ticks))
        spread = np.array([ticks["missing"] if m else ticks[str(e)] for e, m in zip(entries, missing, strict=True)])
        return spread + rng.uniform(-0.15, 0.15, len(spread)), ticks
    known = numbers[~missing] if (~missing).any() else np.zeros(1)
    beyond = float(known.max() + 0.15 * ((known.max() - known.min()) or 1.0))
    ends = {f"{known.min():.4g}": float(known.min()), f"{known.max():.4g}": float(known.max()), "missing": beyond}
    return np.where(missing, beyond, numbers), ends
