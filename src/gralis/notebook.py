"""How much of a value is printed, what a notebook shows of it, and its numbers as a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import fields, is_dataclass
from html import escape
from typing import Any

from gralis.errors import GralisError

__all__ = ["MOST_ROWS", "InNotebooks", "more", "n_shown", "pandas", "text_html"]

MOST_ROWS = 15


def n_shown(count: int, most: int = MOST_ROWS) -> int:
    """How many of `count` rows a table shows: `most` of them, or one more if only one row would be left out.

    >>> n_shown(15), n_shown(16), n_shown(17)
    (15, 16, 15)
    """
    return count if count <= most + 1 else most


def more(count: int, shown: int) -> list[str]:
    """The line below a table that says how many rows it leaves out, if it does.

    >>> more(17, 15), more(15, 15)
    (['(2 more)'], [])
    """
    return [f"({count - shown} more)"] if count > shown else []


def pandas() -> Any:
    """The package pandas, or a sentence that says how to install it."""
    try:
        import pandas as module
    except ImportError as error:
        raise GralisError('Tables need pandas: pip install "gralis[tables]".') from error
    return module


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
    """A value whose printed text a notebook shows as a table or a sentence, and whose numbers make a data frame."""

    def to_frame(self) -> Any:
        """The numbers as a pandas data frame, with one row for each line of the table. This needs the extra `tables`.

        Returns
        -------
        pandas.DataFrame
        """
        return pandas().DataFrame(dict(self._frame_columns()))

    def _frame_columns(self) -> Mapping[str, Any]:
        """The columns by name: by default the longest fields side by side, or all fields as one row."""
        found: dict[str, Any] = (
            {field.name: getattr(self, field.name) for field in fields(self)} if is_dataclass(self) else {}
        )
        shown = {name: value for name, value in found.items() if not name.startswith("_")}
        lengths = {name: len(value) for name, value in shown.items() if _is_column(value)}
        longest = max(lengths.values(), default=0)
        if longest > 1:
            return {name: list(shown[name]) for name, count in lengths.items() if count == longest}
        return {name: [value] for name, value in shown.items()}

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return text_html(repr(self))


def _is_column(value: object) -> bool:
    """Whether a field holds one entry per line."""
    flat = getattr(value, "ndim", 1) == 1
    return flat and isinstance(value, Sized) and not isinstance(value, str | bytes | Mapping)
