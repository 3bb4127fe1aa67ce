"""Inputs that are neither pictures nor tables, as the page draws them: a text, a series over time, or a volume."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.report.slider_rows import packed
from gralis.results.explanation import Explanation
from gralis.views.tokens import pieces

__all__ = ["input_view"]

_MOST_FEATURES = 400
_MOST_POINTS = 1200  # of one drawn signal
_MOST_CHANNELS = 6
_MOST_SIDE = 80  # voxels of a volume on the page
_LEAST_SIDE = 4


def input_view(e: Explanation) -> dict[str, Any] | None:
    """The text, series or volume behind x with its features, or None if x is none of them.

    Parameters
    ----------
    e : Explanation
        Its features have at most 400 members, so that a reader can point at each.

    Returns
    -------
    dict or None
        `type` is "text", "series" or "volume"; docs/report-schema.md describes the rest.
    """
    if e.n_features > _MOST_FEATURES or len(e.features.labels) != 1:
        return _text(e) if e.features.kind == "tokens" and e.n_features <= _MOST_FEATURES else None
    return _text(e) or _series(e) or _volume(e)


def _text(e: Explanation) -> dict[str, Any] | None:
    if e.features.kind != "tokens":
        return None
    return {"type": "text", "pieces": [[number, part] for number, part in pieces(e.features)]}


def _series(e: Explanation) -> dict[str, Any] | None:
    """The signals over time, each channel by itself, and from where to where each window goes."""
    labels = e.features.labels[0]
    if e.features.kind != "windows":
        return None
    time = 0 if labels.ndim == 1 else _time_axis(labels)
    owner = labels if labels.ndim == 1 else np.moveaxis(labels, time, 0)[:, 0]
    x, base = (_over_time(array, labels.ndim, time) for array in (e.endpoints.x[0], _mean_baseline(e)))
    step = max(-(-len(owner) // _MOST_POINTS), 1)
    places = [np.flatnonzero(owner == i) for i in range(e.n_features)]
    return {
        "type": "series",
        "length": len(owner),
        "windows": [[int(place[0]), int(place[-1]) + 1] for place in places],
        "step": step,
        "signals": x[:_MOST_CHANNELS, ::step],
        "baselines": base[:_MOST_CHANNELS, ::step],
        "n_channels": len(x),
        "rate": e.features.meta.get("rate"),
        "unit": e.features.meta.get("unit", "steps"),
    }


def _time_axis(labels: NDArray[Any]) -> int:
    """The axis along which windows follow one another; the longer one if a single window spans all steps."""
    steps_first, steps_last = bool((labels == labels[:, :1]).all()), bool((labels == labels[:1]).all())
    return int(not steps_first or (steps_last and labels.shape[1] >= labels.shape[0]))


def _over_time(array: NDArray[Any], n_axes: int, time: int) -> NDArray[np.float64]:
    """(n_channels, length)."""
    signals = np.asarray(array, dtype=np.float64)
    return signals[None] if n_axes == 1 else np.moveaxis(signals, time, -1)


def _mean_baseline(e: Explanation) -> NDArray[np.float64]:
    return np.asarray(np.tensordot(e.baseline_weights, e.endpoints.baselines[0].astype(np.float64), 1))


def _volume(e: Explanation) -> dict[str, Any] | None:
    """The voxels in grey and the feature of each, thinned to at most 80 on each side."""
    labels, x = e.features.labels[0], np.asarray(e.endpoints.x[0], dtype=np.float64)
    base = _mean_baseline(e)
    if labels.ndim == 4:  # with channels, which must share their features
        axis = 0 if labels.shape[0] <= _LEAST_SIDE else 3
        if labels.shape[axis] > _LEAST_SIDE or not (labels == labels.take([0], axis)).all():
            return None
        labels, x, base = np.moveaxis(labels, axis, 0)[0], x.mean(axis), base.mean(axis)
    if labels.ndim != 3 or min(labels.shape) <= _LEAST_SIDE:
        return None
    centres = [np.mean(np.argwhere(labels == i), axis=0) for i in range(e.n_features)]
    steps = [max(-(-side // _MOST_SIDE), 1) for side in labels.shape]
    thin = tuple(slice(None, None, step) for step in steps)
    low, high = float(x.min()), float(x.max())
    return {
        "type": "volume",
        "shape": list(labels[thin].shape),
        "voxels": packed(_grey(x[thin], low, high)),
        "baseline": packed(_grey(base[thin], low, high)),
        "labels": packed(labels[thin].astype(np.int32)),
        "centres": [[float(c / step) for c, step in zip(centre, steps, strict=True)] for centre in centres],
    }


def _grey(array: NDArray[np.float64], low: float, high: float) -> NDArray[np.uint8]:
    return np.clip(255 * (array - low) / ((high - low) or 1.0), 0, 255).astype(np.uint8)
