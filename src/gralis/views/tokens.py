"""Text: the tokens in their order, red where they raise F and blue where they lower it, as HTML or as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from gralis.arrays import Array, describe
from gralis.errors import GralisError, bad
from gralis.features import Features
from gralis.features.coordinate_names import CoordinateNames
from gralis.results.explanation import Explanation
from gralis.results.result import FeatureResult
from gralis.views.colours import AGAINST, FOR, red_green_blue

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["INK", "coloured", "colours", "lines", "pieces", "sentence_html", "text", "token_html"]

INK = "#111111"  # readable on the strongest of the colours
_LINE = 72  # characters on a line of a picture
_BLANKS = {"": "∅", " ": "␣", "\n": "⏎", "\t": "⇥"}  # made visible
_CHARACTER = 0.62  # width of a monospaced character over its height


def token_html(explanation: Explanation, level: float = 0.95) -> str:
    """<p> with one <span> per token, coloured by phi over the largest |phi|, with phi and its interval as the title.

    The snippet is self-contained: styles are inline and there is no script. Every token is escaped. A token is
    underlined where its simultaneous interval excludes zero. An explanation that `gralis.text` made shows the text
    itself: the parts of it that are features are coloured, and the rest of the text stands between them.

    Parameters
    ----------
    explanation : Explanation
        An explanation whose features are tokens with names.
    level : float, default=0.95
        The level of the simultaneous intervals.

    Returns
    -------
    str
        HTML.

    Examples
    --------
    >>> import gralis, torch
    >>> words = gralis.features.tokens([0, 1], names=["good", "<br>"])
    >>> html = token_html(gralis.explain(lambda z: z[:, 0] - 2 * z[:, 1], torch.ones(2), features=words))
    >>> html.count("<span"), "&lt;br&gt;" in html, "phi = -2" in html
    (2, True, True)
    """
    if not isinstance(explanation, Explanation):
        raise bad("explanation", "token_html", "an Explanation that explain returned", describe(explanation))
    ends = f"F(x) = {explanation.f_x:.4g}, F(x&#x27;) = {explanation.f_baseline:.4g}, red for, blue against"
    if explanation.doubts:
        ends += "".join(f"<br>doubt: {escape(sentence)}" for sentence in explanation.doubts)
    return _paragraph(f'{coloured(explanation, level)}<br><small style="color:{INK}">{ends}</small>')


def _paragraph(content: str) -> str:
    return f'<p style="line-height:1.9;margin:0;white-space:pre-wrap">{content}</p>'


def sentence_html(result: FeatureResult) -> str:
    """The text in colour, or nothing if the features are not the tokens of a text."""
    if result.features is None or result.features.kind != "tokens" or result.n_features != result.features.n_features:
        return ""
    return _paragraph(coloured(result))


def coloured(result: FeatureResult, level: float = 0.95) -> str:
    """One <span> per token, coloured by its value over the largest magnitude, and the text between them."""
    features = _require_names(result)
    interval, distinct = result.interval(level), _distinct_from_zero(result, level)
    parts = pieces(features)
    what = result.method if "Shapley" in result.method else "phi"
    words = {number: part for number, part in parts if number is not None}
    spans: list[str] = []
    for name, value, error, (low, high), colour, is_distinct in zip(
        result.names, result.values, result.stderr, interval, colours(result.values), distinct, strict=True
    ):
        bounds = f"[{low:.4g}, {high:.4g}], {100 * level:.4g}% for all together"
        if not error > 0:
            bounds = "no error above rounding" if error == 0 else "error unknown"
        line = "underline" if is_distinct else "none"
        style = f"background:{colour};color:{INK};text-decoration:{line};padding:1px 3px;border-radius:3px"
        title = escape(f"{name}: {what} = {value:.4g} ({bounds})")
        spans.append(f'<span style="{style}" title="{title}">{escape(words[len(spans)])}</span>')
    return "".join(escape(part) if number is None else spans[number] for number, part in parts)


def pieces(features: Features) -> list[tuple[int | None, str]]:
    """The text in order: (number of the feature, its words), and (None, words) for the text between features.

    Without a text the names of the features stand side by side.

    >>> from gralis.features import tokens
    >>> pieces(tokens([7, 8], names=["no", " "]))
    [(0, 'no'), (None, ' '), (1, '␣')]
    """
    text, spans = features.meta.get("text"), features.meta.get("spans")
    if not isinstance(text, str) or not isinstance(spans, list):
        listed: list[tuple[int | None, str]] = []
        for number, name in enumerate(_texts(features)):
            listed += [(None, " "), (number, _visible(name))]
        return listed[1:]
    order, end, found = sorted(range(len(spans)), key=lambda number: int(spans[number][0])), 0, []
    for number in order:
        start, stop = spans[number]
        found += [(None, text[end:start]), (number, text[start:stop])]
        end = stop
    return [(number, part) for number, part in [*found, (None, text[end:])] if part]


def text(e: Explanation, ax: Axes, *, level: float, **_: Any) -> None:
    """The tokens on axes: lines of monospaced text, each token on its colour."""
    from matplotlib.patches import Rectangle

    distinct, shades, rows = _distinct_from_zero(e, level), colours(e.values), lines(e)
    wide = ax.bbox.width / ax.figure.dpi * 72 / (_LINE * _CHARACTER)  # in points
    for row, line in enumerate(rows):
        for token, start, width in line:
            box = Rectangle((start, row - 0.36), width, 0.72, facecolor=shades[token], edgecolor="none")
            ax.add_patch(box)
            drawn = ax.text(
                start + width / 2, row, _visible(_texts(e.features)[token]), ha="center", va="center", parse_math=False
            )
            drawn.set(family="monospace", fontsize=min(11.0, wide), color=INK)
            if distinct[token]:
                ax.plot([start, start + width], [row + 0.34, row + 0.34], color=INK, linewidth=1)
    ax.set_xlim(0, _LINE)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_axis_off()
    ax.set_title(
        f"F(x) = {e.f_x:.4g}   F(x') = {e.f_baseline:.4g}   red for, blue against, underlined: not 0 at {level:.4g}",
        fontsize="small",
    )


def lines(e: Explanation) -> list[list[tuple[int, float, float]]]:
    """The lines of a picture: for each of its tokens the number, where it begins, and how wide it is, in characters."""
    _require_names(e)
    rows: list[list[tuple[int, float, float]]] = [[]]
    start = 0.0
    for token, name in enumerate(_texts(e.features)):
        width = min(len(_visible(name)) + 0.6, float(_LINE))
        if start and start + width > _LINE:
            rows.append([])
            start = 0.0
        rows[-1].append((token, start, width))
        start += width + 0.4
    return rows


def colours(values: Array) -> list[str]:
    """White for 0, full red or blue for the largest |phi|.

    >>> colours(np.array([0.0, 2.0, -1.0]))
    ['#ffffff', '#d6604d', '#a1c9e1']
    """
    largest = float(np.abs(values).max(initial=0.0)) or 1.0
    shades = []
    for value in values:
        full = np.array(red_green_blue(FOR if value > 0 else AGAINST))
        mixed = np.rint(255 + (full - 255) * abs(value) / largest).astype(int)
        shades.append("#" + "".join(f"{part:02x}" for part in mixed))
    return shades


def _distinct_from_zero(e: FeatureResult, level: float) -> list[bool]:
    """Whether the simultaneous interval of each value excludes zero."""
    low, high = e.interval(level).T
    return [bool(each) for each in (low > 0) | (high < 0)]


def _texts(features: Features) -> Sequence[str]:
    """The tokens themselves; their names may say in addition where a token that occurs twice is."""
    texts = features.meta.get("texts")
    return texts if isinstance(texts, list) else features.names


def _visible(name: str) -> str:
    return _BLANKS.get(name, name)


def _require_names(e: FeatureResult) -> Features:
    if e.features is None or isinstance(e.names, CoordinateNames):
        raise GralisError(
            "Text needs features that are tokens, with their names: explain with "
            "features=gralis.features.tokens(ids, tokenizer)."
        )
    return e.features
