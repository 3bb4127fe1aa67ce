"""What a sample cannot have seen: products of two differences that are both large only if two rare events coincide.

For a bump that fills a share p of the inputs, D_i and E_i are large in a share p of the rows each, but their product,
on which Var f_i rests, only if both are. With N rows, of which K carry the squares of D_i, about K^2 / N rows show a
large product. If that number is small, the replicates agree on a value that lacks the event, so their spread says
nothing about it. If no event was seen in N rows, its probability is below log(1 / (1 - level)) / N at that level, and
the size of the product is about sum D_i^4 / sum D_i^2. This is the margin that is added to the half-width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from gralis.arrays import Array
from gralis.estimators.estimate import Estimate
from gralis.sobol.design import PickFreezeDesign
from gralis.sobol.input_sets import InputSet
from gralis.sobol.moments import VarianceMoments, row_differences

_PLENTY = 3.0  # the margin falls as exp(-coincidences / _PLENTY)
_FEW_CARRIERS = 10.0
_LARGE = 0.05  # a margin that is worth a sentence, as a share of the variance


@dataclass(eq=False)
class Coincidences:
    """The size and the rarity of the differences in all rows so far, by the fields of `Differences`."""

    n_rows: int = 0
    second: dict[str, Array] = field(default_factory=dict)
    fourth: dict[str, Array] = field(default_factory=dict)

    def include(self, values: Array, design: PickFreezeDesign, sets: tuple[InputSet, ...], rows: slice) -> None:
        """Include the rows of a slice."""
        self.n_rows += rows.stop - rows.start
        for name, sides in vars(row_differences(values, design, sets, rows)).items():
            squares = np.concatenate(sides) ** 2
            self.second[name] = self.second.get(name, 0.0) + squares.sum(0) / 2
            self.fourth[name] = self.fourth.get(name, 0.0) + (squares**2).sum(0) / 2

    def margins(self, level: float, sets: tuple[InputSet, ...]) -> VarianceMoments:
        """What may be missing in every moment, with a leading axis of length one."""
        single = self._margin("single", level, len(self.second["single"]))
        n = len(single)
        count, size = self._carriers("single"), np.sqrt(self._size("single"))
        log = np.log(max(n * (n - 1) / 2, 1) / (1 - level))
        rare = np.exp(-2 * np.outer(count, count) / self.n_rows / _PLENTY)
        pair = log * rare * np.outer(size, size) / (2 * self.n_rows) * ~np.eye(n, dtype=bool)
        sizes = np.array([len(t) for t in sets])
        n_sets = max(len(sets), 1)
        fields = (
            np.zeros(()),
            np.zeros(()),
            single / 2,
            np.zeros(n),
            pair,
            np.zeros((n, n)),
            single / 2,
            self._margin("exchanged", level, n_sets) / 2,
            self._margin("mixed", level, n_sets) * 0.5**sizes,
        )
        return VarianceMoments(*(part[None] for part in fields))

    def _carriers(self, name: str) -> Array:
        """The number of rows that carry the squares."""
        fourth = self.fourth[name]
        return np.divide(self.second[name] ** 2, fourth, out=np.zeros_like(fourth), where=fourth > 0)

    def _size(self, name: str) -> Array:
        """The mean square of the differences in the rows that carry the squares."""
        second = self.second[name]
        return np.divide(self.fourth[name], second, out=np.zeros_like(second), where=second > 0)

    def _margin(self, name: str, level: float, n_family: int) -> Array:
        """The margin of the mean of D E, for the differences D and E of one kind."""
        rare = np.exp(-(self._carriers(name) ** 2) / self.n_rows / _PLENTY)
        return np.asarray(np.log(n_family / (1 - level)) * rare * self._size(name) / self.n_rows)


def rare_event_doubts(estimates: Mapping[str, Estimate], margins: Mapping[str, Array], n_rows: int) -> tuple[str, ...]:
    """Sentences if few rows carry the variance, or if coincidences of rare events may be missing in the indices."""
    doubts = []
    carriers = estimates["variance"].carriers
    assert carriers is not None
    if carriers[0] < _FEW_CARRIERS:
        doubts.append(
            f"About {carriers[0]:.0f} of {n_rows} sampled rows carry the variance of F, so another sample may find "
            "other indices; raise the budget, or sample more densely where F varies."
        )
    wide = [
        name
        for name in ("first", "pairs", "interactions", "closed", "shapley")
        if margins[name].max(initial=0) > _LARGE
    ]
    if wide:
        most = max(float(margins[name].max()) for name in wide)
        doubts.append(
            f"The variance of F comes from rare events, and {n_rows} rows are too few to see how the inputs share it: "
            f"the intervals of {', '.join(wide)} are wider by up to {most:.2g} for what was not seen; raise the budget."
        )
    return tuple(doubts)
