"""One HTML file from the content: style, arithmetic and page script inlined, nothing fetched from anywhere."""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

#: Joined in this order; the first five are arithmetic and also run inside a worker.
ARITHMETIC = ("law.js", "surrogates.js", "estimate.js", "intervals.js", "worker.js")
PAGE = ("format.js", "picture.js", "panels.js", "sources.js", "page.js")


def page(content: Mapping[str, Any]) -> str:
    """The report as a page."""
    style, arithmetic = _read("page.css"), _joined(ARITHMETIC)
    script = f"(() => {{\n{_joined(PAGE)}\n}})();"  # its names are its own
    parts = {
        "@POLICY@": _policy(style, arithmetic, script),
        "@TITLE@": html.escape(str(content["title"])),
        "@STYLE@": style,
        "@CONTENT@": embedded_json(content),
        "@ARITHMETIC@": arithmetic,
        "@SCRIPT@": script,
    }
    text = _read("page.html")
    for mark, part in parts.items():  # the content comes after nothing that could look like a mark in it
        if mark != "@CONTENT@":
            text = text.replace(mark, part)
    before, _, after = text.partition("@CONTENT@")
    return before + parts["@CONTENT@"] + after


def embedded_json(content: Mapping[str, Any]) -> str:
    """JSON that cannot end the script element it stands in, nor open a comment in it.

    >>> embedded_json({"name": "</script><!--"})
    '{"name":"\\\\u003c/script\\\\u003e\\\\u003c!--"}'
    """
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def arithmetic() -> str:
    """The estimators in JavaScript, without any page."""
    return _joined(ARITHMETIC)


def _policy(style: str, *scripts: str) -> str:
    """What the browser may do with this page: run exactly these scripts, and reach nothing outside."""
    run = " ".join(_digest(script) for script in scripts)
    return (
        f"default-src 'none'; img-src data:; style-src {_digest(style)}; script-src {run} blob:; "
        "worker-src blob:; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    """Of an element's text, as the policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _joined(names: tuple[str, ...]) -> str:
    return "\n".join(_read(name) for name in names)


def _read(name: str) -> str:
    return files("gralis.report").joinpath(name).read_text(encoding="utf-8").strip()
