"""Results for people (tables by rich) and for programs (strict JSON)."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gralis.cli.outcome import one_line
from gralis.errors import GralisError
from gralis.files.archive import plain
from gralis.results.explanation import Explanation
from gralis.views.table import cost_line, residual_line, tolerance_line

_MOST_ROWS = 15


class _Console(Console):  # type: ignore[misc]
    def on_broken_pipe(self) -> None:
        """Not silently, as rich would: the command says that nobody reads on."""
        raise


def show(explanation: Explanation, name: str, question: str) -> None:
    """The table of one explanation, on standard output."""
    e = explanation
    console = _Console(highlight=False)
    half = np.diff(e.interval(0.95), axis=1)[:, 0] / 2
    order = np.argsort(-np.abs(e.values), kind="stable")[:_MOST_ROWS]
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("feature", overflow="fold")
    for heading in ("phi", "+- (95%)", "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    for i in order:
        share = f"{e.values[i] / e.delta:.1%}" if e.delta else "-"
        style = "red" if e.values[i] > 0 else "blue"
        width = "unknown" if np.isnan(half[i]) else "exact" if half[i] == 0 else f"{half[i]:.2g}"
        table.add_row(Text(one_line(e.names[int(i)])), Text(f"{e.values[i]:.5g}", style=style), width, share)
    if e.n_features > len(order):
        rest = e.values.sum() - e.values[order].sum()
        table.add_row(f"({e.n_features - len(order)} more)", f"{rest:.5g}")
    console.print(Text(f"{one_line(name)}: {one_line(question)}", style="bold"), soft_wrap=True)
    console.print(Text(f"F(x) = {e.f_x:.6g}   F(x') = {e.f_baseline:.6g}   difference {e.delta:.6g}"), soft_wrap=True)
    console.print(table)
    for line in _closing(e):
        console.print(Text(line), soft_wrap=True)


def _closing(e: Explanation) -> list[str]:
    lines = [f"sum of phi {e.values.sum():.6g}; {residual_line(e)}", cost_line(e)]
    if not e.complete:
        lines.append("stopped before the plan was done: the numbers stand for what was evaluated so far")
    if e.reached is not None:
        lines.append(tolerance_line(e))
    with suppress(GralisError):  # a plan without one
        lines.append(str(e.certificate()))
    return lines


def to_json(value: Any) -> str:
    """One line of JSON; what JSON lacks (NaN, infinity) becomes null.

    >>> to_json({"phi": np.array([1.0, np.nan])})
    '{"phi": [1.0, null]}'
    """
    return json.dumps(_finite(plain(value)), allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
