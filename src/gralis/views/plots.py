"""Pictures: bars with error bars, and a heat map on the input's own grid. Nothing is shown and no pyplot state touched.

A figure is returned; in a notebook it appears by itself after `%matplotlib inline`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import distance_transform_edt

from gralis.arrays import Array, Shape, describe, to_numpy
from gralis.checks import is_whole
from gralis.errors import GralisError, bad
from gralis.features.labels import Labels
from gralis.views import charts, tokens
from gralis.views.pixels import on_grid, owners

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from gralis.results.explanation import Explanation

_COLOURS = "RdBu_r"  # red for, blue against: told apart by every common kind of colour blindness
_FOR, _AGAINST, _INK = "#d6604d", "#4393c3", "#222222"
_LONGEST_NAME = 32
_FEWEST_PIXELS = 4  # per feature, on average, for borders to be drawn
_BAR_INCHES = 0.3


def plot(
    explanation: Explanation,
    kind: str = "bars",
    *,
    ax: Axes | None = None,
    image: object = None,
    top: int = 15,
    level: float = 0.95,
    mark: int = 0,
    limit: float | None = None,
) -> Figure:
    """A picture of phi, on `ax` or on a figure of its own.

    "bars": the `top` features with the largest |phi|, with their simultaneous intervals at `level`.
    "heatmap": phi where it belongs on an image x, over the grey picture `image` (HWC, CHW or HW, any range); a pixel
    shows the sum of the features that own it, each counted once. The `mark` largest features are named on it. `limit`
    is the end of the colour scale, -limit to limit: give several pictures the same one to compare them.
    "waterfall": from F(x') to F(x), feature by feature, with the parts of the residual as its last steps.
    "interactions": the Shapley interaction index of pairs, for the `top` features that interact most; "network" draws
    the same pairs as lines between features. "convergence": how the largest values and their intervals came about.
    "text": the tokens in their order, coloured by phi; underlined where the interval at `level` excludes zero.

    >>> import gralis, torch
    >>> explanation = gralis.explain(lambda z: (z[:, 0] ** 2).sum((1, 2)), torch.ones(3, 2, 2))
    >>> [len(plot(explanation, kind).axes) for kind in ("bars", "heatmap")]  # the heat map has a colour bar
    [1, 2]
    """
    if kind not in _KINDS:
        raise bad("kind", "plot", f"one of {', '.join(map(repr, _KINDS))}", repr(kind))
    for name, value, least in (("top", top, 1), ("mark", mark, 0)):
        if not is_whole(value, least):
            raise bad(name, "plot", f"a whole number >= {least}", repr(value))
    if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float) or not 0 < limit < np.inf):
        raise bad("limit", "plot", "None or a number > 0", repr(limit))
    if ax is not None and not hasattr(ax, "barh"):
        raise bad("ax", "plot", "a matplotlib Axes", describe(ax))
    if ax is None:
        ax = new_figure(*_size(explanation, kind, top)).add_subplot()
    _KINDS[kind](explanation, ax, top=int(top), level=level, image=image, mark=int(mark), limit=limit)
    return ax.figure.figure  # the whole figure, also from inside a subfigure


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches, that pyplot knows nothing about."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise GralisError('Pictures need matplotlib: pip install "gralis[plot]".') from error
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def _size(explanation: Explanation, kind: str, top: int) -> tuple[float, float]:
    if kind in ("bars", "waterfall"):
        steps = min(top, explanation.n_features) + (4 if kind == "waterfall" else 0)
        return 6.4, 1.5 + _BAR_INCHES * steps
    if kind == "text":
        return 6.4, 0.6 + _BAR_INCHES * len(tokens.lines(explanation))
    return 5.6, 4.6


# --- bars ------------------------------------------------------------------------------------------------------------


def _bars(e: Explanation, ax: Axes, *, top: int, level: float, **_: Any) -> None:
    order = np.argsort(-np.abs(e.values), kind="stable")[:top]
    places, values = np.arange(len(order)), e.values[order]
    half = (np.diff(e.interval(level), axis=1)[:, 0] / 2)[order]
    ax.barh(places, values, color=[_FOR if value > 0 else _AGAINST for value in values], height=0.72)
    known = np.isfinite(half) & (half > 0)
    if known.any():
        ax.errorbar(values[known], places[known], xerr=half[known], fmt="none", ecolor=_INK, elinewidth=1, capsize=2.5)
    ax.axvline(0, color=_INK, linewidth=0.8)
    ax.set_yticks(places, [_short(e.names[int(i)]) for i in order])
    ax.set_ylim(len(order) - 0.4, -0.6)  # the largest on top
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_title(_title(e), fontsize="medium")
    ax.set_xlabel("\n".join(_caption(e, order, known, level)))


def _title(e: Explanation) -> str:
    residual = e.delta - e.values.sum()
    return f"F(x) = {e.f_x:.4g}   F(x') = {e.f_baseline:.4g}   residual {residual:.3g}"


def _caption(e: Explanation, order: NDArray[np.int64], known: NDArray[np.bool_], level: float) -> list[str]:
    """What the axis shows, and what the bars leave out."""
    errors = f"lines: simultaneous {100 * level:.4g}% intervals" if known.any() else "errors unknown"
    lines = [f"phi ({'no sampling error' if e.estimate.exact else errors})"]
    if e.n_features > len(order):
        rest = e.values.sum() - e.values[order].sum()
        lines.append(f"{e.n_features - len(order)} more features, together {rest:.3g}")
    return lines


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


# --- heat map --------------------------------------------------------------------------------------------------------


def _heatmap(e: Explanation, ax: Axes, *, image: object, mark: int, limit: float | None, **_: Any) -> None:
    from matplotlib.colors import Normalize

    owned = owners(e)
    values = on_grid(e.values, owned)
    limit = limit or float(np.abs(values).max()) or 1.0
    scale = Normalize(-limit, limit)
    strength: Array | None = None
    if image is not None:
        ax.imshow(_grey(image, values.shape), cmap="gray", vmin=-0.5, vmax=1)  # pale, so that colours stay true
        strength = 0.25 + 0.5 * np.minimum(np.abs(values) / limit, 1.0)  # weak regions let the picture through
    drawn = ax.imshow(values, cmap=_COLOURS, norm=scale, alpha=strength, interpolation="nearest")
    if e.n_features * _FEWEST_PIXELS <= values.size:
        _draw_borders(ax, owned)
        _draw_names(e, ax, owned, mark)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title(_title(e), fontsize="medium")
    ax.figure.colorbar(drawn, ax=ax, fraction=0.046, pad=0.03, label="phi")


def _grey(image: object, shape: Shape) -> Array:
    """The picture in grey, stretched to [0, 1]."""
    try:
        pixels = to_numpy(image).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise bad("image", "plot", "an array of real numbers", describe(image)) from error
    full = pixels.shape
    if pixels.ndim == 3:
        axis = 0 if full[1:] == shape else 2
        pixels = np.moveaxis(pixels, axis, -1)
        pixels = pixels[..., :3] @ (0.299, 0.587, 0.114) if pixels.shape[-1] in (3, 4) else pixels.mean(-1)
    if pixels.shape != shape:
        allowed = f"a picture of {shape[0]} x {shape[1]} pixels, as x has"
        raise bad("image", "plot", allowed, f"shape {full}")
    if not np.isfinite(pixels).all():
        raise bad("image", "plot", "finite", "NaN or infinite pixels")
    return np.asarray((pixels - pixels.min()) / (np.ptp(pixels) or 1.0))


def _draw_borders(ax: Axes, owned: Labels) -> None:
    """A thin line between neighbours that belong to different features."""
    from matplotlib.collections import LineCollection

    rows, columns = np.nonzero((owned[:, 1:] != owned[:, :-1]).any(0))  # between a pixel and the one below
    flat = np.stack([np.stack([columns - 0.5, rows + 0.5], 1), np.stack([columns + 0.5, rows + 0.5], 1)], 1)
    rows, columns = np.nonzero((owned[:, :, 1:] != owned[:, :, :-1]).any(0))  # and the one to the right
    upright = np.stack([np.stack([columns + 0.5, rows - 0.5], 1), np.stack([columns + 0.5, rows + 0.5], 1)], 1)
    lines = np.concatenate([flat, upright])
    ax.add_collection(LineCollection(list(lines), colors=_INK, linewidths=0.5, alpha=0.8), autolim=False)


def _draw_names(e: Explanation, ax: Axes, owned: Labels, mark: int) -> None:
    """The largest features by name, each where it is widest."""
    from matplotlib.patheffects import withStroke

    for feature in np.argsort(-np.abs(e.values), kind="stable")[:mark]:
        inside = np.pad((owned == feature).any(0), 1)
        row, column = np.unravel_index(np.argmax(distance_transform_edt(inside)), inside.shape)
        name = e.names[int(feature)]
        numbered = re.fullmatch(r"\w+ (\d+)", name)  # "region 12": the number says it
        ax.text(
            float(column) - 1,
            float(row) - 1,
            numbered[1] if numbered else _short(name),
            ha="center",
            va="center",
            fontsize="small",
            color="black",
            path_effects=[withStroke(linewidth=2, foreground="white")],
        )


_KINDS: dict[str, Callable[..., None]] = {
    "bars": _bars,
    "heatmap": _heatmap,
    "waterfall": charts.waterfall,
    "interactions": charts.interactions,
    "network": charts.network,
    "convergence": charts.convergence,
    "text": tokens.text,
}
