"""What a notebook shows of a value that prints: the printed text, with HTML characters escaped."""

from __future__ import annotations

from html import escape

__all__ = ["InNotebooks", "text_html"]


def text_html(text: str) -> str:
    """A printed text for a notebook: a table keeps its columns, and a sentence is broken into lines.

    >>> text_html("a <b>")
    '<p style="margin:0">a &lt;b&gt;</p>'
    >>> text_html("a  1\\nb  2")
    '<pre style="line-height:1.3">a  1\\nb  2</pre>'
    """
    if "\n" not in text:
        return f'<p style="margin:0">{escape(text)}</p>'
    return f'<pre style="line-height:1.3">{escape(text)}</pre>'


class InNotebooks:
    """A value whose printed text a notebook shows as a table or a sentence."""

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return text_html(repr(self))
