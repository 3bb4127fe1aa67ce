"""A mutant: one named place of the library, broken on purpose, and the checks that must notice."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "gralis"


@dataclass(frozen=True)
class Mutant:
    """`original`, which occurs once in `file`, becomes `mutated`; `checks` are sections of verify or test files.

    `of` is the public name that the place belongs to, such as `kernels.Gaussian`.
    """

    name: str
    of: str
    file: str  # below src/gralis
    original: str
    mutated: str
    why: str
    checks: tuple[str, ...]  # "verify:laws", "tests/test_laws.py" or "tests/test_laws.py::test_name"

    def applied(self, source: Path = SOURCE) -> str:
        """The text of the file with the mutation; raises ValueError if the original is not there exactly once."""
        text = (source / self.file).read_text(encoding="utf-8")
        if text.count(self.original) != 1:
            raise ValueError(f"{self.name}: {self.original!r} occurs {text.count(self.original)} times in {self.file}")
        changed = text.replace(self.original, self.mutated)
        if ast.dump(ast.parse(changed)) == ast.dump(ast.parse(text)):
            raise ValueError(f"{self.name}: the mutation does not change the program")
        return changed
