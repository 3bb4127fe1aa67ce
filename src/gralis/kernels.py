"""Locality kernels pi(S): how much a predecessor coalition S counts. `bind` makes the exact law of one input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from gralis.arrays import Array, Masks
from gralis.errors import GralisError, bad
from gralis.laws import Law, ProductLaw, SizeLaw, TableLaw
from gralis.laws.table import MOST_FEATURES


@runtime_checkable
class Kernel(Protocol):
    """A locality kernel; `bind` turns it into the law of coalitions of one input."""

    def bind(self, squared_distance: Array) -> Law:
        """The law for features that lie at these squared distances from the baseline."""
        ...

    def log_weight(self, masks: Masks, squared_distance: Array) -> Array:
        """log pi(S) for each row of masks (the empty coalition included)."""
        ...


@dataclass(frozen=True)
class Uniform:
    """pi(S) = 1: Shapley's weights alone."""

    def bind(self, squared_distance: Array) -> Law:
        return SizeLaw(np.ones(len(squared_distance)))

    def log_weight(self, masks: Masks, squared_distance: Array) -> Array:
        return np.zeros(len(masks))


@dataclass(frozen=True)
class Gaussian:
    """pi(S) = exp(-sum_{j in S} d_j^2 / (2 sigma^2)), d_j the distance of feature j from its baseline.

    distance="euclidean" is the paper's formula to the letter; "relative" divides by the whole ||x - x'||^2, so that
    sigma means the same for a pixel image and a table, and the full coalition weighs exp(-1 / (2 sigma^2)).

    >>> Gaussian(0.75)
    Gaussian(sigma=0.75, distance='relative')
    """

    sigma: float
    distance: Literal["relative", "euclidean"] = "relative"

    def __post_init__(self) -> None:
        number = isinstance(self.sigma, int | float | np.floating | np.integer) and not isinstance(self.sigma, bool)
        if not number or not 0 < self.sigma < np.inf:
            raise bad("sigma", "Gaussian", "a float > 0", repr(self.sigma), "For sigma = infinity use Uniform().")
        if self.distance not in ("relative", "euclidean"):
            raise bad("distance", "Gaussian", "'relative' or 'euclidean'", repr(self.distance))
        object.__setattr__(self, "sigma", float(self.sigma))  # a NumPy number would print, and save, differently

    def log_p(self, squared_distance: Array) -> Array:
        """log p_j = -d_j^2 / (2 sigma^2)."""
        scale = squared_distance.sum() if self.distance == "relative" else 1.0
        if scale == 0:  # x = x' everywhere: every coalition is equally near
            return np.zeros_like(squared_distance)
        with np.errstate(over="ignore"):  # sigma^2 itself may be out of range
            exponent = squared_distance / scale / 2 / float(self.sigma) / float(self.sigma)
        # Below exp(-700) a coalition can never be told from one of weight zero; the floor keeps logarithms finite.
        return np.asarray(-np.minimum(exponent, 700.0))

    def bind(self, squared_distance: Array) -> Law:
        return ProductLaw(self.log_p(squared_distance))

    def log_weight(self, masks: Masks, squared_distance: Array) -> Array:
        return np.asarray(masks @ self.log_p(squared_distance))


@dataclass(frozen=True)
class SizeKernel:
    """pi(S) = fn(|S|), fn(size) >= 0 for sizes 0 .. n - 1, for example `lambda s: 0.5 ** s`."""

    fn: Callable[[int], float]

    def __post_init__(self) -> None:
        if not callable(self.fn):
            raise bad("fn", "SizeKernel", "a function of the size", repr(self.fn))

    def _weights(self, n_features: int) -> Array:
        try:
            weights = np.array([float(self.fn(size)) for size in range(n_features)])
        except Exception as error:
            raise GralisError(f"The fn of SizeKernel failed on the sizes 0 .. {n_features - 1}: {error!r}.") from error
        if not np.isfinite(weights).all() or (weights < 0).any() or weights.sum() == 0:
            worst = int(np.argmin(np.where(np.isfinite(weights), weights, -np.inf)))
            allowed = "a function with finite values >= 0, not all zero, on the sizes 0 .. n_features - 1"
            raise bad("fn", "SizeKernel", allowed, f"fn({worst}) = {weights[worst]}")
        return weights

    def bind(self, squared_distance: Array) -> Law:
        return SizeLaw(self._weights(len(squared_distance)))

    def log_weight(self, masks: Masks, squared_distance: Array) -> Array:
        weights = np.append(self._weights(len(squared_distance)), np.nan)  # the full coalition precedes nobody
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(weights[masks.sum(1)]))


@dataclass(frozen=True)
class MaskKernel:
    """pi(S) = fn(masks), any function of 0/1 masks (n_coalitions, n_features) -> (n_coalitions,) with values >= 0."""

    fn: Callable[[Masks], Array]

    def _weigh(self, masks: Masks) -> Array:
        try:
            weights = np.asarray(self.fn(masks), dtype=np.float64)
        except Exception as error:
            raise GralisError(f"The 'kernel' parameter of explain failed on masks {masks.shape}: {error!r}.") from error
        if weights.shape != (len(masks),):
            allowed = f"a function of masks {masks.shape} that returns ({len(masks)},)"
            raise bad("kernel", "explain", allowed, f"shape {weights.shape}")
        if not np.isfinite(weights).all() or (weights < 0).any():
            row = int(np.flatnonzero(~np.isfinite(weights) | (weights < 0))[0])
            members = np.flatnonzero(masks[row]).tolist()
            raise bad("kernel", "explain", "finite and >= 0 on every coalition", f"{weights[row]} on {members}")
        return weights

    def bind(self, squared_distance: Array) -> Law:
        n = len(squared_distance)
        if n > MOST_FEATURES:
            raise GralisError(
                f"A kernel given as a function of masks is normalised over all 2^n coalitions, which is possible up "
                f"to n_features = {MOST_FEATURES}; here n_features = {n}. Use Gaussian, SizeKernel or "
                f"plan='permutation', which needs no normaliser."
            )
        law = TableLaw(self._weigh, n)
        if not (law.normaliser > 0).all():
            feature = int(np.flatnonzero(law.normaliser <= 0)[0])
            raise GralisError(
                f"The kernel is zero on every coalition without feature {feature}, so its normaliser Z is zero; "
                f"use a kernel that is positive somewhere for every feature."
            )
        return law

    def log_weight(self, masks: Masks, squared_distance: Array) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._weigh(masks)))


def as_kernel(kernel: object) -> Kernel:
    """A kernel value as it is, a callable on masks wrapped, anything else refused.

    >>> as_kernel(Uniform())
    Uniform()
    """
    if isinstance(kernel, Kernel) and not isinstance(kernel, type):
        return kernel
    if callable(kernel) and not isinstance(kernel, type):
        return MaskKernel(kernel)
    raise bad("kernel", "explain", "Uniform(), Gaussian(sigma), SizeKernel(fn) or a function of masks", repr(kernel))
