"""What is known before a run, and the certificates that follow from it for m draws with k nodes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from gralis.arrays import Array
from gralis.certificates import bernstein, paper
from gralis.certificates.bounds import Smoothness, kernel_range, quadrature_bound
from gralis.certificates.certificate import Certificate, Kind
from gralis.errors import GralisError
from gralis.kernels import Kernel

__all__ = ["Promise"]

RULES = ("midpoint", "riemann", "random")  # those whose error has a bound, or is zero in the mean


@dataclass(frozen=True, eq=False)
class Promise:
    """What is known before a run. `paper` and `bernstein` turn it into certificates of m draws with k nodes.

    Attributes
    ----------
    slope : array of shape (n_features,)
        B: a bound on |(x_i - x'_i) dF/dx_i| over the box between x' and x.
    known : bool
        Whether the bound and the distances are known, and not read off a few points or assumed.
    kernel : Kernel
        The kernel.
    squared_distance : array of shape (n_baselines, n_features)
        The squared distance of every feature from each baseline.
    absolute_distance : array of shape (n_features,) or None
        |x_i - x'_i|, which the quadrature error needs.
    smoothness : Smoothness
        The derivatives of F, as far as they are known.
    delta : float
        The probability with which a certificate may fail.
    difference : float
        |F(x) - F(x')|; NaN if it is not known.
    """

    slope: Array
    known: bool
    kernel: Kernel
    squared_distance: Array
    absolute_distance: Array | None
    smoothness: Smoothness
    delta: float
    difference: float = np.nan

    @cached_property
    def _range(self) -> tuple[Array, Array]:
        return kernel_range(self.kernel, self.squared_distance[0])

    @cached_property
    def _inclusion(self) -> Array:
        """q(i in T) of every feature, the least over the baselines."""
        return np.asarray(np.min([self.kernel.bind(row).inclusion for row in self.squared_distance], axis=0))

    def quadrature(self, rule: str, k: int) -> Array:
        """E_quad of every feature; NaN if there is no bound, or if a derivative or the distance is not known."""
        unknown = np.full(len(self.slope), np.nan)
        if rule == "random":
            return np.zeros_like(unknown)
        if rule not in RULES or self.absolute_distance is None:
            return unknown
        bound = quadrature_bound(rule, k, self.absolute_distance, self.smoothness)
        return unknown if bound is None else bound

    def _kind(self, quadrature: Array) -> Kind:
        return "guaranteed" if self.known and not np.isnan(quadrature).any() else "calibrated"

    def paper(self, m: int, k: int, rule: str = "midpoint") -> Certificate:
        """Theorem 3, the ratio and the aggregate corollary for m permutations with k nodes on every ray."""
        if len(self.squared_distance) > 1:
            raise GralisError("The paper's bounds are printed for one baseline; ask for each of them on its own.")
        (pi_min, pi_max), e_quad = self._range, self.quadrature(rule, k)
        return paper.of_constants(
            pi_max * self.slope, pi_max, pi_min, e_quad, m, k, self.delta, self._kind(e_quad), self.difference
        )

    def bernstein(self, m: int, k: int, rule: str = "random") -> Certificate:
        """Bernstein's inequality for m independent rays of the law with k nodes each."""
        e_quad = self.quadrature(rule, k)
        return bernstein.beforehand(
            self.slope, self._inclusion, e_quad, m, k, self.delta, self._kind(e_quad), self.difference
        )
