"""The scores of all tasks as Markdown tables: who finds the evidence, and whose intervals alarm falsely."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from gralis.bench.text import markdown_table
from gralis.planted.scoring import PlantedScore

__all__ = ["summary"]


def summary(scores: Sequence[PlantedScore], facts: Mapping[str, tuple[float, float]]) -> str:
    """The tables as Markdown.

    Parameters
    ----------
    scores : sequence of PlantedScore
        The scores of all tasks.
    facts : mapping from str to (float, float)
        The accuracy of each task's model, and how much it relies on the distractor.
    """
    tasks = list(dict.fromkeys(score.task for score in scores))
    methods = list(dict.fromkeys(score.method for score in scores))
    known = {(score.task, score.method): score for score in scores}

    def table(title: str, field: str, chosen: Sequence[str]) -> str:
        lines = []
        for method in methods:
            cells = [_percent(getattr(known[task, method], field)) for task in chosen]
            if any(cell != "–" for cell in cells):
                lines.append((method, *cells))
        return f"## {title}\n\n{markdown_table(('method', *chosen), lines)}"

    model_lines = [(task, _percent(accuracy), _percent(reliance)) for task, (accuracy, reliance) in facts.items()]
    distracted = [task for task in tasks if task.endswith("distractor")]
    parts = [
        f"## Models\n\n{markdown_table(('task', 'accuracy', 'reliance on the distractor'), model_lines)}",
        table("The evidence is ranked first", "evidence_first", tasks),
        table("Some interval excludes zero, and the reference denies it", "false_alarms", tasks),
    ]
    if distracted:
        parts.insert(2, table("The distractor is ranked first", "distractor_first", distracted))
        parts.insert(3, table("|value| of the distractor over that of the evidence", "distractor_ratio", distracted))
    return "\n\n".join(parts) + "\n"


def _percent(share: float) -> str:
    return "–" if math.isnan(share) else f"{share:.0%}" if share >= 0.1 or share == 0 else f"{share:.1%}"
