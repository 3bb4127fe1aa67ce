"""One HTML file from the content. Style and scripts are inlined; nothing is fetched."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

__all__ = ["arithmetic", "embedded_json", "page"]

#: Joined in this order. The arithmetic also runs inside a worker.
ARITHMETIC = (
    "constants.js",
    "law.js",
    "surrogates.js",
    "steadiest.js",
    "adjusted.js",
    "coverage.js",
    "margins.js",
    "estimate.js",
    "intervals.js",
    "worker.js",
)
PAGE = ("format.js", "opening.js", "picture.js", "panels.js", "sources.js", "page.js")


def page(content: Mapping[str, Any]) -> str:
    """The report as a page.

    Parameters
    ----------
    content : mapping
        What `gralis.report.content` returns.

    Returns
    -------
    str
        The HTML file.
    """
    style, arithmetic = _read("page.css"), _joined(ARITHMETIC)
    script = f"(() => {{\n{_joined(PAGE)}\n}})();"  # so that its names do not leave it
    parts = {
        "@POLICY@": _policy(style, arithmetic, script),
        "@TITLE@": html.escape(str(content["title"])),
        "@STYLE@": style,
        "@CONTENT@": embedded_json(content),
        "@ARITHMETIC@": arithmetic,
        "@SCRIPT@": script,
    }
    # In one pass, because the content may contain such a mark.
    return re.sub("@[A-Z]+@", lambda mark: parts[mark[0]], _read("page.html"))


def embedded_json(content: Mapping[str, Any]) -> str:
    """JSON that cannot close the script element that holds it, and cannot open a comment in it.

    >>> embedded_json({"name": "</script><!--"})
    '{"name":"\\\\u003c/script\\\\u003e\\\\u003c!--"}'
    """
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def arithmetic() -> str:
    """The estimators in JavaScript, without the page."""
    return _joined(ARITHMETIC)


def _policy(style: str, *scripts: str) -> str:
    """What the browser may do with this page: it runs exactly these scripts and reaches nothing outside."""
    run = " ".join(_digest(script) for script in scripts)
    return (
        f"default-src 'none'; img-src data:; style-src {_digest(style)}; script-src {run} blob:; "
        "worker-src blob:; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    """The hash by which the policy names the text of an element."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _joined(names: tuple[str, ...]) -> str:
    return "\n".join(_read(name) for name in names)


def _read(name: str) -> str:
    return files("gralis.report").joinpath(name).read_text(encoding="utf-8").strip()
