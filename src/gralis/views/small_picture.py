"""The picture that a notebook shows above a table: the values on the image, without axes or words."""

from __future__ import annotations

import base64
import io

import numpy as np
from numpy.typing import NDArray

from gralis.errors import GralisError
from gralis.features.pictures import picture_axes
from gralis.results.result import FeatureResult
from gralis.views.colours import DIVERGING
from gralis.views.heatmap import grey
from gralis.views.pixels import on_grid, owners
from gralis.views.plots import new_figure

__all__ = ["small_picture"]

_INCHES = 2.6
_REGIONS = ("slic", "grid")


def small_picture(result: FeatureResult, x: NDArray[np.generic] | None = None) -> str:
    """An <img> with the values on the image x, red for and blue against; nothing if the input is no image.

    Parameters
    ----------
    result : FeatureResult
        The values, and the features that they belong to.
    x : array, optional
        The image, which is shown in grey below the colours.

    Returns
    -------
    str
        HTML; empty if there is no image, or if matplotlib is missing.
    """
    features = result.features
    if features is None or len(features.shapes) != 1 or result.n_features != features.n_features:
        return ""
    if picture_axes(features.shapes[0]) is None and features.kind not in _REGIONS:
        return ""
    try:
        values = on_grid(result.values, owners(features))
        height, width = values.shape
        figure = new_figure(_INCHES * min(1.0, width / height), _INCHES * min(1.0, height / width))
        below = None if x is None else grey(x, values.shape)
    except GralisError:  # a volume, or no matplotlib
        return ""
    figure.set_layout_engine("none")  # the picture fills the figure
    ax = figure.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    limit = float(np.abs(values).max()) or 1.0
    strength = None
    if below is not None:
        ax.imshow(below, cmap="gray", vmin=-0.5, vmax=1)
        strength = 0.25 + 0.5 * np.abs(values) / limit  # weak regions let the picture through
    ax.imshow(values, cmap=DIVERGING, vmin=-limit, vmax=limit, alpha=strength, interpolation="nearest")
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=100)
    data = base64.b64encode(stream.getvalue()).decode("ascii")
    return f'<img alt="red regions raise the output, blue regions lower it" src="data:image/png;base64,{data}">'
