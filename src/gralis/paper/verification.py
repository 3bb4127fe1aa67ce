"""What `verify` returns: every row, section by section, and the printed table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from gralis.paper.claim_row import ClaimRow, shown
from gralis.paper.not_checked import NOT_CHECKED

__all__ = ["Section", "Verification"]

_WIDTHS = (50, 28, 30)


@dataclass(frozen=True)
class Section:
    """The rows of one section.

    Attributes
    ----------
    name : str
        The name by which `verify` selects the section.
    title : str
        The heading of the section.
    rows : tuple of ClaimRow
        The claims in order.
    """

    name: str
    title: str
    rows: tuple[ClaimRow, ...]


@dataclass(frozen=True, repr=False)
class Verification:
    """The claims of the paper, checked by machine; printing it shows the table.

    Attributes
    ----------
    sections : tuple of Section
        The sections in the order in which they were computed.
    seconds : float
        How long the computation took.

    Examples
    --------
    >>> from gralis.paper.claim_row import equal
    >>> Verification((Section("sums", "Sums", (equal("one and one", 2, 1 + 1),)),), 0.0).holds
    True
    """

    sections: tuple[Section, ...]
    seconds: float

    @property
    def rows(self) -> tuple[ClaimRow, ...]:
        """The rows of all sections."""
        return tuple(row for section in self.sections for row in section.rows)

    @property
    def holds(self) -> bool:
        """Whether every row holds."""
        return all(row.holds for row in self.rows)

    @property
    def failed(self) -> tuple[ClaimRow, ...]:
        """The rows that do not hold."""
        return tuple(row for row in self.rows if not row.holds)

    @property
    def arithmetic(self) -> tuple[ClaimRow, ...]:
        """The rows that do not call the library: they check statements of the paper."""
        return tuple(row for row in self.rows if not row.library)

    def to_dict(self) -> dict[str, Any]:
        """The whole table as plain values, ready for JSON."""
        sections = [
            {
                "name": section.name,
                "title": section.title,
                "rows": [
                    {
                        "claim": row.claim,
                        "source": row.source,
                        "predicted": shown(row.predicted),
                        "computed": shown(row.computed),
                        "holds": row.holds,
                        "library": row.library,
                    }
                    for row in section.rows
                ],
            }
            for section in self.sections
        ]
        return {
            "holds": self.holds,
            "n_rows": len(self.rows),
            "n_arithmetic": len(self.arithmetic),
            "seconds": self.seconds,
            "sections": sections,
            "not_checked": dict(NOT_CHECKED),
        }

    def __repr__(self) -> str:
        lines: list[str] = []
        for section in self.sections:
            lines += [section.title, "=" * len(section.title)]
            lines += _line(("claim", "predicted", "computed"), "")
            for row in section.rows:
                claim = f"{row.claim} [{row.source}]" if row.source else row.claim
                cells = (claim, shown(row.predicted), shown(row.computed))
                lines += _line(cells, "holds" if row.holds else "FAILS")
            lines.append("")
        count = f"{len(self.rows)} rows, {len(self.failed)} of them fail" if self.failed else f"{len(self.rows)} rows"
        lines.append(f"{count}{'' if self.failed else ', all hold'} ({self.seconds:.1f} s)")
        n_arithmetic = len(self.arithmetic)
        lines.append(f"{len(self.rows) - n_arithmetic} rows compare the library with what is computed without it;")
        lines.append(f"{n_arithmetic} rows check statements of the paper by arithmetic alone.")
        lines += [f"FAILS: {row.claim}" for row in self.failed]
        lines += ["", "No row checks:"]
        for what, where in NOT_CHECKED.items():
            lines += wrap(f"{what}: {where}", sum(_WIDTHS), initial_indent="  ", subsequent_indent="    ")
        return "\n".join(lines)


def _line(cells: tuple[str, str, str], verdict: str) -> Iterator[str]:
    """The cells side by side, each wrapped to the width of its column, with the verdict on the first line."""
    columns = [wrap(cell, width) or [""] for cell, width in zip(cells, _WIDTHS, strict=True)]
    for number in range(max(map(len, columns))):
        parts = [column[number] if number < len(column) else "" for column in columns]
        text = "  ".join(f"{part:<{width}}" for part, width in zip(parts, _WIDTHS, strict=True))
        yield f"{text}  {verdict if number == 0 else ''}".rstrip()
