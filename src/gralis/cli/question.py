"""Which output is explained, and what it is called."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gralis.errors import GralisError
from gralis.models import Model
from gralis.problem import Problem
from gralis.targets import Readout, Target, describe, parse


@dataclass(frozen=True)
class Question:
    """Why is this output what it is?"""

    target: Target
    label: str | None  # from the label file
    predicted: bool  # chosen by us, as the largest output

    def __str__(self) -> str:
        named = f" ({self.label})" if self.label else ""
        return f"{describe(self.target)}{named}{', the predicted class' if self.predicted else ''}"


def ask(model: Any, x: Any, target: str | None, labels: list[str]) -> Question:
    """The given target, or the class with the largest output; None where the model gives one number."""
    goal = parse(target) if target is not None else _largest(model, x)
    index = goal.k if isinstance(goal, Readout) else goal
    known = isinstance(index, int) and 0 <= index < len(labels)
    return Question(goal, labels[index] if known else None, target is None and goal is not None)  # type: ignore[index]


def read_labels(path: Path | None) -> list[str]:
    """One label per line: the first line names output 0."""
    if path is None:
        return []
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise GralisError(f"--labels: {path} cannot be read as text in UTF-8 ({error}).") from error


def _largest(model: Any, x: Any) -> int | None:
    return None if isinstance(model, Model) else Problem.build(model, x, target=0).predicted()
