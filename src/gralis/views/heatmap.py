"""The heat map: phi on the grid of an image, with the borders and names of its regions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.ndimage import distance_transform_edt

from gralis.arrays import Array, Shape
from gralis.features.labels import Labels
from gralis.results.explanation import Explanation
from gralis.views.bars import doubt_count, headline
from gralis.views.colours import DIVERGING, INK
from gralis.views.feature_tags import tag
from gralis.views.names import literal
from gralis.views.pixels import channels_last, on_grid, owners

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["grey", "heatmap"]

_FEWEST_PIXELS = 4  # per feature, on average, for borders to be drawn


def heatmap(e: Explanation, ax: Axes, *, image: object, mark: int, limit: float | None, **_: Any) -> None:
    """phi at its place on an image x, over the grey picture `image`. A pixel shows the sum of the features that own it.

    The `mark` largest features are named. `limit` is the end of the colour scale.
    """
    from matplotlib.colors import Normalize

    owned = owners(e.features)
    values = on_grid(e.values, owned)
    limit = limit or float(np.abs(values).max()) or 1.0
    scale = Normalize(-limit, limit)
    strength: Array | None = None
    if image is not None:
        ax.imshow(grey(image, values.shape), cmap="gray", vmin=-0.5, vmax=1)  # pale, so that colours stay true
        strength = 0.25 + 0.5 * np.minimum(np.abs(values) / limit, 1.0)  # weak regions let the picture through
    drawn = ax.imshow(values, cmap=DIVERGING, norm=scale, alpha=strength, interpolation="nearest")
    if e.n_features * _FEWEST_PIXELS <= values.size:
        _draw_borders(ax, owned)
        _draw_names(e, ax, owned, mark)
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title("\n".join([headline(e), *([doubt_count(e.doubts)] if e.doubts else [])]), fontsize="medium")
    ax.figure.colorbar(drawn, ax=ax, fraction=0.046, pad=0.03, label="phi")


def grey(image: object, shape: Shape) -> Array:
    """The picture in grey, stretched to [0, 1]."""
    pixels = channels_last(image, shape, "image", "plot")
    pixels = pixels[..., :3] @ (0.299, 0.587, 0.114) if pixels.shape[-1] in (3, 4) else pixels.mean(-1)
    return np.asarray((pixels - pixels.min()) / (np.ptp(pixels) or 1.0))


def _draw_borders(ax: Axes, owned: Labels) -> None:
    """A thin line between neighbours that belong to different features."""
    from matplotlib.collections import LineCollection

    rows, columns = np.nonzero((owned[:, 1:] != owned[:, :-1]).any(0))  # between a pixel and the one below
    flat = np.stack([np.stack([columns - 0.5, rows + 0.5], 1), np.stack([columns + 0.5, rows + 0.5], 1)], 1)
    rows, columns = np.nonzero((owned[:, :, 1:] != owned[:, :, :-1]).any(0))  # and the one to the right
    upright = np.stack([np.stack([columns + 0.5, rows - 0.5], 1), np.stack([columns + 0.5, rows + 0.5], 1)], 1)
    lines = np.concatenate([flat, upright])
    ax.add_collection(LineCollection(list(lines), colors=INK, linewidths=0.5, alpha=0.8), autolim=False)


def _draw_names(e: Explanation, ax: Axes, owned: Labels, mark: int) -> None:
    """The largest features by name, each where it is widest."""
    from matplotlib.patheffects import withStroke

    for feature in np.argsort(-np.abs(e.values), kind="stable")[:mark]:
        inside = np.pad((owned == feature).any(0), 1)
        row, column = np.unravel_index(np.argmax(distance_transform_edt(inside)), inside.shape)
        ax.text(
            float(column) - 1,
            float(row) - 1,
            literal(tag(e.names[int(feature)])),
            ha="center",
            va="center",
            fontsize="small",
            color="black",
            path_effects=[withStroke(linewidth=2, foreground="white")],
        )
