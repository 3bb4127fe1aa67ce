"""Markdown pages as a reader uses them: code blocks pasted one after the other, links followed.

python tests/pages.py docs/start.md ...    puts what the code prints today under it
"""

from __future__ import annotations

import io
import re
import sys
import tempfile
from contextlib import chdir, redirect_stdout
from pathlib import Path

ROOT = Path(__file__).parent.parent

_BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", flags=re.DOTALL | re.MULTILINE)
_NUMBER = re.compile(r"[-+]?\d[\d.]*(e[-+]?\d+)?%?")
_FENCED = re.compile(r"^ *(```|~~~).*?^ *\1", flags=re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)")
_HEADING = re.compile(r"^#+ +(.+?)(?: +\{ *#([\w-]+) *\})? *$", flags=re.MULTILINE)


def run(page: Path) -> str:
    """The page with what its python blocks print, run in one scope, in the text block under each, if there is one.

    Errors name the line of the page.
    """
    text = page.read_text(encoding="utf-8")
    scope: dict[str, object] = {"__name__": "__page__"}
    parts, end = [], 0
    for block in _BLOCK.finditer(text):
        above, printed = "\n" * text.count("\n", 0, block.start(1)), io.StringIO()
        with redirect_stdout(printed):
            exec(compile(above + block[1], str(page), "exec", dont_inherit=True), scope)
        if block[2] is not None:
            parts += [text[end : block.start(2)], printed.getvalue()]
            end = block.end(2)
    return "".join([*parts, text[end:]])


def words(text: str) -> list[str]:
    """The lines without their numbers and without their order: what a page shows on every machine."""
    return sorted(" ".join(_NUMBER.sub("#", line).split()) for line in text.splitlines())


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


if __name__ == "__main__":
    pages = [Path(page).resolve() for page in sys.argv[1:]]
    with tempfile.TemporaryDirectory() as away, chdir(away):  # what the code writes is not kept
        for each in pages:
            each.write_text(run(each), encoding="utf-8")
