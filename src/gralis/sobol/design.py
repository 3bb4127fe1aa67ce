"""One replicate of the pick-freeze design: two tables A and B, and the mixtures of them that are evaluated.

Each row contributes these points: A, B, A with column i from B, B with column i from A, and, for five or more inputs, a
walk from A to B that changes the columns in a random order, after 2 .. n - 2 steps. Every set of columns in `exchanged`
adds A with these columns from B, and B with these columns from A.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.sobol.input_sets import InputSet
from gralis.sobol.inputs import Inputs, Tables


def cost_of_a_row(n: int, n_exchanged: int = 0) -> int:
    """The number of model evaluations per row of A and B."""
    return _n_standard(n) + 2 * n_exchanged


def _n_standard(n: int) -> int:
    """The number of points of a row without those of `exchanged`."""
    return 2 * n + 2 + (n - 3 if n > 4 else 0)


@dataclass(frozen=True, eq=False)
class PickFreezeDesign:
    """The points are numbered variant by variant: point k is row k % n_rows of variant k // n_rows."""

    tables: Tables
    place: NDArray[np.int64]  # the step at which the walk of a row changes a column, (n_rows, n)
    exchanged: tuple[InputSet, ...] = ()

    @classmethod
    def draw(
        cls, inputs: Inputs, seed: np.random.SeedSequence, n_rows: int, exchanged: tuple[InputSet, ...] = ()
    ) -> PickFreezeDesign:
        """Draw the rows and the orders of the walks from two children of the seed."""
        rows, orders = seed.spawn(2)
        tables = inputs.tables(rows, n_rows, 2)
        return cls(tables, _orders(np.random.default_rng(orders), n_rows, inputs.n_inputs), exchanged)

    @property
    def n_points(self) -> int:
        """The number of points in the design."""
        n_rows, n = self.place.shape
        return int(n_rows * cost_of_a_row(n, len(self.exchanged)))

    def points(self, part: slice) -> Array:
        """The inputs of the points in a slice."""
        return self._mixed(self.tables.points, part)

    def levels(self, part: slice) -> Array:
        """The quantile levels of the points in a slice."""
        assert self.tables.levels is not None
        return self._mixed(self.tables.levels, part)

    def _mixed(self, tables: Array, part: slice) -> Array:
        n_rows, n = self.place.shape
        variant, row = np.divmod(np.arange(part.start, part.stop), n_rows)
        column = np.arange(n)
        from_b = np.zeros((len(row), n), dtype=bool)
        from_b[variant == 1] = True
        single, but_one, walk = (variant > 1) & (variant < n + 2), (variant > n + 1), variant > 2 * n + 1
        extra = variant >= _n_standard(n)
        from_b[single] = column == variant[single, None] - 2
        from_b[but_one] = column != variant[but_one, None] - n - 2
        from_b[walk] = self.place[row[walk]] < variant[walk, None] - 2 * n  # 2, 3, ... columns moved
        if extra.any():
            members = np.array([[j in t for j in range(n)] for t in self.exchanged])
            number, of_b = np.divmod(variant[extra] - _n_standard(n), 2)
            from_b[extra] = members[number] ^ (of_b == 1)[:, None]
        return np.asarray(np.where(from_b, tables[1][row], tables[0][row]))


def _orders(rng: np.random.Generator, n_rows: int, n: int) -> NDArray[np.int64]:
    """Random orders, (n_rows, n), balanced so that in n rows each column takes each place once."""
    base = np.stack([rng.permutation(n) for _ in range(-(-n_rows // n))])
    shifted = (base[:, None, :] + np.arange(n)[:, None]) % n  # (turns, n, n)
    return np.asarray(rng.permutation(shifted.reshape(-1, n))[:n_rows])
