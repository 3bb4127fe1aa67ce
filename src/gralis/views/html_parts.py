"""The parts of static HTML pages: the frame, tables, and numbers. Every text is escaped, and nothing is fetched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

import numpy as np

__all__ = ["document", "figures", "html_table", "number"]

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


def document(title: str, style: str, body: str) -> str:
    """A whole page without scripts, with a policy under which nothing can run or be fetched.

    Parameters
    ----------
    title : str
        The title, as plain text.
    style : str
        The CSS.
    body : str
        The content, as HTML.

    Returns
    -------
    str
        The page.
    """
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head><body>{body}</body></html>\n"
    )


def html_table(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A table of texts and numbers; numbers are set to the right.

    Parameters
    ----------
    head : sequence of str
        The names of the columns.
    lines : iterable of sequences
        The cells of every line. Floats are rounded to three digits.

    Returns
    -------
    str
        The table as HTML.
    """
    content = "".join(f"<tr>{''.join(_cell(value) for value in line)}</tr>" for line in lines)
    heads = "".join(f"<th>{escape(text)}</th>" for text in head)
    return f'<div class="scroll"><table><thead><tr>{heads}</tr></thead><tbody>{content}</tbody></table></div>'


def figures(facts: Mapping[str, str]) -> str:
    """The most important facts of a page, large and side by side."""
    cells = (f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in facts.items())
    return f'<dl class="figures">{"".join(cells)}</dl>' if facts else ""


def number(value: float | None, digits: int = 3) -> str:
    """A number as text, with a dash where there is none.

    >>> number(0.12345), number(float("nan")), number(1234567.0)
    ('0.123', '–', '1.23e+06')
    """
    return "–" if value is None or not np.isfinite(value) else f"{value:.{digits}g}"


def _cell(value: object) -> str:
    if isinstance(value, float | np.floating):
        return f'<td class="right">{number(float(value))}</td>'
    side = ' class="right"' if isinstance(value, int) else ""
    return f"<td{side}>{escape(str(value))}</td>"
