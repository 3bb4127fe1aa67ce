"""One axis of a quadrature grid: nodes, weights, and the polynomial through values at the nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from gralis.arrays import Array
from gralis.errors import bad


@dataclass(frozen=True, eq=False)
class Axis:
    """m Gauss nodes on each of n_panels equal parts of the quantile levels, or the atoms of a column (m = 0).

    `missed` estimates what the nodes leave out of E F^2. The weights sum to one; nodes beyond those have weight zero.
    """

    nodes: Array
    weights: Array
    m: int
    n_panels: int
    missed: float

    def __post_init__(self) -> None:
        if len(self.nodes) != len(self.weights) or abs(self.weights.sum() - 1) > 1e-12 or (self.weights < 0).any():
            raise bad("weights", "Axis", ">= 0, one per node, with sum 1", f"the sum {self.weights.sum()}")

    @classmethod
    def of_panels(cls, quantile: Callable[[Array], Array], m: int, n_panels: int, missed: float) -> Axis:
        """Gauss-Legendre in the levels of an input with this quantile function."""
        u, weights = gauss(m, n_panels)
        return cls(quantile(u), weights, m, n_panels, missed)

    @classmethod
    def of_atoms(cls, values: Array, probabilities: Array) -> Axis:
        """A discrete input: nothing is missed."""
        return cls(values, probabilities, 0, 0, 0.0)

    def with_node(self, x: float) -> Axis:
        """One more node, of weight zero."""
        return replace(self, nodes=np.append(self.nodes, x), weights=np.append(self.weights, 0.0))

    def interpolation(self, u: Array, x: Array) -> Array:
        """Weights that give the value at each level u (or atom x) from values at the nodes, (len(u), n_nodes)."""
        result = np.zeros((len(u), len(self.nodes)))
        if not self.m:
            result[np.arange(len(x)), np.argmax(self.nodes == x[:, None], axis=1)] = 1.0
            return result
        panel = np.minimum((u * self.n_panels).astype(np.int64), self.n_panels - 1)
        node = np.polynomial.legendre.leggauss(self.m)[0]
        local = 2 * (u * self.n_panels - panel) - 1
        for k in range(self.m):  # Lagrange's polynomial of node k, on the point's own panel
            others = np.delete(node, k)
            value = ((local[:, None] - others) / (node[k] - others)).prod(1)
            result[np.arange(len(u)), panel * self.m + k] = value
        return result


def gauss(m: int, n_panels: int) -> tuple[Array, Array]:
    """Gauss-Legendre with m nodes on each of n_panels equal parts of [0, 1].

    >>> gauss(1, 2)
    (array([0.25, 0.75]), array([0.5, 0.5]))
    """
    node, weight = np.polynomial.legendre.leggauss(m)
    left = np.arange(n_panels)[:, None] / n_panels
    return (left + (node + 1) / (2 * n_panels)).ravel(), np.tile(weight / (2 * n_panels), n_panels)
