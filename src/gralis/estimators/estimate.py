"""What an estimator returns: the values, how each replicate departs from them, and what no replicate can show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.estimators.one_thread import one_thread

LEAST_CARRIERS = 2.0  # with fewer carriers a single ray makes the variance, and that ray was seen
HEAVY = 1.5  # how much the carriers count: heavy rays make an error small and its value too small at the same time
_LEAST_CONTRASTS = 40


def carriers(rays: Array) -> Array:
    """(sum r^2)^2 / sum r^4: the number of rays that carry the variance of a sum of rays, for every column."""
    largest = np.abs(rays).max(0, initial=0.0)
    squares = (rays / np.where(largest > 0, largest, 1.0)) ** 2  # so that no power overflows
    total, fourth = squares.sum(0), (squares**2).sum(0)
    return np.asarray(np.divide(total**2, fourth, out=np.full_like(total, np.inf), where=fourth > 0))


@dataclass(frozen=True, eq=False)
class Estimate:
    """phi_hat, and how each replicate departs from it.

    Attributes
    ----------
    values : array of shape (n_features,)
        phi_hat.
    departures : array of shape (n_replicates, n_features)
        The estimate of each replicate minus `values`. Their mean is zero. NaN marks an error that is unknown.
    method : str
        The name of the method that made the values.
    exact : bool, default=False
        Whether the values have no error above rounding: every coalition was evaluated, and no quadrature error shows.
    carriers : array of shape (n_features,) or None, default=None
        The number of rays that carry the variance of each value. None means very many.
    margin : array of shape (n_features,) or None, default=None
        An allowance for the error that all replicates share, such as that of fixed nodes. None means zero.
    rounding : array of shape (n_features,) or None, default=None
        The error that the arithmetic of the model may leave in each value. None means zero.
    """

    values: Array
    departures: Array
    method: str
    exact: bool = False
    carriers: Array | None = None
    margin: Array | None = None
    rounding: Array | None = None

    @property
    def sampling_error(self) -> Array:
        """The standard error between the replicates: 0 if the values are exact, NaN if there is only one replicate."""
        n = len(self.departures)
        if self.exact:
            return np.zeros_like(self.values)
        if n < 2:
            return np.full_like(self.values, np.nan)
        return np.asarray(np.sqrt((self.departures**2).sum(0) / (n * (n - 1))))

    @property
    def stderr(self) -> Array:
        """The root of sampling_error^2 + margin^2: 0 if the values are exact, NaN if the error is unknown."""
        if self.margin is None:
            return self.sampling_error
        return np.asarray(np.hypot(self.sampling_error, self.margin))

    @property
    def allowance(self) -> Array:
        """What every half-width adds to the sampling error: the margin and the rounding."""
        parts = [part for part in (self.margin, self.rounding) if part is not None]
        return np.sum(parts, axis=0) if parts else np.zeros_like(self.values)

    @property
    def dof(self) -> Array:
        """Degrees of freedom of stderr^2: 2 / dof = 2 / (R - 1) + 1.5 / carriers.

        R normal replicates alone would give dof = R - 1. Where a few heavy rays make most of the variance, the relative
        variance of stderr^2 grows by 1 / carriers. A sample that lacks heavy rays has both a wrong value and an error
        that looks too small, so the carriers count one and a half times. The term uses at least two carriers: with
        fewer, a single ray makes the variance, and that ray is in the sample.
        """
        n = len(self.departures)
        heavy = (
            np.zeros(len(self.values)) if self.carriers is None else HEAVY / np.maximum(self.carriers, LEAST_CARRIERS)
        )
        return np.asarray(2 / (2 / max(n - 1, 1) + heavy))

    def unknown_where(self, features: NDArray[np.bool_]) -> Estimate:
        """The same estimate, with NaN as the error of these features because their error is unknown."""
        if not features.any():
            return self
        return replace(self, departures=np.where(features, np.nan, self.departures))

    def widened(self, factor: float) -> Estimate:
        """The same values with departures multiplied by `factor`."""
        return replace(self, departures=self.departures * factor)

    def with_margin(self, margin: Array) -> Estimate:
        """The same values, which may all be off by `margin` in every replicate. A margin of zero changes nothing."""
        if not margin.any():
            return self
        total = margin if self.margin is None else self.margin + margin
        # Values without sampling error have two replicates that agree.
        departures = np.zeros((2, len(self.values))) if self.exact else self.departures
        return replace(self, departures=departures, exact=False, margin=total)

    def with_rounding(self, rounding: Array) -> Estimate:
        """The same values, which the arithmetic of the model may have changed by `rounding`."""
        other = object.__new__(type(self))  # `replace` would read departures that nobody has asked for yet
        total = rounding if self.rounding is None else self.rounding + rounding
        other.__dict__.update({**self.__dict__, "rounding": total})
        return other

    def combined(self, rows: Array) -> Estimate:
        """Linear combinations of the values, one per row of `rows` (n_combinations, n_features)."""
        used = rows != 0
        carriers = self.carriers
        if carriers is not None:
            carriers = np.array([carriers[row].min(initial=np.inf) for row in used])
        return Estimate(
            rows @ self.values,
            self.departures @ rows.T,
            self.method,
            self.exact,
            carriers,
            None if self.margin is None else np.abs(rows) @ self.margin,
            None if self.rounding is None else np.abs(rows) @ self.rounding,
        )

    @staticmethod
    def beside(parts: Sequence[Estimate]) -> Estimate:
        """One estimate that holds the values of several estimates from the same replicates side by side."""
        n = max(len(e.departures) for e in parts)
        departures = [np.zeros((n, len(e.values))) if e.exact else e.departures for e in parts]

        def column(name: str, default: float) -> Array:
            given = [getattr(e, name) for e in parts]
            return np.concatenate(
                [np.full(len(e.values), default) if g is None else g for e, g in zip(parts, given, strict=True)]
            )

        return Estimate(
            np.concatenate([e.values for e in parts]),
            np.concatenate(departures, axis=1),
            parts[0].method,
            all(e.exact for e in parts),
            column("carriers", np.inf),
            column("margin", 0.0) if any(e.margin is not None for e in parts) else None,
            column("rounding", 0.0) if any(e.rounding is not None for e in parts) else None,
        )

    @staticmethod
    def mean(estimates: Array, method: str, exact: bool = False, rays: Array | None = None) -> Estimate:
        """The mean of independent estimates, one row per replicate; `rays` are the contributions that they sum up."""
        values = estimates.mean(0)
        return Estimate(values, estimates - values, method, exact, None if rays is None else carriers(rays))

    @staticmethod
    def normal(values: Array, covariance: Array, method: str, n_rows: float) -> Estimate:
        """An estimate whose error is normal with this covariance; the scale was learnt from n_rows.

        The departures are chosen so that the errors and correlations read from them are those of this covariance.
        """
        carriers = np.full(len(values), n_rows / 2)
        return NormalEstimate.later(values=values, covariance=covariance, method=method, carriers=carriers)


class NormalEstimate(Estimate):
    """An estimate with a normal error. Its departures are made when they are first read: its values need none."""

    covariance: Array

    @classmethod
    def later(cls, **parts: object) -> Estimate:
        """An estimate with these attributes and without departures."""
        estimate = object.__new__(cls)
        estimate.__dict__.update(parts)
        return estimate

    @cached_property
    def departures(self) -> Array:
        return _departures(self.covariance)


@one_thread()
def _departures(covariance: Array) -> Array:
    """max(n + 1, 40) departures with this covariance of their mean, (n_departures, n_features)."""
    n = len(covariance)
    count = max(n + 1, _LEAST_CONTRASTS)
    variances, directions = np.linalg.eigh(covariance)
    place = (np.arange(count) + 0.5)[:, None] * np.arange(1, n + 1)
    contrasts = np.sqrt(2 / count) * np.cos(np.pi / count * place)  # orthonormal columns of mean zero
    roots = np.sqrt(np.maximum(variances, 0.0) * count * (count - 1))
    departures = contrasts @ (roots[:, None] * directions.T)
    departures[:, np.diag(covariance) == 0] = 0.0  # exactly zero, without rounding
    return np.asarray(departures)
