"""The page of a generation: click a token of the answer, and the prompt shows in colour what made it.

The page has no script. Every token is a radio button, and its panel shows while it is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.report.html_page import page_style
from gralis.results.explanation import Explanation
from gralis.text.explained_answer import ExplainedAnswer
from gralis.text.spans import visible
from gralis.views.html_parts import document, figures, html_table, number
from gralis.views.tokens import INK, colours, pieces

__all__ = ["page", "snippet"]

_MOST_CHARACTERS = 12_000_000  # of coloured prompts in one page
_MOST_IN_NOTEBOOK = 300_000
_MOST_LINES = 12  # in the table of a token
_BLOCK = 60  # characters from which a feature stands as a block of its own
_LEVEL = 0.95
_STYLE = f"""
.answer {{ display: flex; flex-wrap: wrap; gap: 6px; margin: 14px 0 22px; }}
.pick {{ position: absolute; opacity: 0; pointer-events: none; }}
.answer label {{ padding: 3px 9px; border: 1px solid var(--line); border-radius: 7px; }}
.answer label {{ cursor: pointer; white-space: pre; }}
.answer label:hover {{ border-color: var(--soft); }}
.panel {{ display: none; margin: 0; padding: 0; }}
.prompt {{ white-space: pre-wrap; overflow-wrap: anywhere; padding: 16px 20px; line-height: 1.75; }}
.prompt {{ max-height: 70vh; overflow: auto; }}
.prompt mark {{ color: {INK}; border-radius: 3px; padding: 1px 2px 4px; }}
.prompt mark.block {{ display: block; padding: 6px 12px 8px; margin: 6px 0; }}
.prompt mark.block small {{ display: flex; justify-content: space-between; gap: 16px; font-size: 12px; opacity: .75; }}
.prompt + .scroll, .prompt + table {{ margin-top: 14px; }}
.prompt mark.block {{ border-left: 4px solid var(--line); }}
.prompt mark.sure {{ text-decoration: underline; text-decoration-thickness: 1.5px; text-underline-offset: 3px; }}
.prompt mark.block.sure {{ text-decoration: none; border-left: 0; padding-left: 16px; }}
.prompt mark.block.sure {{ box-shadow: inset 3px 0 0 #ffffff, inset 7px 0 0 {INK}; }}
.matrix td {{ color: {INK}; text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }}
.matrix thead th {{ text-align: right; white-space: nowrap; max-width: 150px; }}
.matrix thead th {{ overflow: hidden; text-overflow: ellipsis; }}
.matrix td.sure {{ font-weight: 700; }}
.matrix th:first-child {{ position: sticky; left: 0; background: var(--paper); text-align: left; white-space: pre; }}
"""


def page(generation: ExplainedAnswer, title: str | None = None) -> str:
    """The whole page as HTML; nothing is fetched and nothing runs."""
    g = generation
    titles = ["whole answer", *g.tokens]
    if len(titles) * max(len(g.text), 1) > _MOST_CHARACTERS:
        raise GralisError(
            f"A page with {len(titles)} copies of a prompt of {len(g.text)} characters would be too large; explain "
            f"fewer tokens, or use to_frame()."
        )
    rows = [g.total, *g.each]
    matrix, half = np.stack([e.values for e in rows]), np.vstack([g.total.half_widths(_LEVEL), g.half_widths(_LEVEL)])
    largest = float(np.abs(matrix[1:]).max(initial=0.0))
    radios = "".join(
        f'<input class="pick" type="radio" name="token" id="t{k}"{" checked" if k == 0 else ""}>'
        for k in range(len(rows))
    )
    labels = "".join(
        f'<label for="t{k}" title="{escape(_score(e))}">{escape(visible(name))}</label>'
        for k, (name, e) in enumerate(zip(titles, rows, strict=True))
    )
    panels = "".join(
        f'<section class="panel" id="p{k}">{_panel(g, name, e, matrix[k], half[k], largest if k else None)}</section>'
        for k, (name, e) in enumerate(zip(titles, rows, strict=True))
    )
    shown = "".join(
        f"#t{k}:checked~#p{k}{{display:block}}"
        f"#t{k}:checked~.answer label[for=t{k}]{{background:var(--ink);color:var(--paper)}}"
        f"#t{k}:focus-visible~.answer label[for=t{k}]{{outline:2.5px solid var(--accent)}}"
        for k in range(len(rows))
    )
    heading = title or "Which part of the prompt made it say that?"
    facts = {
        "tokens": str(len(g.tokens)),
        "features": str(len(g.names)),
        _score_name(g, "the answer"): number(g.total.f_x, 4),
        "without the features": number(g.total.f_baseline, 4),
        "forwards": str(g.cost.n_forwards),
    }
    body = (
        f'<div class="top"><p class="overline">gralis</p><h1>{escape(heading)}</h1>'
        f'<div class="summary">{_summary(g)}</div>{figures(facts)}{_doubts(g)}</div>'
        f'<main><section><h2>The answer</h2><p class="about">Choose a token; the prompt below shows what made it.</p>'
        f'{radios}<div class="answer">{labels}</div>{panels}</section>'
        f"<section><h2>Everything at once</h2>{_about(g)}{_matrix(g, matrix, half, largest)}</section></main>"
    )
    return document(heading, page_style() + _dark() + _STYLE + shown, body)


def _dark() -> str:
    """The dark colours of the report, for readers whose system asks for them: this page has no script to switch."""
    colours_of_night = page_style().split(':root[data-theme="dark"] {', 1)[1].split("}", 1)[0]
    return f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {colours_of_night} }} }}\n"


def snippet(generation: ExplainedAnswer) -> str:
    """What a notebook shows: the prompt coloured for the answer, for each of its tokens to click, and the matrix.

    Styles are inline, and there is no script: a token unfolds its own prompt.
    """
    g, rows = generation, [generation.total, *generation.each]
    matrix, half = np.stack([e.values for e in rows]), np.vstack([g.total.half_widths(), g.half_widths()])
    largest = float(np.abs(matrix[1:]).max(initial=0.0))
    tokens = "".join(
        f'<details><summary style="cursor:pointer">{escape(visible(name))} '
        f'<small style="opacity:.7">{escape(_score(e))}</small></summary>'
        f"{_inline(g, e, matrix[k], half[k], largest)}</details>"
        for k, (name, e) in enumerate(zip(g.tokens, g.each, strict=True), start=1)
    )
    if len(g.tokens) * len(g.text) > _MOST_IN_NOTEBOOK:
        tokens = "<p>The prompt of each token is in report().</p>"
    return (
        '<div style="font-family:system-ui,sans-serif;font-size:13px;line-height:1.6">'
        f"<div><b>{escape(g.answer.strip())}</b></div>{_inline(g, g.total, matrix[0], half[0], None)}{tokens}"
        f"{_matrix(g, matrix, half, largest)}</div>"
    )


def _inline(g: ExplainedAnswer, e: Explanation, values: Array, half: Array, largest: float | None) -> str:
    """The prompt in the colours of one row, with inline styles; passages are blocks."""
    shades, sure, parts = _shades(values, largest), _sure(values, half), pieces(e.features)
    blocks = _blocks(e, parts)
    shown = []
    for place, (i, part) in enumerate(parts):
        if i is None:
            shown.append(escape(_between(part, blocks, place)))
            continue
        block = "display:block;margin:4px 0;padding:3px 8px;" if blocks[place] else ""
        style = f"background:{shades[i]};color:{INK};{block}{_line(sure[i])}"
        title = escape(_cell(g.names[i], values[i], half[i], _plain(e)))
        shown.append(f'<span style="{style}" title="{title}">{escape(part)}</span>')
    return f'<p style="white-space:pre-wrap">{"".join(shown)}</p>'


def _panel(g: ExplainedAnswer, name: str, e: Explanation, values: Array, half: Array, largest: float | None) -> str:
    """The prompt in the colours of one token, and its numbers."""
    shades, sure = _shades(values, largest), _sure(values, half)
    parts = pieces(e.features)
    blocks = _blocks(e, parts)
    shown = []
    for place, (i, part) in enumerate(parts):
        if i is None:
            shown.append(escape(_between(part, blocks, place)))
            continue
        title = _cell(g.names[i], values[i], half[i], _plain(e))
        kind = " ".join(word for word, is_so in (("block", blocks[place]), ("sure", sure[i])) if is_so)
        label = f"<small><span>{escape(g.names[i])}</span><span>{number(float(values[i]), 3)}</span></small>"
        inside = f"{label if blocks[place] else ''}{escape(part)}"
        shown.append(f'<mark class="{kind}" style="background:{shades[i]}" title="{escape(title)}">{inside}</mark>')
    order, more = np.argsort(-np.abs(values), kind="stable"), ""
    if len(order) > _MOST_LINES + 1:  # never leaves out exactly one
        more = f'<p class="about">{len(order) - _MOST_LINES} more features have smaller contributions.</p>'
        order = order[:_MOST_LINES]
    lines = [(g.names[i], float(values[i]), _error(half[i], _plain(e)), "yes" if sure[i] else "no") for i in order]
    table = html_table(["feature", "contribution", "±", "away from 0"], lines) + more
    about = f'<h3>{escape(visible(name))}</h3><p class="about">{escape(_score(e))}</p>'
    return f'{about}<div class="prompt card">{"".join(shown)}</div>{table}'


def _blocks(e: Explanation, parts: Sequence[tuple[int | None, str]]) -> list[bool]:
    """Which parts stand as blocks of their own: passages, long ones, and those that fill whole lines of the prompt."""
    found = []
    for place, (i, part) in enumerate(parts):
        before, after = (parts[near][1] if 0 <= near < len(parts) else "\n" for near in (place - 1, place + 1))
        lines = before.rstrip(" ").endswith("\n") and after.lstrip(" ").startswith("\n") and len(part.split()) > 1
        large = len(part) >= _BLOCK or "\n" in part or e.features.meta.get("grain") == "passages"
        found.append(i is not None and (large or lines))
    return found


def _between(part: str, blocks: Sequence[bool], place: int) -> str:
    """Fixed text without the line breaks that separate it from the blocks beside it, which have margins instead."""
    before, after = (0 <= near < len(blocks) and blocks[near] for near in (place - 1, place + 1))
    if (before or after) and not part.strip():
        return ""
    part = part.lstrip("\n") if before else part
    return part.rstrip("\n") if after else part


def _matrix(g: ExplainedAnswer, matrix: Array, half: Array, largest: float) -> str:
    head = "".join(f'<th title="{escape(name)}">{escape(name)}</th>' for name in g.names)
    exact = [_plain(e) for e in (g.total, *g.each)]
    lines = []
    for k, name in enumerate(["whole answer", *g.tokens]):
        shades, sure = _shades(matrix[k], largest if k else None), _sure(matrix[k], half[k])
        cells = "".join(
            f'<td{" class=sure" if sure[i] else ""} style="background:{shades[i]};color:{INK}" '
            f'title="{escape(_cell(g.names[i], matrix[k, i], half[k, i], exact[k]))}">'
            f"{number(float(matrix[k, i]), 2)}</td>"
            for i in range(len(g.names))
        )
        lines.append(f'<tr><th style="text-align:left">{escape(visible(name))}</th>{cells}</tr>')
    return (
        f'<div class="scroll"><table class="matrix"><thead><tr><th></th>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _summary(g: ExplainedAnswer) -> str:
    """Two sentences: the answer, and the feature that counts most."""
    values, half = g.total.values, g.total.half_widths(_LEVEL)
    best = int(np.argmax(np.abs(values)))
    sure = "its interval excludes zero" if _sure(values, half)[best] else "its interval includes zero"
    verb = "raised" if values[best] > 0 else "lowered"
    return (
        f"<p>The answer: <b>{escape(g.answer.strip())}</b></p><p>Most of all, <b>{escape(g.names[best])}</b> "
        f"{verb} the {escape(_score_name(g, 'this answer'))}, by {number(abs(float(values[best])))}; {sure}.</p>"
    )


def _about(g: ExplainedAnswer) -> str:
    exact = " Exact: no error above rounding." if all(map(_plain, g.each)) else ""
    return (
        f'<p class="about">{escape(g.method)} of the {escape(_score_name(g, "tokens"))}. Red raises, blue lowers. '
        f"Bold numbers, underlined words and blocks with a dark edge have intervals that exclude zero; the intervals "
        f"of all tokens hold together at {_LEVEL:.0%}.{exact}</p>"
    )


def _doubts(g: ExplainedAnswer) -> str:
    if not g.doubts:
        return ""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in g.doubts)
    return f'<div class="box" role="note"><h2>Doubts about these numbers</h2><ul>{items}</ul></div>'


def _shades(values: Array, largest: float | None) -> list[str]:
    """The colours of values on the scale of `largest`, or on their own."""
    if not largest:
        return colours(values)
    return colours(np.append(values, largest))[:-1]


def _sure(values: Array, half: Array) -> Sequence[bool]:
    return [bool(each) for each in np.abs(values) > np.where(np.isfinite(half), half, np.inf)]


def _score_name(g: ExplainedAnswer, what: str) -> str:
    """What was explained, in words: the score of the answer, perhaps minus that of an alternative."""
    score, _, other = g.score.replace("logprob", "log-probability").partition(" against ")
    return f"{score} of {what}" + (f" minus that of {other}" if other else "")


def _line(sure: bool) -> str:
    return f"text-decoration:{'underline' if sure else 'none'}"


def _score(e: Explanation) -> str:
    return f"{e.f_x:.4g} with the whole prompt, {e.f_baseline:.4g} without its features"


def _cell(name: str, value: float, half: float, exact: bool) -> str:
    return f"{name}: {value:.3g} {'(no error above rounding)' if exact else f'± {_error(half, exact)}'}"


def _plain(e: Explanation) -> bool:
    """Whether the numbers are called exact: they are, and their rounding is not seen."""
    return not e.printed_half_widths.any()


def _error(half: float, exact: bool) -> str:
    return "exact" if exact else "unknown" if not np.isfinite(half) else f"{half:.2g}"
