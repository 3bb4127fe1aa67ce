"""Docstring examples as code blocks: for mkdocstrings, which reads `>>>` in running text as quotation marks."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", flags=re.DOTALL | re.MULTILINE)


class Fenced(griffe.Extension):
    """Puts every example, from its first `>>>` to the next empty line, into a fence."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            text = _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value)
            obj.docstring.value = re.sub(r"(?<!\n)\n```pycon", "\n\n```pycon", text)
