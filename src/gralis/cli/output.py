"""Where results go: file names that stay in their folder, and files that are complete or absent."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gralis.errors import GralisError
from gralis.results.explanation import Explanation
from gralis.storage.container import write_whole

__all__ = ["OutputFolder", "safe_name", "write_picture", "write_report"]

_LONGEST = 100  # bytes


def safe_name(name: str) -> str:
    """A file name without folders, control characters and anything that a shell or a file system could misread.

    >>> safe_name("../../etc/pass wd.png"), safe_name("..\\\\x.png"), safe_name("..."), safe_name("a<b>.jpg")
    ('pass wd', 'x', 'input', 'a_b_')
    """
    last = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    stem = last.rpartition(".")[0] or last
    kept = "".join(c if c.isalnum() or c in "-_. ()+" else "_" for c in stem)
    while len(kept.encode()) > _LONGEST:
        kept = kept[:-1]
    return kept.strip(" .") or "input"


@dataclass
class OutputFolder:
    """A folder for the results of one run; two inputs with the same name get two files."""

    path: Path
    _used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise GralisError(f"The folder {self.path} cannot be made: {error.strerror}.") from error

    def stem(self, name: str) -> Path:
        """The path for this input, without a suffix."""
        stem, number = safe_name(name), 1
        while (unused := stem if number == 1 else f"{stem}-{number}").casefold() in self._used:
            number += 1
        self._used.add(unused.casefold())
        return self.path / unused


def write_report(explanation: Explanation, path: Path, image: object = None) -> Path:
    """Write the report of an explanation, with the label of its target."""
    explanation.report(path, image=image, label=explanation.provenance.get("label"))
    return path


def write_picture(figure: Any, path: Path) -> Path:
    """Write a figure as PNG."""
    return write_whole(path, lambda temporary: figure.savefig(temporary, format="png", dpi=150))
