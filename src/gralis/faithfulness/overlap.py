"""Overlap with what an expert marked; the model is not called."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from gralis.errors import bad
from gralis.faithfulness.score import Score
from gralis.faithfulness.scored_input import Case, case, finite
from gralis.methods.method import Words


def pointing_game(
    model: object,
    x: object,
    attribution: object,
    *,
    annotation: object,
    **asked: Unpack[Words],
) -> Score:
    """1 if the pixel of the largest (signed) attribution lies in the annotation; a tie counts by its share in there.

    `annotation` (H, W): true, or not 0, where the expert marked.

    >>> values, marked = np.array([[0.0, 2.0], [-5.0, 1.0]]), np.array([[0, 1], [0, 0]])
    >>> pointing_game(lambda z: z.sum((1, 2)), np.ones((2, 2)), values, annotation=marked).value
    1.0
    """
    with case(pointing_game, model, x, attribution, asked) as found:
        marked, painted = _marked(annotation, found, "pointing_game"), found.pixels().values
        return Score("pointing_game", float(marked[painted == painted.max()].mean()), "higher")


def iou(
    model: object,
    x: object,
    attribution: object,
    *,
    annotation: object,
    **asked: Unpack[Words],
) -> Score:
    """|top & annotation| / |top u annotation|, `top` being as many pixels of the largest attribution as were marked."""
    with case(iou, model, x, attribution, asked) as found:
        marked, pixels = _marked(annotation, found, "iou"), found.pixels()
        top = np.zeros(len(marked), dtype=bool)
        top[pixels.order()[: int(marked.sum())]] = True
        return Score("iou", float((top & marked).sum() / (top | marked).sum()), "higher")


def mass_inside(
    model: object,
    x: object,
    attribution: object,
    *,
    annotation: object,
    **asked: Unpack[Words],
) -> Score:
    """The share of the positive attribution that lies in the annotation; a region's value is shared by its pixels."""
    with case(mass_inside, model, x, attribution, asked) as found:
        marked, positive = _marked(annotation, found, "mass_inside"), np.maximum(found.picture().ravel(), 0.0)
        value = float(positive[marked].sum() / positive.sum()) if positive.any() else 0.0
        return Score("mass_inside", value, "higher")


def _marked(annotation: object, found: Case, owner: str) -> NDArray[np.bool_]:
    """The annotation pixel by pixel, (H * W,)."""
    shape = found.features.shapes[0][-2:]
    allowed = f"an array of shape {shape} with at least one pixel marked"
    marked = finite(annotation, "annotation", owner, allowed, kinds="bfiu") != 0
    if marked.shape != shape or not marked.any():
        raise bad("annotation", owner, allowed, f"shape {marked.shape}, {int(marked.sum())} pixels marked")
    return np.asarray(marked.ravel())
