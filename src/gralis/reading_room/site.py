"""The files of the gallery. The page reads its data from scripts that register themselves, which works from disk."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from gralis.errors import GralisError, bad
from gralis.report.html_page import digest, embedded_json, filled, read_texts
from gralis.storage.container import write_text, write_whole
from gralis.storage.json_values import strict

__all__ = ["Site"]

_SHARED = ("format.js", "csv.js", "theme.js")  # with the report
_SCRIPTS = ("cases.js", "filters.js", "list.js", "detail.js", "notes.js", "beeswarm.js", "groups.js", "gallery.js")
_STYLES = (("gralis.report", "theme.css"), ("gralis.reading_room", "gallery.css"))
_FOLDERS = ("data", "reports", "thumbs")
_MARK = "data/head.js"


class Site:
    """The folder of a gallery. It is new, empty, or holds an older gallery, whose data are replaced."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if path.exists() and (not path.is_dir() or (any(path.iterdir()) and not (path / _MARK).is_file())):
            raise bad("out", "gallery", "a new or empty folder, or an older gallery", str(path))
        try:
            shutil.rmtree(path / "data", ignore_errors=True)  # the number of chunks may have changed
            for folder in _FOLDERS:
                (path / folder).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise GralisError(f"The folder {path} cannot be made: {error.strerror}.") from error
        write_text(path / _MARK, "")

    def has(self, name: str) -> bool:
        """Whether a file is there from an older gallery."""
        return (self.path / name).is_file()

    def write(self, name: str, content: bytes) -> None:
        """A file of bytes, whole or not at all."""
        write_whole(self.path / name, lambda temporary: temporary.write_bytes(content))

    def write_chunk(self, number: int, rows: Mapping[str, Any]) -> None:
        """Some rows, as a script that registers them."""
        write_text(self.path / f"data/rows-{number:05d}.js", f"gralisGallery.rows({number}, {_json(rows)});\n")

    def finish(self, head: Mapping[str, Any]) -> Path:
        """The data that are not rows, and the page."""
        write_text(self.path / _MARK, f"gralisGallery.head({_json(head)});\n")
        return write_text(self.path / "index.html", _page(str(head["title"])))


def _json(content: Mapping[str, Any]) -> str:
    return embedded_json(strict(dict(content)))


def _page(title: str) -> str:
    style = "\n".join(read_texts(package, (name,)) for package, name in _STYLES)
    script = "\n".join([read_texts("gralis.report", _SHARED), read_texts("gralis.reading_room", _SCRIPTS)])
    script = f"(() => {{\n{script}\n}})();"
    # Chromium and Firefox treat a page from disk as a site of its own, so that 'self' alone would forbid its data.
    policy = (
        f"default-src 'none'; img-src 'self' file: data:; style-src {digest(style)}; "
        f"script-src {digest(script)} 'self' file:; base-uri 'none'; form-action 'none'"
    )
    template = files("gralis.reading_room").joinpath("gallery.html").read_text(encoding="utf-8")
    return filled(template, title, policy, STYLE=style, SCRIPT=script)
