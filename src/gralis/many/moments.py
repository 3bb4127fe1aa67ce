"""Sums over the explanations of many inputs, which can be merged and sent to others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from gralis.arrays import Array
from gralis.checks import is_whole

__all__ = ["Moments"]

_SINGLE = ("n", "f_mean", "f_squares")  # numbers; the others have one number for each feature
_SQUARES = ("mean_abs", "squares", "noise", "f_squares")  # cannot be negative


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over inputs about their means. They are merged by Chan's update, which loses no digits."""

    n: int
    mean: Array  # of phi
    mean_abs: Array
    squares: Array  # sum (phi - mean)^2
    noise: Array  # mean stderr^2
    with_total: Array  # sum (phi_i - mean_i) (s - mean s), s = sum_j phi_j
    f_mean: float  # of F(x)
    f_squares: float

    @staticmethod
    def of(phi: Array, stderr: Array, f_x: Array) -> Moments:
        """The moments of some inputs: phi and stderr (n_inputs, n_features), F(x) (n_inputs,)."""
        mean, total = phi.mean(0), phi.sum(1)
        return Moments(
            len(phi),
            mean,
            np.abs(phi).mean(0),
            ((phi - mean) ** 2).sum(0),
            (stderr**2).mean(0),
            ((phi - mean) * (total - total.mean())[:, None]).sum(0),
            float(f_x.mean()),
            float(((f_x - f_x.mean()) ** 2).sum()),
        )

    def merge(self, other: Moments) -> Moments:
        """The moments of both together."""
        n = self.n + other.n
        share, cross = other.n / n, self.n * other.n / n
        step, f_step = other.mean - self.mean, other.f_mean - self.f_mean
        return Moments(
            n,
            self.mean + share * step,
            self.mean_abs + share * (other.mean_abs - self.mean_abs),
            self.squares + other.squares + cross * step**2,
            self.noise + share * (other.noise - self.noise),
            self.with_total + other.with_total + cross * step * step.sum(),
            self.f_mean + share * f_step,
            self.f_squares + other.f_squares + cross * f_step**2,
        )

    @staticmethod
    def checked(known: Mapping[str, Any], n_features: int) -> Moments:
        """The moments that a file holds; a ValueError says what is wrong with them."""
        read: dict[str, Any] = {}
        for field in fields(Moments):
            value = known[field.name]
            if isinstance(value, list) == (field.name in _SINGLE):
                raise ValueError(f"{field.name} is a {type(value).__name__}")
            if isinstance(value, Sequence):
                value = np.array(value, dtype=np.float64)
                if value.shape != (n_features,):
                    raise ValueError(f"{field.name} has the shape {value.shape}")
            elif isinstance(value, bool) or not isinstance(value, int | float):
                raise ValueError(f"{field.name} is {value!r}")
            if not np.isfinite(value).all():
                raise ValueError(f"{field.name} is not finite")
            if field.name in _SQUARES and (np.asarray(value) < 0).any():
                raise ValueError(f"{field.name} is negative")
            read[field.name] = value
        if not is_whole(read["n"], 1):
            raise ValueError(f"n is {read['n']!r}")
        return Moments(**read)
