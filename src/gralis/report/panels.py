"""Sections of the page that other code adds."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from gralis.checks import function
from gralis.errors import GralisError
from gralis.registry import Registry
from gralis.results.explanation import Explanation

__all__ = ["Panel", "panel_contents", "register_panel"]

#: Makes the HTML of a section, or None for an explanation to which it does not apply.
Panel: TypeAlias = Callable[[Explanation], str | None]

_PANELS: Registry[Panel] = Registry("register_panel", {}, "title")


def register_panel(title: str, panel: Panel | None) -> None:
    """Add a section to every report that is written from now on.

    Parameters
    ----------
    title : str
        The heading of the section. It replaces a panel that was registered under this title before.
    panel : callable or None
        A function that is called with the explanation. It returns the HTML of the section, or None for an explanation
        to which the section does not apply. If it raises a `GralisError`, the section shows the sentence of the error.
        None in place of a function removes the panel with this title.

        Escape every text that you did not write (`html.escape`). The page forbids scripts, event handlers, `style`
        attributes and everything from the network; elements that could run or load something are removed. Tables and
        paragraphs take the style of the page, SVG may use presentation attributes such as `fill`, and pictures may be
        `data:` URLs.

    Examples
    --------
    >>> import gralis, torch
    >>> from gralis.report import content, register_panel
    >>> register_panel("Largest value", lambda explanation: f"<p>{explanation.values.max():.1f}</p>")
    >>> content(gralis.explain(lambda z: 2 * z.sum(1), torch.ones(3)))["panels"]
    [{'title': 'Largest value', 'html': '<p>2.0</p>'}]
    >>> register_panel("Largest value", None)
    """
    if panel is None:
        _PANELS.pop(title, None)
    else:
        role = "that makes HTML from an explanation, or None"
        _PANELS[title] = function(panel, "panel", "register_panel", role)


def panel_contents(e: Explanation) -> list[dict[str, str]]:
    """The registered panels that apply to an explanation: `title`, and `html` or `missing`."""
    contents = []
    for title, panel in _PANELS.items():
        try:
            html = panel(e)
        except GralisError as error:
            contents.append({"title": title, "missing": str(error)})
            continue
        if html is not None and not isinstance(html, str):
            raise GralisError(f"The panel {title!r} must return HTML as a text, or None. Got {type(html).__name__}.")
        if html is not None:
            contents.append({"title": title, "html": html})
    return contents
