"""Distributions of baselines: attributions are averaged over rows of a data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Shape, parts_of, real_numbers
from gralis.baselines.recipes import RECIPES
from gralis.checks import is_whole, whole
from gralis.errors import bad

__all__ = ["ALLOWED", "Sample", "as_numbers", "sample", "shape_of"]

ALLOWED = (
    "a number, an array like x (or a tuple or dict of them when x is one), a callable x -> baseline, "
    f"gralis.baselines.sample(X), or one of {', '.join(map(repr, RECIPES))}"
)


@dataclass(frozen=True, eq=False)
class Sample:
    """A distribution of baselines: rows of X with equal weights. `sample` makes it.

    Attributes
    ----------
    X : array, or a tuple or dict of arrays
        The data set; each array has n_rows rows.
    n_rows : int
        The number of rows of X.
    n : int or None
        The number of rows that are drawn; None uses all of them.
    seed : int
        The seed of the draw.
    """

    X: object
    n_rows: int
    n: int | None
    seed: int

    def rows(self) -> NDArray[np.int64]:
        """The numbers of the rows that are used, in increasing order."""
        if self.n is None:
            return np.arange(self.n_rows)
        return np.sort(np.random.default_rng(self.seed).choice(self.n_rows, self.n, replace=False))

    def __repr__(self) -> str:
        part = "all rows" if self.n is None else f"n={self.n}, seed={self.seed}"
        return f"sample({self.n_rows} rows, {part})"


def sample(X: object, n: int | None = None, seed: int = 0) -> Sample:
    """x' is distributed as the rows of X, with weight 1 / n each: attributions are averaged over them.

    Parameters
    ----------
    X : array of shape (N, *x.shape), or a tuple or dict of arrays
        The data set. For an x of several leaves it has one array with N rows per leaf; rows are drawn together.
    n : int, optional
        The number of rows that are drawn without replacement; by default all N rows are used.
    seed : int, default=0
        The seed of the draw.

    Returns
    -------
    Sample

    Examples
    --------
    >>> sample(np.zeros((200, 3)), n=50)
    sample(200 rows, n=50, seed=0)
    """
    shapes = [shape_of(part) for part in parts_of(X)]
    if not shapes or any(not shape or shape[0] != shapes[0][0] for shape in shapes) or not shapes[0][0]:
        raise bad("X", "sample", "an array (N, *x.shape) with N >= 1, or a tuple of them", f"shapes {shapes}")
    n_rows = shapes[0][0]
    if n is not None and not is_whole(n, 1, n_rows):
        raise bad("n", "sample", f"None (all rows) or a whole number from 1 to the {n_rows} rows of X", repr(n))
    return Sample(X, n_rows, n, whole(seed, "seed", 0, "sample"))


def as_numbers(value: object) -> NDArray[Any]:
    """The value as an array of real numbers, or the error that lists all forms of a baseline."""
    return real_numbers(value, "baseline", "explain", ALLOWED)


def shape_of(value: object) -> Shape:
    """The shape of an array or a tensor, or of the array that the value becomes."""
    shape = getattr(value, "shape", None)
    return tuple(as_numbers(value).shape if shape is None else shape)
