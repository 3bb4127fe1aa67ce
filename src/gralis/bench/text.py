"""The tables as Markdown, for documents that are read without the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from gralis.bench.page import number
from gralis.bench.statistics import Mean, comparisons
from gralis.bench.tables import Row


def markdown_table(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """
    >>> print(markdown_table(("what", "value"), [("a|b", 0.12345)]))
    | what | value |
    | --- | --- |
    | a\\|b | 0.123 |
    """
    table = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(_text(cell) for cell in line)} |" for line in table)


def overview(found: Sequence[Mean]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Head and lines: a method each, mean ± half-width of every metric."""
    metrics = {one.metric: f"{one.metric} ({one.better})" for one in found}
    known = {(one.metric, one.method): one for one in found}
    lines = []
    for method in dict.fromkeys(one.method for one in found):
        own = [known.get((metric, method)) for metric in metrics]
        lines.append((method, *(f"{one.mean:.3g} ± {one.high - one.mean:.2g}" if one else "–" for one in own)))
    return ("method", *metrics.values()), lines


def losses(table: Iterable[Row], method: str = "gralis") -> str:
    """In words: on which metrics which other methods are better by more than chance (Holm p < 0.05)."""
    found: dict[str, list[str]] = {}
    for one in comparisons(table):
        if method in (one.a, one.b) and one.winner not in ("", method):
            found.setdefault(one.metric, []).append(one.winner)
    return "; ".join(f"{metric} to {', '.join(winners)}" for metric, winners in found.items()) or "on no metric"


def _text(cell: object) -> str:
    return number(float(cell)) if isinstance(cell, float | np.floating) else str(cell).replace("|", "\\|")
