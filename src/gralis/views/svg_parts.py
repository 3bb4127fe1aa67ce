"""The parts of SVG charts: scales, lines, texts and the frame. Every text is escaped; no drawing library is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from gralis.arrays import Array

__all__ = ["AxisScale", "line", "svg", "text"]


@dataclass(frozen=True)
class AxisScale:
    """Maps numbers from low to high linearly to places from start to stop.

    Attributes
    ----------
    low, high : float
        The ends of the axis, as numbers.
    start, stop : float
        The ends of the axis, as places in the picture.

    Examples
    --------
    >>> scale = AxisScale(0.0, 10.0, 100.0, 200.0)
    >>> scale(5.0), scale.ticks()
    (150.0, [0.0, 5.0, 10.0])
    """

    low: float
    high: float
    start: float
    stop: float

    @classmethod
    def over(cls, values: Array, start: float, stop: float) -> AxisScale:
        """The scale that shows all values, with some room at both ends."""
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


def line(x1: float, y1: float, x2: float, y2: float, attributes: str) -> str:
    """A straight line; `attributes` is its class or its stroke, as SVG."""
    return f'<line {attributes} x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>'


def text(x: float, y: float, content: str, anchor: str = "middle", turned: bool = False) -> str:
    """A text at a place; `anchor` is the part of the text that stands there, `turned` makes it read upwards."""
    where = f'transform="translate({x:.1f} {y:.1f}) rotate(-90)"' if turned else f'x="{x:.1f}" y="{y:.1f}"'
    return f'<text {where} text-anchor="{anchor}">{escape(content)}</text>'


def svg(parts: Sequence[str], width: float, height: float, label: str) -> str:
    """A chart made of parts, with a label for those who cannot see it."""
    box = f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(label)}"'
    return f'<svg class="chart" {box} xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
