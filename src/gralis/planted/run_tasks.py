"""`run`: train and score tasks one after the other; a task that is finished in the folder is read, not made again."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tqdm.auto import tqdm

from gralis.checks import whole
from gralis.errors import GralisError, bad
from gralis.planted.markdown import summary
from gralis.planted.scoring import METHODS, PlantedScore, score_task
from gralis.planted.tasks import TASKS
from gralis.storage.container import write_text
from gralis.storage.json_values import strict
from gralis.version import __version__

__all__ = ["run"]


def run(
    out: str | Path,
    tasks: Sequence[str] | None = None,
    *,
    n_examples: int = 40,
    budget: int = 400,
    n_references: int = 8,
    seed: int = 0,
    progress: bool | None = None,
) -> tuple[PlantedScore, ...]:
    """Train small networks on data with planted evidence, and score every method against what was planted.

    Parameters
    ----------
    out : str or Path
        The folder: one JSON file per task, and `planted.md` with the table. A run that was stopped continues there.
    tasks : sequence of str, optional
        Names of `TASKS`; by default all.
    n_examples : int, default=40
        How many examples of each task are explained.
    budget : int, default=400
        The gradients of every explanation.
    n_references : int, default=8
        For how many examples of each task intervals are compared with a reference of 16 times the budget.
    seed : int, default=0
        The seed of data, training and explanations.
    progress : bool, optional
        Whether a bar is shown; by default on a terminal.

    Returns
    -------
    tuple of PlantedScore
        One per task and method.
    """
    chosen = list(TASKS) if tasks is None else list(tasks)
    for task in chosen:
        if task not in TASKS:
            raise bad("tasks", "planted.run", f"made of {', '.join(TASKS)}", repr(task))
    settings: dict[str, Any] = {
        "n_examples": whole(n_examples, "n_examples", 1, "planted.run"),
        "budget": whole(budget, "budget", 1, "planted.run"),
        "n_references": whole(n_references, "n_references", 0, "planted.run"),
        "seed": whole(seed, "seed", 0, "planted.run"),
    }
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    shown = progress is True or (progress is None and sys.stderr.isatty())
    scores: list[PlantedScore] = []
    facts: dict[str, tuple[float, float]] = {}
    for task in tqdm(chosen, unit="task", desc="planted", disable=not shown):
        record = _record(task, folder / f"{task.replace(' ', '-')}.json", settings)
        facts[task] = (_number(record["accuracy"]), _number(record["reliance"]))
        scores += [PlantedScore(**{name: _number(value) for name, value in row.items()}) for row in record["scores"]]
    write_text(folder / "planted.md", summary(scores, facts))
    return tuple(scores)


def _record(task: str, path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    """The record of one task: that of the file if it was made with the same settings, otherwise a new one."""
    wanted = {**settings, "methods": list(METHODS), "gralis": __version__}
    if path.exists():
        try:
            known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise GralisError(
                f"{path.name} is not a record of planted.run; move it away or use another folder."
            ) from error
        if known.get("settings") != wanted:
            raise GralisError(f"{path.name} was made with other settings; use another folder, or the same settings.")
        return known
    trained = TASKS[task].train(settings["seed"])
    scores = score_task(task, trained, **settings)
    record = {
        "settings": wanted,
        "accuracy": trained.accuracy,
        "reliance": trained.reliance,
        "scores": [score.settings() for score in scores],
    }
    write_text(path, json.dumps(strict(record), indent=1))
    return record


def _number(value: Any) -> Any:
    return math.nan if value is None else value
