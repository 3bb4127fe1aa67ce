"""The report: one HTML file for a reader who must trust or contest a prediction; no network, no server, no model.

`Explanation.report(path)` writes it. `archive_of(path)` gives back the saved explanation inside, and `gralis.load`
reads it like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from gralis.report.content import SCHEMA, content
from gralis.report.page import page
from gralis.storage.container import write_text
from gralis.storage.embedded import archive_of, content_of

if TYPE_CHECKING:
    from gralis.results.explanation import Explanation

__all__ = ["SCHEMA", "archive_of", "content", "content_of", "page", "report"]


def report(
    explanation: Explanation,
    path: str | Path,
    *,
    title: str | None = None,
    image: object = None,
    label: str | None = None,
    beside: Sequence[Explanation] = (),
) -> Path:
    """Write the report of an explanation to `path`."""
    found = content(explanation, title=title, image=image, label=label, beside=tuple(beside))
    return write_text(path, page(found))
