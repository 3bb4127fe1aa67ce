"""Pictures of an explanation by their kind. No window is opened and no pyplot state is touched: a figure is returned.

A kind of your own is one function; `register_plot` gives it a name that `Explanation.plot` knows.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from gralis.arrays import describe
from gralis.checks import function, one_of, positive, whole
from gralis.errors import GralisError, bad
from gralis.registry import Registry
from gralis.results.explanation import Explanation
from gralis.views import charts, tokens
from gralis.views.bars import bars
from gralis.views.heatmap import heatmap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["new_figure", "plot", "plot_kinds", "register_plot"]

#: Width and height of a figure in inches, or a function of the explanation and of `top` that gives them.
FigureSize: TypeAlias = tuple[float, float] | Callable[[Explanation, int], tuple[float, float]]

_SQUARE = (5.6, 4.6)
_WIDTH, _BAR_INCHES = 6.4, 0.3


def _bars_size(e: Explanation, top: int) -> tuple[float, float]:
    return _WIDTH, 1.5 + _BAR_INCHES * min(top, e.n_features)


def _waterfall_size(e: Explanation, top: int) -> tuple[float, float]:
    return _WIDTH, 1.5 + _BAR_INCHES * (min(top, e.n_features) + 4)  # the rest, and the parts of the residual


def _text_size(e: Explanation, top: int) -> tuple[float, float]:
    return _WIDTH, 0.6 + _BAR_INCHES * len(tokens.lines(e))


_DRAWN: dict[str, Callable[..., None]] = {
    "bars": bars,
    "heatmap": heatmap,
    "waterfall": charts.waterfall,
    "interactions": charts.interactions,
    "network": charts.network,
    "convergence": charts.convergence,
    "text": tokens.text,
}
_KINDS = Registry("register_plot", _DRAWN, "kind")
_SIZES: dict[str, FigureSize] = {"bars": _bars_size, "waterfall": _waterfall_size, "text": _text_size}


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
    """A picture of phi, on `ax` or on a new figure.

    Parameters
    ----------
    explanation : Explanation
        What is drawn.
    kind : str, default="bars"
        One of `plot_kinds()`.

        - "bars": the `top` features with the largest |phi|, with their simultaneous intervals at `level`.
        - "heatmap": phi at its place on an image x. A pixel shows the sum of the features that own it, and counts each
          of them once.
        - "waterfall": from F(x') to F(x), feature by feature, with the parts of the residual as the last steps.
        - "interactions": the Shapley interaction index of pairs, for the `top` features that interact most.
        - "network": the same pairs as lines between features.
        - "convergence": how the largest values and their intervals developed as replicates came in.
        - "text": the tokens in their order, coloured by phi and underlined where the interval at `level` excludes zero.
    ax : matplotlib.axes.Axes, optional
        Where to draw. By default a new figure is made.
    image : array, optional
        For "heatmap": the picture to show in grey below the colours, (height, width), (height, width, channels) or
        (channels, height, width), in any range.
    top : int, default=15
        How many features are shown.
    level : float, default=0.95
        The level of the simultaneous intervals.
    mark : int, default=0
        For "heatmap": how many of the largest features are named on the picture.
    limit : float, optional
        For "heatmap": the end of the colour scale, which runs from -limit to limit. Pictures with the same limit can
        be compared. By default it is the largest |phi|.

    Returns
    -------
    matplotlib.figure.Figure
        The figure. A notebook shows it if it is the last value of a cell, without a magic command; no window opens.

    Examples
    --------
    >>> import gralis, torch
    >>> explanation = gralis.explain(lambda z: (z[:, 0] ** 2).sum((1, 2)), torch.ones(3, 2, 2))
    >>> [len(plot(explanation, kind).axes) for kind in ("bars", "heatmap")]  # the heat map has a colour bar
    [1, 2]
    """
    draw = _KINDS[one_of(kind, plot_kinds(), "kind", "plot")]
    top, mark = whole(top, "top", 1, "plot"), whole(mark, "mark", 0, "plot")
    if limit is not None:
        limit = positive(limit, "limit", "plot")
    if not isinstance(explanation, Explanation):
        raise bad("explanation", "plot", "an Explanation that explain returned", describe(explanation))
    size = _SIZES.get(kind, _SQUARE)
    ax = axes(ax, *(size if isinstance(size, tuple) else size(explanation, top)))
    draw(explanation, ax, top=top, level=level, image=image, mark=mark, limit=limit)
    return ax.figure.figure  # the whole figure, also from inside a subfigure


def plot_kinds() -> tuple[str, ...]:
    """The kinds that `plot` knows, including those that were registered.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> plot_kinds()[:3]
    ('bars', 'heatmap', 'waterfall')
    """
    return tuple(_KINDS)


def register_plot(kind: str, draw: Callable[..., None], size: FigureSize = _SQUARE) -> None:
    """Let `Explanation.plot(kind)` draw a picture of your own.

    Parameters
    ----------
    kind : str
        The name of the picture. It replaces a picture that was registered under this name before; the names of the
        pictures of gralis itself are taken.
    draw : callable
        Called as `draw(explanation, ax, top=..., level=..., image=..., mark=..., limit=...)`; it draws on `ax`. A
        function that does not need all of these options takes the others as `**_`.
    size : (float, float) or callable, default=(5.6, 4.6)
        Width and height of a new figure in inches, or a function `size(explanation, top)` that returns them.

    Examples
    --------
    >>> import gralis, torch
    >>> def dots(explanation, ax, *, top, **_):
    ...     ax.plot(explanation.values[:top], "o")
    >>> register_plot("dots", dots)
    >>> len(gralis.explain(lambda z: z.sum(1), torch.ones(3)).plot("dots").axes)
    1
    """
    _KINDS[kind] = function(draw, "draw", "register_plot", "that draws an explanation on axes")
    _SIZES[kind] = size


def axes(ax: Axes | None, width: float, height: float) -> Axes:
    """The axes of the user, or those of a new figure of this size."""
    if ax is not None and not hasattr(ax, "barh"):
        raise bad("ax", "plot", "a matplotlib Axes", describe(ax))
    return new_figure(width, height).add_subplot() if ax is None else ax


def new_figure(width: float, height: float) -> Figure:
    """An empty figure that pyplot does not know.

    Parameters
    ----------
    width, height : float
        The size in inches.

    Returns
    -------
    matplotlib.figure.Figure
    """
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise GralisError('Pictures need matplotlib: pip install "gralis[plot]".') from error
    size = positive(width, "width", "new_figure"), positive(height, "height", "new_figure")
    figure: Figure = _shown_figure(Figure)(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


@cache
def _shown_figure(base: Any) -> Any:
    """A figure that a notebook shows by itself, whether or not matplotlib's magic commands were given."""

    class ShownFigure(base):  # type: ignore[misc]
        """A figure with its picture for notebooks."""

        def _repr_png_(self) -> bytes:
            stream = io.BytesIO()
            self.savefig(stream, format="png", dpi=100)
            return stream.getvalue()

    return ShownFigure
