"""Results for people (a table made by rich) and for programs (strict JSON)."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from gralis.cli.messages import one_line
from gralis.errors import GralisError
from gralis.results.explanation import Explanation
from gralis.results.feature_table import feature_table
from gralis.storage.json_values import strict

__all__ = ["print_explanation", "to_json"]


class _Console(Console):  # type: ignore[misc]
    def on_broken_pipe(self) -> None:
        """Raise the error, which rich would hide: the command then says that standard output was closed."""
        raise


def print_explanation(e: Explanation, name: str, target: str) -> None:
    """Print the table of one explanation to standard output."""
    console = _Console(highlight=False)
    cells = feature_table(e)
    marked = any(row.mark for row in cells.rows)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("feature", overflow="fold")
    for heading in cells.headings:
        table.add_column(heading.replace("+-", "+- (95%)"), justify="right", no_wrap=True)
    if marked:
        table.add_column("", no_wrap=True)
    for row in cells.rows:
        # Values are red or blue by their sign; half-widths are plain.
        numbers = [Text(cell, style=_colour(cell) if i % 2 == 0 else "") for i, cell in enumerate(row.cells)]
        table.add_row(Text(one_line(row.name)), *numbers, *([row.mark] if marked else []))
    console.print(Text(f"{one_line(name)}: {one_line(target)}", style="bold"), soft_wrap=True)
    console.print(Text(f"F(x) = {e.f_x:.6g}   F(x') = {e.f_baseline:.6g}   difference {e.delta:.6g}"), soft_wrap=True)
    console.print(table)
    notes = list(e.notes)
    with suppress(GralisError):  # some explanations have no certificate
        notes.append(str(e.certificate()))
    for note in notes:
        console.print(Text(note), soft_wrap=True)


def _colour(number: str) -> str:
    return "blue" if number.startswith("-") or float(number) == 0 else "red"


def to_json(value: Any) -> str:
    """One line of JSON. Numbers that JSON lacks (NaN, infinity) become null.

    >>> to_json({"phi": [1.0, float("nan")]})
    '{"phi": [1.0, null]}'
    """
    return json.dumps(strict(value), allow_nan=False)
