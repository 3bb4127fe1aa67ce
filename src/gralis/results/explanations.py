"""Several explanations from the same rays, for several targets or for several inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.evaluation.cost import Cost
from gralis.results.difference import difference
from gralis.results.explanation import Explanation
from gralis.results.result import Result
from gralis.results.tables import doubt_lines, error_text, largest_first, n_shown, name_width, united

__all__ = ["Explanations"]

_MOST_COLUMNS = 6


@dataclass(frozen=True, eq=False, repr=False)
class Explanations(Result):
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

    def __getitem__(self, place: int | str) -> Explanation:
        """One explanation, by its place or by its label."""
        if isinstance(place, str):
            if place not in self.labels:
                raise GralisError(f"There is no explanation of {place!r} here; there are {', '.join(self.labels)}.")
            place = self.labels.index(place)
        return self.each[place]

    def __len__(self) -> int:
        return len(self.each)

    def __iter__(self) -> Iterator[Explanation]:
        return iter(self.each)

    @property
    def values(self) -> Array:
        """phi, (n_questions, n_features)."""
        return self._stacked([one.values for one in self.each])

    @property
    def _numbers(self) -> Array:
        return self.values

    @property
    def stderr(self) -> Array:
        """Standard errors, (n_questions, n_features)."""
        return self._stacked([one.stderr for one in self.each])

    @property
    def exact(self) -> bool:
        return all(one.exact for one in self.each)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why the intervals may not hold, in sentences: those of all explanations."""
        return united(e.doubts for e in self.each)

    def _half_widths(self, level: float) -> Array:
        """Half-widths that hold together within each explanation, (n_questions, n_features)."""
        return self._stacked([one.half_widths(level) for one in self.each])

    @property
    def f_x(self) -> Array:
        """F(x) of every question."""
        return np.array([one.f_x for one in self.each])

    @property
    def delta(self) -> Array:
        """F(x) - F(x') of every question."""
        return np.array([one.delta for one in self.each])

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
        first, second = self[a], self[b]
        if first.endpoints.digest != second.endpoints.digest:
            raise GralisError(
                "A contrast compares two targets of one input; these are explanations of different inputs."
            )
        return difference(second, first)

    def _stacked(self, rows: list[Array]) -> Array:
        counts = {len(row) for row in rows}
        if len(counts) > 1:
            raise GralisError(
                f"These inputs have {sorted(counts)} features, so there is no common table; take one by one."
            )
        return np.stack(rows)

    def __repr__(self) -> str:
        cost = self.cost
        head = f"{len(self)} explanations on the same rays; {cost.n_gradients} gradients, {cost.seconds:.2g} s"
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
                f"{f'{one.values[i]:.4g} +- {error_text(half[i])}':>{w}}"
                for one, half, w in zip(shown, halves, columns, strict=True)
            ]
            lines.append(f"{names[int(i)]:<{width}}  " + "  ".join(cells))
        if len(names) > len(order):
            lines.append(f"({len(names) - len(order)} more features)")
        return lines
