"""The columns of a table: their names, and how their entries become the numbers that trees compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, real_numbers, to_numpy
from gralis.errors import bad

__all__ = ["Columns"]


@dataclass(frozen=True, eq=False)
class Columns:
    """The names of the columns and the categories of those that have some.

    Attributes
    ----------
    names : tuple of str
        The names of the columns.
    named : bool
        Whether the model knows the names, so that a table must have them.
    categories : tuple
        For every column None, or its categories in the order of their codes 0, 1, ...; an empty tuple if a column
        holds codes already.
    absent : float, default=nan
        A number that stands for a missing value besides NaN.
    closed : bool, default=False
        Whether the library refuses a category that it has not seen in training. Otherwise it is a missing value.
    """

    names: tuple[str, ...]
    named: bool
    categories: tuple[tuple[Any, ...] | None, ...]
    absent: float = float("nan")
    closed: bool = False

    @staticmethod
    def plain(n_columns: int, names: Any = None, absent: float = float("nan")) -> Columns:
        """Columns of numbers, with the names that the estimator was trained with, if any."""
        known = names is not None and len(names) == n_columns
        shown = tuple(map(str, names)) if known else tuple(f"x{i}" for i in range(n_columns))
        return Columns(shown, known, (None,) * n_columns, absent)

    @property
    def n_columns(self) -> int:
        return len(self.names)

    @property
    def categorical(self) -> NDArray[np.bool_]:
        """Which columns hold categories, (n_columns,)."""
        return np.array([known is not None for known in self.categories], dtype=bool)

    def entries(self, X: Any) -> tuple[tuple[int, ...], list[Any]]:
        """The shape of a table and its columns, checked against the names."""
        if hasattr(X, "columns") and hasattr(X, "iloc"):
            names = [str(name) for name in X.columns]
            if self.named and _joined(names) != _joined(self.names):
                raise bad("X", "the trees", f"a table with the columns {_listed(self.names)}", f"{_listed(names)}")
            entries = [X.iloc[:, i] for i in range(X.shape[1])]
            shape = X.shape
        else:
            array = to_numpy(X)
            shape = array.shape
            entries = list(array.T) if array.ndim == 2 else []
        if len(shape) != 2 or shape[1] != self.n_columns:
            raise bad("X", "the trees", f"rows of {self.n_columns} columns", f"an array of shape {tuple(shape)}")
        return tuple(shape), entries

    def encode(self, X: Any) -> Array:
        """A table as numbers, (n_rows, n_columns): categories become their codes, unknown ones NaN or refused."""
        shape, entries = self.entries(X)
        numbers = np.empty(shape, dtype=np.float64)
        for i, (entry, known) in enumerate(zip(entries, self.categories, strict=True)):
            numbers[:, i] = self._numbers(entry, known, self.names[i])
        return np.where(numbers == self.absent, np.nan, numbers)

    def _numbers(self, entry: Any, categories: tuple[Any, ...] | None, name: str) -> Any:
        of_pandas = getattr(entry, "cat", None)
        if categories is None or (not categories and of_pandas is None):
            if of_pandas is not None or getattr(entry, "dtype", np.dtype(float)).kind not in "biuf":
                try:
                    return np.asarray(entry, dtype=np.float64)
                except (TypeError, ValueError):
                    raise bad("X", "the trees", f"numbers in column {name!r}", f"{to_numpy(entry)[0]!r}") from None
            return real_numbers(entry, "X", "the trees")
        texts = any(isinstance(category, str) for category in categories)
        if of_pandas is None and texts and getattr(entry, "dtype", np.dtype(object)).kind in "biuf":
            return real_numbers(entry, "X", "the trees")  # codes instead of texts
        if not categories:  # the codes of the table itself
            codes = np.asarray(entry.cat.codes, dtype=np.float64)
            return np.where(codes < 0, np.nan, codes)
        code = {category: float(number) for number, category in enumerate(categories)}
        values = [_plain(value) for value in entry]
        unknown = [value for value in values if value is not None and value not in code]
        if self.closed and unknown:
            raise bad(
                "X", "the trees", f"one of the categories {_listed(categories)} in column {name!r}", f"{unknown[0]!r}"
            )
        return [code.get(value, np.nan) for value in values]


def _plain(value: Any) -> Any:
    """A scalar of NumPy as one of Python; a missing value, which is no category, as None."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if type(value).__name__ in ("NAType", "NaTType") or value != value else value


def _joined(names: Sequence[str]) -> list[str]:
    """The names without spaces: LightGBM keeps "mean radius" as "mean_radius"."""
    return [name.replace(" ", "_") for name in names]


def _listed(names: Any) -> str:
    shown = ", ".join(map(repr, list(names)[:5]))
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
