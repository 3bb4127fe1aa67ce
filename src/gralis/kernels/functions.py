"""Kernels made of a user's function: of the size of a coalition, or of its mask."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gralis.arrays import Array, Masks
from gralis.checks import function
from gralis.errors import GralisError, bad
from gralis.kernels.gaussian import Gaussian, Uniform
from gralis.kernels.kernel import Kernel
from gralis.laws import Law, SizeLaw, TableLaw
from gralis.laws.table import MOST_FEATURES

__all__ = ["MaskKernel", "SizeKernel", "as_kernel"]


@dataclass(frozen=True)
class SizeKernel:
    """pi(S) = fn(|S|): a coalition counts by its size alone.

    Parameters
    ----------
    fn : callable
        A function of one size, 0 .. n_features - 1, with finite values >= 0 that are not all zero.

    Examples
    --------
    >>> import numpy as np
    >>> SizeKernel(lambda size: 0.5**size).bind(np.ones(2)).normaliser.tolist()
    [0.75, 0.75]
    """

    fn: Callable[[int], float]

    def __post_init__(self) -> None:
        function(self.fn, "fn", "SizeKernel", "of the size")

    def weights(self, n_features: int) -> Array:
        """fn on the sizes 0 .. n_features - 1, checked."""
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
        return SizeLaw(self.weights(len(squared_distance)))

    def log_weight(self, masks: Masks, squared_distance: Array) -> Array:
        weights = np.append(self.weights(len(squared_distance)), np.nan)  # the full coalition precedes nobody
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(weights[masks.sum(1)]))


@dataclass(frozen=True)
class MaskKernel:
    """pi(S) = fn(masks): any function of masks. `explain(kernel=fn)` wraps a function in it.

    The normaliser is a sum over all coalitions, so the kernel serves up to 16 features, except with
    plan='permutation', which needs no normaliser.

    Parameters
    ----------
    fn : callable
        A function of masks, an array of bool (n_coalitions, n_features), that returns finite weights >= 0,
        (n_coalitions,).

    Examples
    --------
    >>> import numpy as np
    >>> kernel = MaskKernel(lambda masks: 1.0 + masks[:, 0])
    >>> np.exp(kernel.log_weight(np.array([[True, False], [False, True]]), np.ones(2))).round(12).tolist()
    [2.0, 1.0]
    """

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
    """The kernel itself, or a function of masks as a kernel.

    Parameters
    ----------
    kernel : Kernel or callable
        Any object with the methods of `Kernel`, or a function of masks.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> from gralis import Uniform
    >>> as_kernel(Uniform())
    Uniform()
    """
    if isinstance(kernel, Gaussian | Uniform):  # at once: Python looks for every method of a protocol each time
        return kernel
    if isinstance(kernel, Kernel) and not isinstance(kernel, type):
        return kernel
    if callable(kernel) and not isinstance(kernel, type):
        return MaskKernel(kernel)
    raise bad("kernel", "explain", "Uniform(), Gaussian(sigma), SizeKernel(fn) or a function of masks", repr(kernel))
