"""Intervals for the means of attributions over inputs, and for the difference between two groups of inputs."""

from __future__ import annotations

import numpy as np
from scipy.special import stdtrit

from gralis.arrays import Array
from gralis.many.moments import Moments

__all__ = ["difference_half_widths", "mean_half_widths"]

_SKEW = 4.0  # with n - 1 degrees of freedom, 20 to 40 skewed inputs cover 85 to 88 % instead of 95 %


def mean_half_widths(moments: Moments, squares: Array, share: float) -> Array:
    """t sqrt(squares / (n (n - 1))) + sqrt(noise), NaN for a single input; `share` is the probability of an error."""
    if moments.n < 2:
        return np.full(len(moments.mean), np.nan)
    return _quantile(moments.n, share) * np.sqrt(_variance(moments.n, squares)) + np.sqrt(moments.noise)


def difference_half_widths(a: Moments, b: Moments, share: float) -> Array:
    """The half-widths of mean phi of one group less that of another, NaN if one of them has a single input.

    t sqrt(var_a / n_a + var_b / n_b) + sqrt(noise_a) + sqrt(noise_b), with the degrees of freedom of the smaller group.
    """
    if min(a.n, b.n) < 2:
        return np.full(len(a.mean), np.nan)
    spread = np.sqrt(_variance(a.n, a.squares) + _variance(b.n, b.squares))
    return _quantile(min(a.n, b.n), share) * spread + np.sqrt(a.noise) + np.sqrt(b.noise)


def _quantile(n: int, share: float) -> float:
    return float(stdtrit(max((n - 1) / _SKEW, 1.0), 1 - share / 2))


def _variance(n: int, squares: Array) -> Array:
    """The variance of a mean."""
    return np.asarray(squares / (n * (n - 1)))
