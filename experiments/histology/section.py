"""A section of the page, as HTML and as Markdown."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gralis.bench.text import markdown_table
from gralis.views.html_parts import html_table


@dataclass(frozen=True)
class Section:
    """A heading, a paragraph, a table and an optional figure."""

    heading: str
    says: str
    head: tuple[str, ...]
    lines: Sequence[Sequence[object]]
    figure: Path | None = None

    def html(self) -> str:
        return f"<p>{html.escape(self.says)}</p>{html_table(self.head, self.lines)}{self._picture()}"

    def _picture(self) -> str:
        if self.figure is None:
            return ""
        packed = base64.b64encode(self.figure.read_bytes()).decode()
        name = html.escape(self.heading)
        return f'<p><img alt="{name}" style="max-width: 100%" src="data:image/png;base64,{packed}"></p>'

    def markdown(self) -> str:
        shown = markdown_table(self.head, self.lines)
        picture = "" if self.figure is None else f"![{self.heading}](figures/{self.figure.name})\n\n"
        return f"## {self.heading}\n\n{self.says}\n\n{picture}{shown}\n"
