"""The tables of a study as Markdown and in words, for documents that are read without the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gralis.bench.scores import ScoreRow
from gralis.bench.statistics import Mean, comparisons
from gralis.views.html_parts import number

__all__ = ["losses", "markdown_table", "overview"]


def markdown_table(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A table as Markdown.

    >>> print(markdown_table(("what", "value"), [("a|b", 0.12345)]))
    | what | value |
    | --- | --- |
    | a\\|b | 0.123 |
    """
    table = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(_text(cell) for cell in line)} |" for line in table)


def overview(averages: Sequence[Mean]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """The head and the lines of a table with one line per method: mean ± half-width of every metric."""
    metrics = {mean.metric: f"{mean.metric} ({mean.better})" for mean in averages}
    known = {(mean.metric, mean.method): f"{mean.mean:.3g} ± {mean.high - mean.mean:.2g}" for mean in averages}
    lines = [
        (method, *(known.get((metric, method), "–") for metric in metrics))
        for method in dict.fromkeys(mean.method for mean in averages)
    ]
    return ("method", *metrics.values()), lines


def losses(table: Iterable[ScoreRow], method: str = "gralis") -> str:
    """In words: on which metrics other methods are better than this one by more than chance (Holm p < 0.05)."""
    winners: dict[str, list[str]] = {}
    for test in comparisons(table):
        if method in (test.a, test.b) and test.winner not in ("", method):
            winners.setdefault(test.metric, []).append(test.winner)
    return "; ".join(f"{metric} to {', '.join(names)}" for metric, names in winners.items()) or "on no metric"


def _text(cell: object) -> str:
    return number(float(cell)) if isinstance(cell, float | np.floating) else str(cell).replace("|", "\\|")
