"""Overlap with the pixels that an expert marked; the model is not called."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from gralis.api.signature import keywords_of
from gralis.errors import bad
from gralis.faithfulness.score import Score
from gralis.faithfulness.scored_input import ScoredInput, finite
from gralis.methods.settings import SharedKeywords, SharedSettings

__all__ = ["iou", "mass_inside", "pointing_game"]


@keywords_of(SharedSettings)
def pointing_game(
    model: object, x: object, attribution: object, *, annotation: object, **keywords: Unpack[SharedKeywords]
) -> Score:
    """1 if the pixel of the largest (signed) attribution lies in the annotation, else 0; higher is better.

    If several pixels share the largest value, the score is the share of them that lies in the annotation.

    Parameters
    ----------
    model : object
        The model F. It is not called.
    x : object
        One input, without a batch axis. Its last two axes are rows and columns.
    attribution : Attribution, Explanation or array
        What is scored: a result with `.values`, or an array with one number per feature or shaped like x.
    annotation : array of shape (H, W)
        The pixels that the expert marked: true, or not 0.

    Returns
    -------
    Score

    Examples
    --------
    >>> values, marked = np.array([[0.0, 2.0], [-5.0, 1.0]]), np.array([[0, 1], [0, 0]])
    >>> pointing_game(lambda z: z.sum((1, 2)), np.ones((2, 2)), values, annotation=marked).value
    1.0
    """
    with ScoredInput.open(pointing_game, model, x, attribution, keywords) as scored:
        marked, painted = _marked(annotation, scored, "pointing_game"), scored.pixels().values
        return Score("pointing_game", float(marked[painted == painted.max()].mean()), "higher")


@keywords_of(SharedSettings)
def iou(
    model: object, x: object, attribution: object, *, annotation: object, **keywords: Unpack[SharedKeywords]
) -> Score:
    """|top & annotation| / |top u annotation|: intersection over union with the annotation; higher is better.

    `top` are the pixels of the largest attribution, as many as the annotation has.

    Parameters
    ----------
    model : object
        The model F. It is not called.
    x : object
        One input, without a batch axis. Its last two axes are rows and columns.
    attribution : Attribution, Explanation or array
        What is scored: a result with `.values`, or an array with one number per feature or shaped like x.
    annotation : array of shape (H, W)
        The pixels that the expert marked: true, or not 0.

    Returns
    -------
    Score
    """
    with ScoredInput.open(iou, model, x, attribution, keywords) as scored:
        marked, pixels = _marked(annotation, scored, "iou"), scored.pixels()
        top = np.zeros(len(marked), dtype=bool)
        top[pixels.order()[: int(marked.sum())]] = True
        return Score("iou", float((top & marked).sum() / (top | marked).sum()), "higher")


@keywords_of(SharedSettings)
def mass_inside(
    model: object, x: object, attribution: object, *, annotation: object, **keywords: Unpack[SharedKeywords]
) -> Score:
    """The share of the positive attribution that lies in the annotation; higher is better.

    The value of a region is divided equally among its pixels.

    Parameters
    ----------
    model : object
        The model F. It is not called.
    x : object
        One input, without a batch axis. Its last two axes are rows and columns.
    attribution : Attribution, Explanation or array
        What is scored: a result with `.values`, or an array with one number per feature or shaped like x.
    annotation : array of shape (H, W)
        The pixels that the expert marked: true, or not 0.

    Returns
    -------
    Score
    """
    with ScoredInput.open(mass_inside, model, x, attribution, keywords) as scored:
        marked, positive = _marked(annotation, scored, "mass_inside"), np.maximum(scored.picture().ravel(), 0.0)
        value = float(positive[marked].sum() / positive.sum()) if positive.any() else 0.0
        return Score("mass_inside", value, "higher")


def _marked(annotation: object, scored: ScoredInput, owner: str) -> NDArray[np.bool_]:
    """The annotation pixel by pixel, (H * W,)."""
    shape = scored.features.shapes[0][-2:]
    allowed = f"an array of shape {shape} with at least one pixel marked"
    marked = finite(annotation, "annotation", owner, allowed, kinds="bfiu") != 0
    if marked.shape != shape or not marked.any():
        raise bad("annotation", owner, allowed, f"shape {marked.shape}, {int(marked.sum())} pixels marked")
    return np.asarray(marked.ravel())
