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
from gralis.results.tables import error_text, largest_first
from gralis.storage.json_values import strict

__all__ = ["print_explanation", "to_json"]


class _Console(Console):  # type: ignore[misc]
    def on_broken_pipe(self) -> None:
        """Raise the error, which rich would hide: the command then says that standard output was closed."""
        raise


def print_explanation(e: Explanation, name: str, target: str) -> None:
    """Print the table of one explanation to standard output."""
    console = _Console(highlight=False)
    half, order = e.printed_half_widths, largest_first(e.values)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("feature", overflow="fold")
    for heading in ("phi", "+- (95%)", "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    for i in order:
        share = f"{e.values[i] / e.delta:.1%}" if e.delta else "-"
        phi = Text(f"{e.values[i]:.5g}", style="red" if e.values[i] > 0 else "blue")
        table.add_row(Text(one_line(e.names[int(i)])), phi, error_text(half[i]), share)
    if e.n_features > len(order):
        rest = e.values.sum() - e.values[order].sum()
        table.add_row(f"({e.n_features - len(order)} more)", f"{rest:.5g}")
    console.print(Text(f"{one_line(name)}: {one_line(target)}", style="bold"), soft_wrap=True)
    console.print(Text(f"F(x) = {e.f_x:.6g}   F(x') = {e.f_baseline:.6g}   difference {e.delta:.6g}"), soft_wrap=True)
    console.print(table)
    notes = list(e.notes)
    with suppress(GralisError):  # some explanations have no certificate
        notes.append(str(e.certificate()))
    for note in notes:
        console.print(Text(note), soft_wrap=True)


def to_json(value: Any) -> str:
    """One line of JSON. Numbers that JSON lacks (NaN, infinity) become null.

    >>> to_json({"phi": [1.0, float("nan")]})
    '{"phi": [1.0, null]}'
    """
    return json.dumps(strict(value), allow_nan=False)
