"""What a notebook shows: a static table with bars, without scripts. Every name is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from gralis.notebook import text_html
from gralis.results.explanation import Explanation
from gralis.results.feature_table import FeatureRow, feature_table
from gralis.results.result import FeatureResult
from gralis.views.colours import AGAINST, FOR
from gralis.views.small_picture import small_picture
from gralis.views.tokens import sentence_html, token_html

__all__ = ["explanation_html", "explanations_html", "feature_result_html"]

_MOST_CARDS = 12
_CELL = 'style="text-align:right;padding:2px 10px"'


def explanation_html(e: Explanation) -> str:
    """Feature, phi and the Shapley value with their simultaneous 95% half-widths, and a bar of phi on a common scale.

    Parameters
    ----------
    e : Explanation
        What is shown.

    Returns
    -------
    str
        HTML with inline styles.
    """
    table = feature_table(e)
    widest = float(abs(e.values).max(initial=0.0)) or 1.0
    rows = [_row(e, row, widest) for row in table.rows]
    foot = "<br>".join(escape(fact) for fact in e.facts)
    head = "".join(f"<th {_CELL}>{title}</th>" for title in table.headings)
    return (
        '<div style="font-family:system-ui,sans-serif;font-size:13px;line-height:1.4">'
        f"<div><b>GRALIS explanation</b>, {escape(e.headline)}</div>"
        f"<div>F(x) = {e.f_x:.5g}, F(x&#x27;) = {e.f_baseline:.5g}, difference {e.delta:.5g}</div>{_above(e)}"
        '<table style="border-collapse:collapse;margin:6px 0"><thead><tr><th style="text-align:left">feature</th>'
        f"{head}<th></th><th></th></tr></thead><tbody>{''.join(rows)}</tbody></table>"
        f'<div style="opacity:0.75">{foot}</div></div>'
    )


def feature_result_html(result: FeatureResult) -> str:
    """The values of another method: the picture or the sentence if there is one, and the printed table.

    Parameters
    ----------
    result : FeatureResult
        What is shown.

    Returns
    -------
    str
        HTML with inline styles.
    """
    return f"<div>{small_picture(result)}{sentence_html(result)}{text_html(repr(result))}</div>"


def explanations_html(each: Sequence[Explanation], labels: Sequence[str], table: str) -> str:
    """Several explanations: the picture or the sentence of each, side by side, and the printed table.

    Parameters
    ----------
    each : sequence of Explanation
        The explanations.
    labels : sequence of str
        What each of them is about.
    table : str
        The printed table of all of them.

    Returns
    -------
    str
        HTML with inline styles.
    """
    cards = []
    for e, label in list(zip(each, labels, strict=True))[:_MOST_CARDS]:
        shown = _input_html(e)
        if shown:
            style = "margin:0 12px 8px 0;display:inline-block;vertical-align:top"
            cards.append(f'<figure style="{style}">{shown}<figcaption>{escape(label)}</figcaption></figure>')
    return f"<div>{''.join(cards)}{text_html(table)}</div>"


def _above(e: Explanation) -> str:
    """What stands above the table: the doubts, and the picture or the text itself in colour if x is one."""
    return _doubts(e) + _input_html(e)


def _input_html(e: Explanation) -> str:
    """The picture or the sentence with its values in colour; nothing if x is neither."""
    text = token_html(e) if "text" in e.features.meta else sentence_html(e)
    return text or small_picture(e, None if e.provenance.get("layer") else e.endpoints.x[0])


def _doubts(e: Explanation) -> str:
    """A box with the doubts, above the numbers that they concern."""
    if not e.doubts:
        return ""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in e.doubts)
    return (
        f'<div role="note" style="border:1px solid {FOR};border-left-width:4px;padding:4px 10px;margin:6px 0">'
        f'<b>Doubts about these numbers</b><ul style="margin:2px 0;padding-left:18px">{items}</ul></div>'
    )


def _row(e: Explanation, row: FeatureRow, widest: float) -> str:
    numbers = "".join(f"<td {_CELL}>{text}</td>" for text in row.cells)
    bar = "" if row.feature is None else _bar(float(e.values[row.feature]), widest)
    return f"<tr><td>{escape(row.name)}</td>{numbers}<td>{bar}</td><td>{row.mark}</td></tr>"


def _bar(value: float, widest: float) -> str:
    length = 90 * abs(value) / widest
    place = 100 if value >= 0 else 100 - length
    return (
        f'<svg width="200" height="12" role="img" aria-label="{value:.3g}">'
        f'<rect x="{place:.1f}" y="1" width="{length:.1f}" height="10" fill="{FOR if value >= 0 else AGAINST}"/>'
        '<line x1="100" y1="0" x2="100" y2="12" stroke="currentColor" stroke-width="0.7"/></svg>'
    )
