"""The charts of a study as SVG: curves, and means with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from gralis.arrays import Array
from gralis.views.svg_parts import AxisScale, line, svg, text

__all__ = ["MethodCurve", "colour", "curves", "intervals", "legend"]

#: The methods also have the same order in every legend; "random" is grey.
COLOURS = ("#d6604d", "#3d5a80", "#e0a030", "#4393c3", "#6a9a58", "#8c5a9e", "#a93a26", "#2a8a8a", "#b07850", "#555b66")
GREY = "#9aa1a8"
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 420, 250, 52, 14, 12, 34
_ROW, _NAMES = 24, 140  # the height of one interval, and the width of the names beside them


@dataclass(frozen=True, eq=False)
class MethodCurve:
    """The curve of one method."""

    name: str
    at: Array
    values: Array


def colour(name: str, names: Sequence[str]) -> str:
    """The colour of a method, the same in every chart of a page."""
    return GREY if name == "random" else COLOURS[list(names).index(name) % len(COLOURS)]


def curves(lines: Sequence[MethodCurve], names: Sequence[str], x_label: str, y_label: str) -> str:
    """Several curves on common axes."""
    drawn = [curve for curve in lines if len(curve.at) and np.isfinite(curve.values).all()]
    if not drawn:
        return ""
    x = AxisScale.over(np.concatenate([curve.at for curve in drawn]), _LEFT, _WIDTH - _RIGHT)
    y = AxisScale.over(np.concatenate([curve.values for curve in drawn]), _HEIGHT - _BOTTOM, _TOP)
    parts = []
    for tick in y.ticks():
        parts.append(line(_LEFT, y(tick), _WIDTH - _RIGHT, y(tick), 'class="rule"'))
        parts.append(text(_LEFT - 6, y(tick) + 4, f"{tick:g}", "end"))
    parts += [text(x(tick), _HEIGHT - 18, f"{tick:g}") for tick in x.ticks()]
    parts.append(text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 3, x_label))
    parts.append(text(11, _HEIGHT / 2, y_label, turned=True))
    for curve in drawn:
        points = " ".join(f"{x(a):.1f},{y(v):.1f}" for a, v in zip(curve.at, curve.values, strict=True))
        dash = ' stroke-dasharray="4 3"' if curve.name == "random" else ""
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour(curve.name, names)}" stroke-width="1.6"{dash}>'
            f"<title>{escape(curve.name)}</title></polyline>"
        )
    return svg(parts, _WIDTH, _HEIGHT, f"{y_label} over {x_label}")


def intervals(points: Mapping[str, tuple[float, float, float]], names: Sequence[str], label: str) -> str:
    """A dot and a bar (mean, low, high) for every name, one below the other."""
    known = {name: values for name, values in points.items() if np.isfinite(values[0])}
    if not known:
        return ""
    height = _ROW * len(known) + _TOP + _BOTTOM
    ends = np.array([v for values in known.values() for v in values if np.isfinite(v)])
    x = AxisScale.over(ends, _NAMES, _WIDTH - _RIGHT)
    parts = []
    for tick in x.ticks():
        parts.append(line(x(tick), _TOP, x(tick), height - _BOTTOM, 'class="rule"'))
        parts.append(text(x(tick), height - 18, f"{tick:g}"))
    for row, (name, (mean, low, high)) in enumerate(known.items()):
        at, ink = _TOP + _ROW * row + _ROW / 2, colour(name, names)
        parts.append(text(_NAMES - 10, at + 4, name, "end"))
        if np.isfinite(low) and np.isfinite(high):
            parts.append(line(x(low), at, x(high), at, f'stroke="{ink}" stroke-width="2"'))
        parts.append(f'<circle cx="{x(mean):.1f}" cy="{at}" r="4" fill="{ink}"/>')
    parts.append(text((_NAMES + _WIDTH) / 2, height - 3, label))
    return svg(parts, _WIDTH, height, label)


def legend(names: Sequence[str]) -> str:
    """Which colour belongs to which method, as HTML."""
    keys = {name: line(0, 5, 18, 5, f'stroke="{colour(name, names)}" stroke-width="3"') for name in names}
    return "".join(
        f'<span class="key"><svg width="18" height="10" aria-hidden="true">{key}</svg>{escape(name)}</span>'
        for name, key in keys.items()
    )
