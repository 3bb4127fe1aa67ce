"""The law of coalitions as the sums over trees need it.

A product law (Gaussian kernels) becomes p_j and Gauss-Legendre nodes in u. A law of the size (uniform and size kernels)
becomes a table: the probability, given i in T, that a given features are in T and b given others are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Any

import numpy as np
from scipy.special import gammaln

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.kernels import Kernel
from gralis.laws import ProductLaw, SizeLaw

__all__ = ["PairLaws", "legendre", "moments", "pair_laws", "size_table", "tie_nodes"]

_STEP = 8  # numbers of nodes are multiples of it
_LEAST_LOG = -650.0  # so that 1 / (p Z) stays finite; a smaller p changes nothing above rounding
_PER_RATE, _EXTRA = 0.6, 16  # nodes that integrate exp(-rate u) to rounding


@dataclass(frozen=True, eq=False)
class PairLaws:
    """The laws of one input and all its baselines.

    Attributes
    ----------
    p : array of shape (n_baselines, n_features), or (0, 0)
        The factors of product laws.
    nodes, weights : array of shape (n_nodes,)
        Gauss-Legendre in u, or nothing for laws of the size.
    table : array of shape (depth + 2, depth + 2)
        table[a, b] for laws of the size.
    """

    p: Array
    nodes: Array
    weights: Array
    table: Array

    @property
    def by_product(self) -> bool:
        return len(self.nodes) > 0


def pair_laws(kernel: Kernel, squared_distance: Array, depth: int) -> PairLaws:
    """The laws of this kernel for every baseline, from the squared distances (n_baselines, n_features)."""
    n_features = squared_distance.shape[1]
    first = kernel.bind(squared_distance[0])
    if isinstance(first, SizeLaw):
        nothing = np.zeros(0)
        return PairLaws(np.zeros((0, 0)), nothing, nothing, size_table(first.weights, n_features, depth))
    laws = [first, *(kernel.bind(row) for row in squared_distance[1:])]
    if not all(isinstance(law, ProductLaw) for law in laws):
        raise GralisError(
            f"The kernel {kernel} is neither a product over features nor a function of the size, so the sum over trees "
            f"has no closed form; use Uniform(), Gaussian(sigma) or SizeKernel(fn), or explain with plan='exhaustive'."
        )
    p = np.exp(np.maximum(np.stack([law.log_p for law in laws]), _LEAST_LOG))  # type: ignore[attr-defined]
    moving = (p < 1).sum(1).max()
    rate = (1 - p).sum(1).max()
    count = min((moving + 1) // 2 + 1, _PER_RATE * rate + depth / 2 + _EXTRA)
    nodes, weights = legendre(int(np.ceil(count / _STEP)) * _STEP)
    return PairLaws(p, nodes, weights, np.zeros((1, 1)))


def size_table(size_weights: Array, n_features: int, depth: int) -> Array:
    """P(a given features in T and b given others not | i in T) for a + b <= depth + 1, others in either way.

    Given i in T, the size s of the rest has a probability proportional to its weight, and all sets of one size are
    alike: sum over s of P(s) C(n - 1 - a - b, s - a) / C(n - 1, s).
    """
    n, s = n_features - 1, np.arange(n_features)
    mass = size_weights / size_weights.sum()
    table = np.zeros((depth + 2, depth + 2))
    for a in range(min(depth + 2, n + 1)):
        for b in range(min(depth + 2 - a, n + 1 - a)):
            fits = (s >= a) & (s <= n - b)
            sizes = s[fits]
            log = _log_comb(n - a - b, sizes - a) - _log_comb(n, sizes)
            table[a, b] = (mass[fits] * np.exp(log)).sum()
    return table


def _log_comb(n: int, k: Any) -> Any:
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


@lru_cache(maxsize=64)
def legendre(count: int) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (nodes + 1) / 2, weights / 2


@lru_cache(maxsize=64)
def tie_nodes(most: int) -> Array:
    """Row k holds the k Gauss-Legendre nodes on [0, 1] in the first table and their weights in the second."""
    ties = np.zeros((2, most + 1, most + 1))
    for k in range(1, most + 1):
        ties[0, k, :k], ties[1, k, :k] = legendre(k)
    return ties


@lru_cache(maxsize=64)
def moments(most: int) -> Array:
    """The integral of t^i (1 - t)^j over [0, 1] = 1 / ((i + j + 1) C(i + j, i)), for i, j = 0 .. most."""
    return np.array([[1 / ((i + j + 1) * comb(i + j, i)) for j in range(most + 1)] for i in range(most + 1)])
