"""One axis of a quadrature grid: its nodes, its weights, and interpolation between the nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gralis.arrays import Array
from gralis.errors import bad


@dataclass(frozen=True, eq=False)
class Axis:
    """m Gauss nodes on each of n_panels equal parts of the quantile levels, or the distinct values of a column (m = 0).

    The weights sum to one. `missed` estimates the error of the nodes in E F^2, and `tail` the error of interpolation.
    """

    nodes: Array
    weights: Array
    m: int
    n_panels: int
    missed: float
    tail: float

    def __post_init__(self) -> None:
        if len(self.nodes) != len(self.weights) or abs(self.weights.sum() - 1) > 1e-12 or (self.weights < 0).any():
            raise bad("weights", "Axis", ">= 0, one per node, with sum 1", f"the sum {self.weights.sum()}")

    @classmethod
    def of_panels(cls, quantile: Callable[[Array], Array], m: int, n_panels: int, missed: float, tail: float) -> Axis:
        """Gauss-Legendre nodes in the quantile levels of an input with this quantile function."""
        u, weights = gauss(m, n_panels)
        return cls(quantile(u), weights, m, n_panels, missed, tail)

    @classmethod
    def of_atoms(cls, values: Array, probabilities: Array) -> Axis:
        """The values of a discrete input with their probabilities; these nodes make no error."""
        return cls(values, probabilities, 0, 0, 0.0, 0.0)

    def with_node(self, x: float) -> Axis:
        """The same axis with one more node of weight zero."""
        return replace(self, nodes=np.append(self.nodes, x), weights=np.append(self.weights, 0.0))

    def interpolation(self, u: Array, x: Array) -> Array:
        """The matrix (len(u), n_nodes) that interpolates values at the nodes to the levels u (or discrete values x)."""
        result = np.zeros((len(u), len(self.nodes)))
        if not self.m:
            result[np.arange(len(x)), np.argmax(self.nodes == x[:, None], axis=1)] = 1.0
            return result
        panel = np.minimum((u * self.n_panels).astype(np.int64), self.n_panels - 1)
        node = np.polynomial.legendre.leggauss(self.m)[0]
        local = 2 * (u * self.n_panels - panel) - 1
        for k in range(self.m):  # the Lagrange polynomial of node k on the panel that contains the point
            others = np.delete(node, k)
            value = ((local[:, None] - others) / (node[k] - others)).prod(1)
            result[np.arange(len(u)), panel * self.m + k] = value
        return result


def gauss(m: int, n_panels: int) -> tuple[Array, Array]:
    """The nodes and weights of Gauss-Legendre quadrature with m nodes on each of n_panels equal parts of [0, 1].

    >>> gauss(1, 2)
    (array([0.25, 0.75]), array([0.5, 0.5]))
    """
    node, weight = np.polynomial.legendre.leggauss(m)
    left = np.arange(n_panels)[:, None] / n_panels
    return (left + (node + 1) / (2 * n_panels)).ravel(), np.tile(weight / (2 * n_panels), n_panels)
