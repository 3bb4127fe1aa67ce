"""The tables of a study as Markdown and in words, for documents that are read without the page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gralis.bench.scores import ScoreRow, failures
from gralis.bench.statistics import Mean, comparisons
from gralis.views.html_parts import number

__all__ = ["gaps", "losses", "markdown_table", "overview"]


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


def gaps(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """In sentences: which images were left out, and what has no value and why; equal reasons share a sentence.

    >>> scores = [{"method": "lime", "metric": name, "error": "Too flat."} for name in ("gini", "entropy")]
    >>> scored = {"image": "b.png", "attributions": {"lime": []}, "scores": scores}
    >>> gaps([{"image": "a.png", "error": "not a picture"}, scored])
    ['a.png was left out: not a picture.', 'No value on 1 of 1 images: gini of lime, entropy of lime. Too flat.']
    """
    images = [f"{record['image']} was left out: {record['error']}" for record in records if "error" in record]
    of_reason: dict[tuple[int, int, str], list[str]] = {}
    for one in failures(records):
        of_reason.setdefault((one.n_failed, one.n_images, one.error), []).append(one.what)
    scores = [
        f"No value on {n} of {n_images} images: {', '.join(names)}. {error}"
        for (n, n_images, error), names in of_reason.items()
    ]
    return [f"{line.rstrip('.')}." for line in (*images, *scores)]


def _text(cell: object) -> str:
    return number(float(cell)) if isinstance(cell, float | np.floating) else str(cell).replace("|", "\\|")
