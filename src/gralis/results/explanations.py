"""Several explanations from the same rays: of several targets, or of several inputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.evaluation.cost import Cost
from gralis.results.difference import difference
from gralis.results.explanation import Explanation

_MOST_COLUMNS = 6


@dataclass(frozen=True, eq=False)
class Explanations:
    """A sequence of explanations, and the stacked view: values[question, feature]."""

    each: tuple[Explanation, ...]
    labels: tuple[str, ...]  # what each one is about

    def __getitem__(self, place: int | str) -> Explanation:
        """One of them, by place or by label."""
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
        return self._stacked("values")

    @property
    def stderr(self) -> Array:
        """Sampling errors, (n_questions, n_features)."""
        return self._stacked("stderr")

    @property
    def f_x(self) -> Array:
        return np.array([one.f_x for one in self.each])

    @property
    def delta(self) -> Array:
        """F(x) - F(x') of every question."""
        return np.array([one.delta for one in self.each])

    @property
    def cost(self) -> Cost:
        """What all of them took together."""
        costs = [one.cost for one in self.each]
        shared = [one.endpoints for one in self.each]
        own = [cost for cost, ends in zip(costs, shared, strict=True) if ends is not shared[0]] + costs[:1]
        return replace(
            costs[0],
            n_gradients=sum(cost.n_gradients for cost in costs),
            n_forwards=sum(cost.n_forwards for cost in own),  # targets share the forwards of their input
            n_rays=sum(cost.n_rays for cost in own),
            seconds=sum(cost.seconds for cost in costs),
        )

    def contrast(self, a: int | str, b: int | str) -> Explanation:
        """phi(F_a - F_b): why a rather than b, from the same rays, so that what they share cancels."""
        first, second = self[a], self[b]
        if first.endpoints is not second.endpoints:
            raise GralisError(
                "A contrast compares two targets of one input; these are explanations of different inputs."
            )
        return difference(second, first)

    def _stacked(self, name: str) -> Array:
        counts = {one.n_features for one in self.each}
        if len(counts) > 1:
            raise GralisError(
                f"These inputs have {sorted(counts)} features, so there is no common table; take one by one."
            )
        return np.stack([getattr(one, name) for one in self.each])

    def __repr__(self) -> str:
        counts = sorted({one.n_features for one in self.each})
        head = (
            f"{len(self)} explanations on the same rays; {self.cost.n_gradients} gradients, {self.cost.seconds:.2g} s"
        )
        lines = [head, "F(x) - F(x'): " + ", ".join(f"{d:.4g}" for d in self.delta[:_MOST_COLUMNS])]
        if len(counts) == 1:
            shown = self.labels[:_MOST_COLUMNS]
            order = np.argsort(-np.abs(self.values).max(0), kind="stable")[:15]
            names = self.each[0].names
            width = max([7, *(len(names[int(i)]) for i in order)])
            columns = [max(20, len(label)) for label in shown]
            lines.append(
                f"{'feature':<{width}}  " + "  ".join(f"{t:>{w}}" for t, w in zip(shown, columns, strict=True))
            )
            for i in order:
                cells = [
                    f"{f'{one.values[i]:.4g} +- {one.stderr[i]:.1g}':>{w}}"
                    for one, w in zip(self.each, columns, strict=False)
                ]
                lines.append(f"{names[int(i)]:<{width}}  " + "  ".join(cells))
        if len(self) > _MOST_COLUMNS:
            lines.append(f"({len(self) - _MOST_COLUMNS} more)")
        return "\n".join(lines)
