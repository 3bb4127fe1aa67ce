"""Curves and intervals as SVG, to stand in a page; no library draws them."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gralis.arrays import Array

#: Told apart also by their order in the legend; random is grey.
COLOURS = ("#d6604d", "#3d5a80", "#e0a030", "#4393c3", "#6a9a58", "#8c5a9e", "#a93a26", "#2a8a8a", "#b07850", "#555b66")
GREY = "#9aa1a8"
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 420, 250, 52, 14, 12, 34


@dataclass(frozen=True, eq=False)
class Line:
    """A curve with a name."""

    name: str
    at: Array
    values: Array


def colour(name: str, names: Sequence[str]) -> str:
    """The same for a method in every chart of a page."""
    return GREY if name == "random" else COLOURS[list(names).index(name) % len(COLOURS)]


def curves(lines: Sequence[Line], names: Sequence[str], x_label: str, y_label: str) -> str:
    """Several curves on common axes."""
    drawn = [line for line in lines if len(line.at) and np.isfinite(line.values).all()]
    if not drawn:
        return ""
    x = _Scale.over(np.concatenate([line.at for line in drawn]), _LEFT, _WIDTH - _RIGHT)
    y = _Scale.over(np.concatenate([line.values for line in drawn]), _HEIGHT - _BOTTOM, _TOP)
    parts = _axes(x, y, x_label, y_label)
    for line in drawn:
        points = " ".join(f"{x(a):.1f},{y(v):.1f}" for a, v in zip(line.at, line.values, strict=True))
        dash = ' stroke-dasharray="4 3"' if line.name == "random" else ""
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour(line.name, names)}" stroke-width="1.6"{dash}>'
            f"<title>{html.escape(line.name)}</title></polyline>"
        )
    return _svg(parts, _HEIGHT, f"{y_label} over {x_label}")


def intervals(points: Mapping[str, tuple[float, float, float]], names: Sequence[str], label: str) -> str:
    """A dot and a bar (mean, low, high) for every name, one under the other."""
    known = {name: values for name, values in points.items() if np.isfinite(values[0])}
    if not known:
        return ""
    height = 24 * len(known) + _TOP + _BOTTOM
    left = 140
    every = np.array([v for values in known.values() for v in values if np.isfinite(v)])
    x = _Scale.over(every, left, _WIDTH - _RIGHT)
    parts = []
    for tick in x.ticks():
        parts.append(f'<line class="rule" x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{_TOP}" y2="{height - _BOTTOM}"/>')
        parts.append(f'<text x="{x(tick):.1f}" y="{height - 18}" text-anchor="middle">{tick:g}</text>')
    for row, (name, (mean, low, high)) in enumerate(known.items()):
        at, ink = _TOP + 24 * row + 12, colour(name, names)
        parts.append(f'<text x="{left - 10}" y="{at + 4}" text-anchor="end">{html.escape(name)}</text>')
        if np.isfinite(low) and np.isfinite(high):
            parts.append(
                f'<line x1="{x(low):.1f}" x2="{x(high):.1f}" y1="{at}" y2="{at}" stroke="{ink}" stroke-width="2"/>'
            )
        parts.append(f'<circle cx="{x(mean):.1f}" cy="{at}" r="4" fill="{ink}"/>')
    parts.append(
        f'<text x="{(left + _WIDTH) / 2:.0f}" y="{height - 3}" text-anchor="middle">{html.escape(label)}</text>'
    )
    return _svg(parts, height, label)


def legend(names: Sequence[str]) -> str:
    """Which colour is which method."""
    one = '<span class="key"><svg width="18" height="10" aria-hidden="true"><line x1="0" x2="18" y1="5" y2="5" '
    return "".join(
        f'{one}stroke="{colour(name, names)}" stroke-width="3"/></svg>{html.escape(name)}</span>' for name in names
    )


@dataclass(frozen=True)
class _Scale:
    """Numbers from low to high onto places from start to stop."""

    low: float
    high: float
    start: float
    stop: float

    @classmethod
    def over(cls, values: Array, start: float, stop: float) -> _Scale:
        low, high = float(values.min()), float(values.max())
        room = 0.04 * (high - low) or 0.5
        return cls(low - room, high + room, start, stop)

    def __call__(self, value: float) -> float:
        return self.start + (value - self.low) / (self.high - self.low) * (self.stop - self.start)

    def ticks(self) -> list[float]:
        """Three to six round numbers."""
        raw = (self.high - self.low) / 4
        size = 10.0 ** np.floor(np.log10(raw))
        step = next(size * m for m in (1, 2, 5, 10) if size * m >= raw)
        first = np.ceil(self.low / step)
        return [float(round(k * step, 12)) for k in np.arange(first, np.floor(self.high / step) + 1)]


def _axes(x: _Scale, y: _Scale, x_label: str, y_label: str) -> list[str]:
    parts = []
    for tick in y.ticks():
        parts.append(f'<line class="rule" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y(tick):.1f}" y2="{y(tick):.1f}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y(tick) + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in x.ticks():
        parts.append(f'<text x="{x(tick):.1f}" y="{_HEIGHT - 18}" text-anchor="middle">{tick:g}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{_HEIGHT - 3}" text-anchor="middle">{html.escape(x_label)}</text>')
    turned = f'transform="translate(11 {_HEIGHT / 2:.0f}) rotate(-90)"'
    parts.append(f'<text {turned} text-anchor="middle">{html.escape(y_label)}</text>')
    return parts


def _svg(parts: Sequence[str], height: float, label: str) -> str:
    box = f'viewBox="0 0 {_WIDTH} {height:.0f}" role="img" aria-label="{html.escape(label)}"'
    return f'<svg class="chart" {box} xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
