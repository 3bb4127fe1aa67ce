"""Several results on the same features as one value: rows of a data set, stacked, as a table and as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.checks import one_of
from gralis.errors import GralisError
from gralis.notebook import pandas
from gralis.results.result import FeatureResult, Result

if TYPE_CHECKING:
    from gralis.results.explanation import Explanation

__all__ = ["Stacked"]


class Stacked(Result):
    """Results with one number per feature, one below the other: values[row, feature].

    A subclass is a frozen dataclass with the fields `each` and `labels`, and says which explanations it comes from.
    """

    each: Sequence[FeatureResult]
    labels: tuple[str, ...]

    @property
    def _explained(self) -> Sequence[Explanation]:
        """The explanations that the rows come from."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.each)

    @property
    def values(self) -> Array:
        """The numbers, (n_rows, n_features)."""
        return self._stacked([one.values for one in self.each])

    @property
    def _numbers(self) -> Array:
        return self.values

    @property
    def stderr(self) -> Array:
        """Standard errors, (n_rows, n_features)."""
        return self._stacked([one.stderr for one in self.each])

    @property
    def exact(self) -> bool:
        return all(one.exact for one in self.each)

    @property
    def _exact_numbers(self) -> NDArray[np.bool_]:
        return np.stack([one._exact_numbers for one in self.each])

    def _half_widths(self, level: float) -> Array:
        """Half-widths that hold together within each row, (n_rows, n_features)."""
        return self._stacked([one.half_widths(level) for one in self.each])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features, which all rows have in common."""
        names = tuple(self.each[0].names)
        if any(tuple(one.names) != names for one in self.each[1:]):
            raise GralisError("These results have different features, so they have no common names; take one by one.")
        return names

    @property
    def data(self) -> NDArray[Any]:
        """The value of every feature in every row, (n_rows, n_features): numbers, or the entries of a table."""
        rows = [e.data for e in self._explained]
        if all(row.dtype != object for row in rows):
            return self._stacked(rows)
        table = np.empty((len(rows), len(rows[0])), dtype=object)
        table[:] = [list(row) for row in rows]
        return table

    @property
    def f_x(self) -> Array:
        """F(x) of every row."""
        return np.array([e.f_x for e in self._explained])

    @property
    def f_baseline(self) -> Array:
        """F(x') of every row, averaged over its baselines."""
        return np.array([e.f_baseline for e in self._explained])

    @property
    def delta(self) -> Array:
        """F(x) - F(x') of every row."""
        return np.array([e.delta for e in self._explained])

    def to_frame(self, layout: Literal["wide", "long"] = "wide") -> Any:
        """The numbers as a pandas data frame. This needs the extra `tables`.

        Parameters
        ----------
        layout : {"wide", "long"}, default="wide"
            "wide" has one line for each row of the data set, and its values in one column for each feature. "long" has
            one line for each row and feature, with the columns row, feature, data, value, stderr, low and high.

        Returns
        -------
        pandas.DataFrame
        """
        one_of(layout, ("wide", "long"), "layout", "to_frame")
        values, names = self.values, list(self.names)
        if layout == "wide":
            return pandas().DataFrame(values, columns=names, index=list(self.labels))
        low, high = np.moveaxis(self.interval(), -1, 0)
        return pandas().DataFrame(
            {
                "row": np.repeat(self.labels, len(names)),
                "feature": names * len(self),
                "data": list(self.data.ravel()),
                "value": values.ravel(),
                "stderr": self.stderr.ravel(),
                "low": low.ravel(),
                "high": high.ravel(),
            }
        )

    def plot(self, kind: str = "beeswarm", **options: Any) -> Any:
        """Draw all rows together as a matplotlib figure. This needs the extra `plot`.

        Parameters
        ----------
        kind : {"beeswarm", "bar", "scatter", "heatmap", "decision", "force"}, default="beeswarm"
            What to draw; see `gralis.views.plot_rows`.
        **options
            The options of this kind of plot, such as `top`, `feature`, `partner` or `ax`.

        Returns
        -------
        matplotlib.figure.Figure
            The figure, which a notebook shows.
        """
        from gralis.views.row_plots import plot_rows

        return plot_rows(self, kind, **options)

    def _places(self, chosen: slice | Sequence[int] | NDArray[Any]) -> list[int]:
        """The places of a slice, of a list of places, or of a mask; at least one."""
        array = np.arange(len(self))[chosen] if isinstance(chosen, slice) else np.asarray(chosen)
        if array.dtype == bool and array.shape == (len(self),):
            array = np.flatnonzero(array)
        if array.size == 0:
            raise GralisError(f"No row is chosen, and there is nothing to show of none; there are {len(self)} rows.")
        if array.ndim != 1 or array.dtype.kind not in "iu" or (np.abs(array + 0.5) > len(self)).any():
            raise GralisError(
                f"Choose rows by a number, a slice, a list of numbers or a mask; there are {len(self)} rows."
            )
        return [int(place) % len(self) for place in array]

    def _stacked(self, rows: Sequence[NDArray[Any]]) -> NDArray[Any]:
        counts = {len(row) for row in rows}
        if len(counts) > 1:
            raise GralisError(
                f"These inputs have {sorted(counts)} features, so there is no common table; take one by one."
            )
        return np.stack(rows)
