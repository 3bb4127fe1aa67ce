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

from gralis.errors import bad

__all__ = ["arithmetic", "digest", "embedded_json", "filled", "page", "page_style", "read_texts"]

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
PAGE = (
    "format.js",
    "csv.js",
    "theme.js",
    "opening.js",
    "picture.js",
    "views.js",
    "volume.js",
    "panels.js",
    "sources.js",
    "page.js",
)
STYLES = ("theme.css", "page.css")


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
    if not isinstance(content, Mapping) or "title" not in content:
        raise bad("content", "report.page", "what gralis.report.content returns", f"a {type(content).__name__}")
    style, arithmetic = page_style(), _joined(ARITHMETIC)
    script = f"(() => {{\n{_joined(PAGE)}\n}})();"  # so that its names do not leave it
    parts = {"STYLE": style, "CONTENT": embedded_json(content), "ARITHMETIC": arithmetic, "SCRIPT": script}
    return filled(_joined(("page.html",)), str(content["title"]), _policy(style, arithmetic, script), **parts)


def page_style() -> str:
    """The style of the report, which other pages share."""
    return _joined(STYLES)


def filled(template: str, title: str, policy: str, **parts: str) -> str:
    """A page whose marks such as @STYLE@ are replaced, in one pass, because a part may contain such a mark."""
    marks = {"TITLE": html.escape(title), "POLICY": policy, **parts}
    return re.sub("@([A-Z]+)@", lambda mark: marks[mark[1]], template)


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
    run = " ".join(digest(script) for script in scripts)
    return (
        f"default-src 'none'; img-src data:; style-src {digest(style)}; script-src {run} blob:; "
        "worker-src blob:; base-uri 'none'; form-action 'none'"
    )


def digest(text: str) -> str:
    """The hash by which the policy names the text of an element."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def read_texts(package: str, names: tuple[str, ...]) -> str:
    """Files of a package, one after the other."""
    return "\n".join(files(package).joinpath(name).read_text(encoding="utf-8").strip() for name in names)


def _joined(names: tuple[str, ...]) -> str:
    return read_texts("gralis.report", names)
