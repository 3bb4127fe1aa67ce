"""Add the scripts of examples/ to the site, because pages link to them as ../examples/name.py."""

from __future__ import annotations

from pathlib import Path
from posixpath import relpath
from typing import Any

from mkdocs.structure.files import File, Files


def on_files(files: Files, *, config: Any) -> Files:
    """Add every script to the files of the site."""
    root = Path(config.docs_dir).parent
    for script in sorted(root.glob("examples/*.py")):
        files.append(File.generated(config, f"examples/{script.name}", abs_src_path=str(script)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Rewrite links from docs/ to examples/ so that they stay inside the site."""
    here = Path(page.file.src_uri).parent.as_posix()
    return markdown.replace(f"]({relpath('../examples', here)}/", f"]({relpath('examples', here)}/")
