"""Turn docstring examples into code blocks, because mkdocstrings reads `>>>` in running text as quotation marks."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", flags=re.DOTALL | re.MULTILINE)


class Fenced(griffe.Extension):
    """Put every example, from its first `>>>` to the next empty line, into a code block."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            text = _EXAMPLE.sub(lambda example: f"```pycon\n{example[0]}\n```", obj.docstring.value)
            obj.docstring.value = re.sub(r"(?<!\n)\n```pycon", "\n\n```pycon", text)
