"""Which output is explained, and what it is called."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gralis.errors import GralisError
from gralis.models import Model
from gralis.models.estimator_model import estimator, is_estimator
from gralis.problem import Problem
from gralis.targets import Readout, Target, describe, parse

__all__ = ["ChosenTarget", "choose_target", "read_class_names"]


@dataclass(frozen=True)
class ChosenTarget:
    """The output that is explained; prints as words."""

    target: Target
    label: str | None  # its name in the file of --labels
    predicted: bool  # whether it was chosen because it is the largest output

    def __str__(self) -> str:
        named = f" ({self.label})" if self.label else ""
        return f"{describe(self.target)}{named}{', the predicted class' if self.predicted else ''}"


def choose_target(model: Any, x: Any, baseline: Any, target: str | None, class_names: list[str]) -> ChosenTarget:
    """The target of the command line, else the class with the largest output, else None for a model with one output."""
    listed = "in --labels"
    if is_estimator(model):
        known = estimator(model).class_names
        if known and not class_names:
            class_names, more = list(known), ", ..." if len(known) > 8 else ""
            listed = f"among the classes of the estimator ({', '.join(known[:8])}{more})"
        if target in known:
            return ChosenTarget(estimator(model).named_target(target), target, predicted=False)
    chosen = _read(target, class_names, listed) if target is not None else _largest(model, x, baseline)
    index = chosen.k if isinstance(chosen, Readout) else chosen
    named = isinstance(index, int) and 0 <= index < len(class_names)
    label = class_names[index] if named else None  # type: ignore[index]
    return ChosenTarget(chosen, label, target is None and chosen is not None)


def _read(target: str, class_names: list[str], listed: str = "in --labels") -> Target:
    """The target of the command line: the number of the output with this name, or what `parse` reads.

    >>> _read("coffee", ["tea", "Coffee"]), _read("1", ["tea", "Coffee"])
    (1, 1)
    """
    wanted = target.strip().casefold()
    names = [] if wanted[:1].isdigit() else class_names  # a number is the number of an output
    same = [number for number, name in enumerate(names) if name.strip().casefold() == wanted]
    if len(same) == 1:
        return same[0]
    if len(same) > 1:
        numbers = ", ".join(map(str, same))
        raise GralisError(f"--target: {len(same)} outputs are called {target!r} {listed}; give a number: {numbers}.")
    try:
        return parse(target)
    except GralisError as error:
        if not wanted.replace(" ", "").replace("-", "").isalpha():
            raise
        near = difflib.get_close_matches(wanted, [name.strip().casefold() for name in class_names], 3)
        known = f"; similar names there are {', '.join(near)}" if near else ""
        where = f"no output is called {target!r} {listed}{known}" if class_names else "a name needs --labels, a file"
        raise GralisError(f"--target: {where}. {error}") from error


def read_class_names(path: Path | None) -> list[str]:
    """One name per line: the first line names output 0."""
    if path is None:
        return []
    try:
        return path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise GralisError(f"--labels: {path} cannot be read as text in UTF-8 ({error}).") from error


def _largest(model: Any, x: Any, baseline: Any) -> int | None:
    if isinstance(model, Model):
        return None
    about = {"baseline": baseline} if is_estimator(model) else {}
    return Problem.build(model, x, target=0, **about).predicted()
