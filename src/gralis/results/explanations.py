"""Several explanations from the same rays, for several targets or for several inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from gralis.checks import is_whole
from gralis.errors import GralisError, bad
from gralis.evaluation.cost import Cost
from gralis.notebook import n_shown
from gralis.results.attribution import Attribution
from gralis.results.difference import difference
from gralis.results.explanation import Explanation
from gralis.results.stacked import Stacked
from gralis.results.tables import doubt_lines, largest_first, name_width, united, value_text

__all__ = ["Attributions", "Explanations"]

_MOST_COLUMNS = 6


@dataclass(frozen=True, eq=False, repr=False)
class Explanations(Stacked):
    """A sequence of explanations, and the stacked view: values[question, feature].

    Attributes
    ----------
    each : tuple of Explanation
        The explanations.
    labels : tuple of str
        What each of them is about.
    """

    each: tuple[Explanation, ...]
    labels: tuple[str, ...]

    @overload
    def __getitem__(self, place: int | str) -> Explanation: ...
    @overload
    def __getitem__(self, place: slice | list[int] | NDArray[Any]) -> Explanations: ...
    def __getitem__(self, place: int | str | slice | list[int] | NDArray[Any]) -> Explanation | Explanations:
        """One explanation, by its place or by its label; or several, by a slice, a list of places or a mask."""
        if isinstance(place, str):
            if place not in self.labels:
                raise GralisError(f"There is no explanation of {place!r} here; there are {', '.join(self.labels)}.")
            place = self.labels.index(place)
        if isinstance(place, int | np.integer):
            return self.each[place]
        chosen = self._places(place)
        return Explanations(tuple(self.each[k] for k in chosen), tuple(self.labels[k] for k in chosen))

    def __iter__(self) -> Iterator[Explanation]:
        return iter(self.each)

    @property
    def _explained(self) -> tuple[Explanation, ...]:
        return self.each

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why the intervals may not hold, in sentences: those of all explanations."""
        return united(e.doubts for e in self.each)

    def shapley(self) -> Attributions:
        """The Shapley values of every row, from the same ledgers. They sum to F(x) - F(x')."""
        return Attributions(tuple(one.shapley() for one in self.each), self.labels, self)

    def save(self, path: str | Path) -> Path:
        """Write all explanations to one file; `gralis.load` reads them back bit for bit.

        Parameters
        ----------
        path : str or Path
            The file to write.

        Returns
        -------
        Path
            The path that was written.
        """
        from gralis.files.row_archive import save_rows

        return save_rows(self, path)

    @property
    def cost(self) -> Cost:
        """What all explanations cost together. Several targets of one input share its forwards and its rays."""
        costs = [one.cost for one in self.each]
        inputs: dict[object, Cost] = {}
        for place, one in enumerate(self.each):
            together = int(one.provenance["asked_together"]["targets"]) > 1
            inputs.setdefault(one.endpoints.digest if together else place, one.cost)
        return replace(
            costs[0],
            n_gradients=sum(cost.n_gradients for cost in costs),
            n_forwards=sum(cost.n_forwards for cost in inputs.values()),
            n_rays=sum(cost.n_rays for cost in inputs.values()),
            seconds=sum(cost.seconds for cost in costs),
        )

    def contrast(self, a: int | str, b: int | str) -> Explanation:
        """phi(F_a - F_b): why a rather than b. Both are read from the same rays, so their common error cancels.

        Parameters
        ----------
        a, b : int or str
            The places or the labels of two targets of one input.

        Returns
        -------
        Explanation
            The explanation of the difference, with paired errors.
        """
        for name, place in (("a", a), ("b", b)):
            if not isinstance(place, str) and not is_whole(place, -len(self), len(self) - 1):
                allowed = f"a label, or a place from 0 to {len(self) - 1}"
                raise bad(name, "contrast", allowed, repr(place)[:200])
        first, second = self[a], self[b]
        if first.endpoints.digest != second.endpoints.digest:
            raise GralisError(
                "A contrast compares two targets of one input; these are explanations of different inputs."
            )
        return difference(second, first)

    def __repr__(self) -> str:
        cost = self.cost
        closed = all(one.plan["name"] == "trees" for one in self.each)
        how = "by sums over trees;" if closed else f"on the same rays; {cost.n_gradients} gradients,"
        head = f"{len(self)} explanations {how} {cost.seconds:.2g} s"
        shown = n_shown(len(self), _MOST_COLUMNS)
        lines = [head, "F(x) - F(x'): " + ", ".join(f"{d:.4g}" for d in self.delta[:shown])]
        if len({one.n_features for one in self.each}) == 1:
            lines += self._table(self.each[:shown], self.labels[:shown])
        if len(self) > shown:
            lines.append(f"({len(self) - shown} more)")
        return "\n".join([*lines, *doubt_lines(self.doubts, _MOST_COLUMNS)])

    def _repr_html_(self) -> str:
        from gralis.views.html import explanations_html

        return explanations_html(self.each, self.labels, repr(self))

    def _table(self, shown: tuple[Explanation, ...], labels: tuple[str, ...]) -> list[str]:
        """One row per feature, one column per explanation."""
        names, order = self.each[0].names, largest_first(self.values)
        width, columns = name_width(names, order), [max(20, len(label)) for label in labels]
        halves = [one.printed_half_widths for one in shown]
        head = "  ".join(f"{label:>{w}}" for label, w in zip(labels, columns, strict=True))
        lines = [f"{'feature':<{width}}  {head}"]
        for i in order:
            cells = [
                f"{value_text(one.values[i], half[i], 4):>{w}}"
                for one, half, w in zip(shown, halves, columns, strict=True)
            ]
            lines.append(f"{names[int(i)]:<{width}}  " + "  ".join(cells))
        if len(names) > len(order):
            lines.append(f"({len(names) - len(order)} more features)")
        return lines


@dataclass(frozen=True, eq=False, repr=False)
class Attributions(Stacked):
    """The answers of another explainer for several explanations: values[row, feature].

    Attributes
    ----------
    each : tuple of Attribution
        The attributions.
    labels : tuple of str
        What each of them is about.
    explanations : Explanations
        The explanations that they come from.
    """

    each: tuple[Attribution, ...]
    labels: tuple[str, ...]
    explanations: Explanations

    def __getitem__(self, place: int) -> Attribution:
        """One attribution, by its place."""
        return self.each[place]

    def __iter__(self) -> Iterator[Attribution]:
        return iter(self.each)

    @property
    def _explained(self) -> tuple[Explanation, ...]:
        return self.explanations.each

    def __repr__(self) -> str:
        mean = np.abs(self.values).mean(0)
        order = largest_first(mean)
        width = name_width(self.names, order)
        lines = [f"{self.each[0].method} of {len(self)} rows ({'exact' if self.exact else 'estimated'})"]
        lines += [f"{'feature':<{width}}  {'mean |value|':>12}"]
        return "\n".join([*lines, *(f"{self.names[int(i)]:<{width}}  {mean[i]:>12.5g}" for i in order)])
