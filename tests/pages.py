"""Markdown pages as a reader uses them: code blocks pasted one after the other, links followed."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent

_BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
_FENCED = re.compile(r"^ *(```|~~~).*?^ *\1", flags=re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")
_HEADING = re.compile(r"^#+ +(.+?)(?: +\{ *#([\w-]+) *\})? *$", flags=re.MULTILINE)


def run(page: Path) -> dict[str, object]:
    """Execute the python blocks of a page in one scope, which is returned; errors name the line of the page."""
    text = page.read_text(encoding="utf-8")
    scope: dict[str, object] = {"__name__": "__page__"}
    for block in _BLOCK.finditer(text):
        above = "\n" * text.count("\n", 0, block.start(1))
        exec(compile(above + block[1], str(page), "exec"), scope)
    return scope


def n_blocks(page: Path) -> int:
    """How many python blocks a page has."""
    return len(_BLOCK.findall(page.read_text(encoding="utf-8")))


def broken_links(page: Path) -> list[str]:
    """Links of a page to files, or to headings of pages, that do not exist."""
    broken = []
    for target, anchor in _LINK.findall(_FENCED.sub("", page.read_text(encoding="utf-8"))):
        there = page.parent / target if target else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            broken.append(f"{target}#{anchor}" if anchor else target)
    return broken


def anchors(page: Path) -> set[str]:
    """The names of a page's headings in links: lower case, words joined by hyphens."""
    headings = _HEADING.findall(_FENCED.sub("", page.read_text(encoding="utf-8")))
    return {own or re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower()) for text, own in headings}
