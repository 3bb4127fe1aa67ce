"""The report: one HTML file for a reader who must trust or contest a prediction. It needs no network and no model.

assembly      everything the report says, as plain values; sections: the numbers of each part
words         sentences from numbers
picture       an image with its regions; outline: a region as a path; png: pixels as a PNG
slider_rows   the rows from which the page recomputes the values; constants: the numbers it shares with Python
panels        sections that other code adds
html_page     the HTML file; its scripts and style are the files .js and .css beside it

`Explanation.report(path)` writes a report. `archive_of(path)` returns the saved explanation inside, and `gralis.load`
reads it like any other. `register_panel` adds a section.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gralis.report.assembly import SCHEMA, content
from gralis.report.html_page import page
from gralis.report.panels import register_panel
from gralis.results.explanation import Explanation
from gralis.storage.container import write_text
from gralis.storage.embedded import archive_of, content_of

__all__ = ["SCHEMA", "archive_of", "content", "content_of", "page", "register_panel", "report"]


def report(
    explanation: Explanation,
    path: str | Path,
    *,
    title: str | None = None,
    image: object = None,
    label: str | None = None,
    beside: Sequence[Explanation] = (),
) -> Path:
    """Write the report of an explanation as one HTML file; `Explanation.report` is the same.

    Parameters
    ----------
    explanation : Explanation
        What the report is about.
    path : str or Path
        The file to write.
    title : str, optional
        The title of the page.
    image : array of shape (H, W), (H, W, 3) or (C, H, W), optional
        The picture to show if people cannot read x itself, for example because it is normalised.
    label : str, optional
        The target in words.
    beside : sequence of Explanation, optional
        Explanations of the same features to show side by side, for example with another baseline.

    Returns
    -------
    Path
        The path that was written.
    """
    return write_text(path, page(content(explanation, title=title, image=image, label=label, beside=beside)))
