"""What every result has: values with errors, intervals that hold together, and the way back to the input's shape."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.certificates.simultaneous import half_widths
from gralis.checks import probability, whole
from gralis.errors import GralisError
from gralis.estimators import Estimate
from gralis.features import Features
from gralis.notebook import InNotebooks
from gralis.results.tables import SMALLEST

__all__ = ["FeatureResult", "InputForm", "Result"]

_SEEN = 0.01  # a rounding error that is a larger part of the largest number is shown


@dataclass(frozen=True)
class InputForm:
    """How the user packs the arrays of an input: one array, a tuple of arrays, or a dict with these keys.

    Attributes
    ----------
    keys : tuple of str or None, default=None
        The keys of the dict; None if the input is not a dict.
    several : bool, default=False
        Whether the input is a tuple of arrays.

    Examples
    --------
    >>> InputForm(keys=("age", "dose")).pack([1, 2])
    {'age': 1, 'dose': 2}
    """

    keys: tuple[str, ...] | None = None
    several: bool = False

    def pack(self, leaves: Sequence[Any]) -> Any:
        """The arrays in the form in which the user gave x."""
        if self.keys is not None:
            return dict(zip(self.keys, leaves, strict=True))
        return tuple(leaves) if self.several else leaves[0]


class Result(InNotebooks, ABC):
    """Numbers together with their errors."""

    @property
    @abstractmethod
    def _numbers(self) -> Array:
        """The numbers; most results show them as `values`."""

    @property
    @abstractmethod
    def stderr(self) -> Array:
        """The standard error of every number: 0 if there is no error above rounding, NaN if it is unknown."""

    @property
    @abstractmethod
    def exact(self) -> bool:
        """Whether no number has an error above rounding."""

    @abstractmethod
    def _half_widths(self, level: float) -> Array:
        """Half-widths that hold for all numbers together; the level is already checked."""

    def half_widths(self, level: float = 0.95) -> Array:
        """Half-widths of intervals that cover all values together.

        Parameters
        ----------
        level : float, default=0.95
            The probability with which all intervals cover the true values together. If a result holds several
            explanations, this is so within each of them.

        Returns
        -------
        array
            Shaped like `values`: NaN where the error is unknown, and the size of rounding where a value is exact.
        """
        return self._half_widths(probability(level, "level", "half_widths"))

    def interval(self, level: float = 0.95) -> Array:
        """Simultaneous intervals: all of them cover together with probability `level`.

        Parameters
        ----------
        level : float, default=0.95
            The probability with which all intervals cover the true values together. If a result holds several
            explanations, this is so within each of them.

        Returns
        -------
        array of shape (*values.shape, 2)
            The lower and the upper end of every interval.
        """
        half = self._half_widths(probability(level, "level", "interval"))
        return np.stack([self._numbers - half, self._numbers + half], axis=-1)

    @property
    def printed_half_widths(self) -> Array:
        """The half-widths at 95% that tables show: 0 where a number is exact, although rounding may have changed it.

        Replicates that agree do not make a number exact: it then has the width of rounding, or the smallest number. So
        has an exact number where rounding is seen beside the largest number, as that of a network in bfloat16 is.
        """
        half = self.half_widths()
        seen = half > _SEEN * np.abs(self._numbers).max(initial=0.0)
        return np.where(self._exact_numbers & ~seen, 0.0, np.maximum(half, SMALLEST))

    @property
    def _exact_numbers(self) -> NDArray[np.bool_]:
        """Which numbers are exact, shaped like `values`."""
        return np.full(self._numbers.shape, self.exact)


class EstimateResult(Result):
    """A result whose numbers are one estimate."""

    estimate: Estimate

    @property
    def _numbers(self) -> Array:
        return self.estimate.values

    @property
    def stderr(self) -> Array:
        """The standard error of every number: 0 if there is no error above rounding, NaN if it is unknown."""
        return self.estimate.stderr

    @property
    def exact(self) -> bool:
        """Whether no number has an error above rounding."""
        return self.estimate.exact

    def _half_widths(self, level: float) -> Array:
        return half_widths(self.estimate, level)


class FeatureResult(EstimateResult):
    """One number per feature of an input."""

    features: Features | None
    names: Sequence[str]
    form: InputForm | None

    @property
    def values(self) -> Array:
        """One number per feature, (n_features,)."""
        return self.estimate.values

    @property
    def method(self) -> str:
        """The estimator that made `values`."""
        return self.estimate.method

    @property
    def n_features(self) -> int:
        """The number of features."""
        return len(self.values)

    def top(self, k: int = 5) -> list[tuple[str, float, float]]:
        """The features with the largest magnitudes.

        Parameters
        ----------
        k : int, default=5
            How many features to return.

        Returns
        -------
        list of (name, value, stderr)
            The largest magnitude comes first.
        """
        order = np.argsort(-np.abs(self.values), kind="stable")[: whole(k, "k", 1, "top")]
        return [(self.names[int(i)], float(self.values[i]), float(self.stderr[i])) for i in order]

    def _repr_html_(self) -> str:
        from gralis.views.html import feature_result_html

        return feature_result_html(self)

    def to_input(self) -> Any:
        """The values on the shape of the input, in the form in which x was given (array, tuple or dict).

        Each coordinate carries the value of its feature. Values without a place in the input are left out.
        """
        if self.features is None:
            raise GralisError("This attribution does not know its features; use features.to_input(values).")
        leaves: Sequence[NDArray[Any]] = self.features.to_input(self.values[: self.features.n_features])
        form = self.form or InputForm(several=len(leaves) > 1)
        return form.pack(leaves)

    def _frame_columns(self) -> Mapping[str, Any]:
        low, high = self.interval().T
        return {"feature": list(self.names), "value": self.values, "stderr": self.stderr, "low": low, "high": high}

    def to_dict(self) -> Mapping[str, Any]:
        """The names, values and errors in plain values, ready for JSON."""
        return {"features": list(self.names), "values": self.values.tolist(), "stderr": self.stderr.tolist()}
