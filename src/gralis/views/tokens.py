"""Text: the tokens in their order, red where they speak for F and blue where against, as HTML or as a picture."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.features.coordinate_names import CoordinateNames
from gralis.views.charts import AGAINST, FOR

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gralis.results.explanation import Explanation

INK = "#111111"  # readable on the strongest of the colours
_LINE = 72  # characters of a picture's line
_BLANKS = {"": "∅", " ": "␣", "\n": "⏎", "\t": "⇥"}  # shown, or they could not be seen
_CHARACTER = 0.62  # width of a monospaced character over its height


def token_html(explanation: Explanation, level: float = 0.95) -> str:
    """<p> with one <span> per token; colour: phi over the largest |phi|, title: phi and its simultaneous interval.

    Self-contained (styles inline, no script), every token escaped; a token is underlined where its interval excludes
    zero.

    >>> import gralis, torch
    >>> words = gralis.features.tokens([0, 1], names=["good", "<br>"])
    >>> html = token_html(gralis.explain(lambda z: z[:, 0] - 2 * z[:, 1], torch.ones(2), features=words))
    >>> html.count("<span"), "&lt;br&gt;" in html, "phi = -2" in html
    (2, True, True)
    """
    _require_names(explanation)
    interval, sure = explanation.interval(level), _sure(explanation, level)
    spans = []
    for name, phi, (low, high), colour, known in zip(
        explanation.names, explanation.values, interval, colours(explanation.values), sure, strict=True
    ):
        bounds = f"[{low:.4g}, {high:.4g}], {100 * level:.4g}% for all together"
        if not low < high:
            bounds = "no sampling error" if low == high else "error unknown"
        line = "underline" if known else "none"
        style = f"background:{colour};color:{INK};text-decoration:{line};padding:1px 3px;border-radius:3px"
        title = escape(f"{name}: phi = {phi:.4g} ({bounds})")
        spans.append(f'<span style="{style}" title="{title}">{escape(_visible(name))}</span>')
    ends = f"F(x) = {explanation.f_x:.4g}, F(x&#x27;) = {explanation.f_baseline:.4g}, red for, blue against"
    text = " ".join(spans)
    return f'<p style="line-height:1.9;margin:0">{text}<br><small style="color:{INK}">{ends}</small></p>'


def text(e: Explanation, ax: Axes, *, level: float, **_: Any) -> None:
    """The same on axes: tokens in lines of monospaced text, each on its colour."""
    from matplotlib.patches import Rectangle

    sure, shades, rows = _sure(e, level), colours(e.values), lines(e)
    wide = ax.bbox.width / ax.figure.dpi * 72 / (_LINE * _CHARACTER)  # in points
    for row, line in enumerate(rows):
        for token, start, width in line:
            box = Rectangle((start, row - 0.36), width, 0.72, facecolor=shades[token], edgecolor="none")
            ax.add_patch(box)
            drawn = ax.text(
                start + width / 2, row, _visible(e.names[token]), ha="center", va="center", parse_math=False
            )
            drawn.set(family="monospace", fontsize=min(11.0, wide), color=INK)
            if sure[token]:
                ax.plot([start, start + width], [row + 0.34, row + 0.34], color=INK, linewidth=1)
    ax.set_xlim(0, _LINE)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_axis_off()
    ax.set_title(
        f"F(x) = {e.f_x:.4g}   F(x') = {e.f_baseline:.4g}   red for, blue against, underlined: not 0 at {level:.4g}",
        fontsize="small",
    )


def lines(e: Explanation) -> list[list[tuple[int, float, float]]]:
    """Which tokens stand on which line of a picture, where each begins, and how wide it is, in characters."""
    _require_names(e)
    found: list[list[tuple[int, float, float]]] = [[]]
    start = 0.0
    for token, name in enumerate(e.names):
        width = min(len(_visible(name)) + 0.6, float(_LINE))
        if start and start + width > _LINE:
            found.append([])
            start = 0.0
        found[-1].append((token, start, width))
        start += width + 0.4
    return found


def colours(values: Array) -> list[str]:
    """White for 0, full red or blue for the largest |phi|.

    >>> colours(np.array([0.0, 2.0, -1.0]))
    ['#ffffff', '#d6604d', '#a1c9e1']
    """
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    found = []
    for value in values:
        full = np.array([int((FOR if value > 0 else AGAINST)[i : i + 2], 16) for i in (1, 3, 5)])
        mixed = np.rint(255 + (full - 255) * abs(value) / largest).astype(int)
        found.append("#" + "".join(f"{part:02x}" for part in mixed))
    return found


def _sure(e: Explanation, level: float) -> list[bool]:
    """Whether the simultaneous interval excludes zero."""
    low, high = e.interval(level).T
    return [bool(sure) for sure in (low > 0) | (high < 0)]


def _visible(name: str) -> str:
    return _BLANKS.get(name, name)


def _require_names(e: Explanation) -> None:
    if isinstance(e.names, CoordinateNames):
        raise GralisError(
            "Text needs features that are tokens, with their names: explain with "
            "features=gralis.features.tokens(ids, tokenizer)."
        )
