"""The table of an explanation as cells, which the printed text, the notebook and the command line lay out."""

from __future__ import annotations

from dataclasses import dataclass

from gralis.results.both_answers import BothAnswers
from gralis.results.tables import error_text, largest_first

__all__ = ["OPPOSITE", "FeatureRow", "FeatureTable", "feature_table"]

OPPOSITE = "opposite signs"


@dataclass(frozen=True)
class FeatureRow:
    """One feature, or all features that are not shown.

    Attributes
    ----------
    name : str
        The name of the feature.
    cells : tuple of str
        One cell for each heading.
    mark : str
        A remark on the feature, or an empty text.
    feature : int or None
        The index of the feature; None for the row of all others.
    """

    name: str
    cells: tuple[str, ...]
    mark: str = ""
    feature: int | None = None


@dataclass(frozen=True)
class FeatureTable:
    """The headings of the columns, and the rows: the largest |phi| first.

    Attributes
    ----------
    headings : tuple of str
        The headings, without that of the names.
    rows : tuple of FeatureRow
        The features that are shown, then one row for all others if there are any.
    """

    headings: tuple[str, ...]
    rows: tuple[FeatureRow, ...]


def feature_table(e: BothAnswers) -> FeatureTable:
    """phi with its half-width, and the Shapley value with its own where the ledger gives it cheaply.

    Parameters
    ----------
    e : BothAnswers
        The explanation.

    Returns
    -------
    FeatureTable
    """
    own = "phi" if e.design.estimator.has_kernel else "Shapley"
    columns = [(own, e.values, e.printed_half_widths)]
    if e.shapley_beside is not None and e.shapley_half_widths is not None:
        columns.append(("Shapley", e.shapley_beside.values, e.shapley_half_widths))
    order, labels = largest_first(e.values), e.labels
    marked = {conflict.feature for conflict in e.sign_conflicts}
    rows = [
        FeatureRow(
            labels[int(i)],
            tuple(cell for _, value, half in columns for cell in (f"{value[i]:.5g}", error_text(half[i]))),
            OPPOSITE if int(i) in marked else "",
            int(i),
        )
        for i in order
    ]
    if e.n_features > len(order):
        rest = (f"{value.sum() - value[order].sum():.5g}" for _, value, _ in columns)
        rows.append(
            FeatureRow(f"({e.n_features - len(order)} more)", tuple(cell for sum_ in rest for cell in (sum_, "")))
        )
    return FeatureTable(tuple(cell for title, _, _ in columns for cell in (title, "+-")), tuple(rows))
