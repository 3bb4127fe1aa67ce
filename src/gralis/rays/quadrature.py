"""Where on a ray the gradient is taken: ray = sum_k weight_k * gradient(node_k), a rule on [0, 1].

A fixed rule is a checked table: its weights sum to one and its nodes lie in [0, 1]. The random rule draws one node
in each of k cells of equal probability under a node density h and weighs it by 1 / (k h), so it has no bias.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.checks import one_of, whole
from gralis.errors import bad
from gralis.laws.law import stratified

__all__ = [
    "NAMES",
    "UNIFORM",
    "Density",
    "NodeRule",
    "RandomRule",
    "Rule",
    "fejer",
    "gauss_legendre",
    "in_halves",
    "midpoint",
    "riemann",
    "rule",
]

_MOST = 2**20  # nodes on a ray; a larger number is a mistake that would run for ever
_MOST_OF_A_TABLE = 2**12  # nodes that take a k x k matrix to compute

NAMES = ("random", "midpoint", "riemann", "gauss-legendre", "fejer")


@dataclass(frozen=True, eq=False)
class Rule:
    """A fixed rule.

    Parameters
    ----------
    name : str
        The name of the rule, as `explain(quadrature=...)` knows it.
    nodes, weights : array of shape (n_nodes,)
        The nodes in [0, 1] and their weights.
    degree : int
        The rule must be exact for polynomials up to this degree; the constructor checks it.
    """

    name: str
    nodes: Array
    weights: Array
    degree: int

    def __post_init__(self) -> None:
        if self.nodes.shape != self.weights.shape or self.nodes.ndim != 1 or len(self.nodes) == 0:
            raise bad("nodes", "Rule", "as many as weights, at least one", f"{self.nodes.shape}, {self.weights.shape}")
        if not ((self.nodes >= 0) & (self.nodes <= 1)).all():
            raise bad("nodes", "Rule", "in [0, 1]", self.nodes.tolist())
        for power in range(self.degree + 1):
            if abs(self.weights @ self.nodes**power - 1 / (power + 1)) > 1e-12:
                raise bad("weights", "Rule", f"exact on polynomials up to degree {self.degree}", f"not on a^{power}")

    @property
    def n_nodes(self) -> int:
        """The number of nodes per ray."""
        return len(self.nodes)

    def on_rays(self, rng: np.random.Generator, n_rays: int) -> tuple[Array, Array]:
        """The same nodes and weights on every ray, (n_rays, n_nodes) each; `rng` is not used."""
        shape = (n_rays, len(self.nodes))
        return np.broadcast_to(self.nodes, shape), np.broadcast_to(self.weights, shape)


def midpoint(n_nodes: int) -> Rule:
    """Nodes (j - 1/2) / k, weights 1 / k: the paper's rule, error O(1 / k^2).

    >>> midpoint(2).nodes.tolist()
    [0.25, 0.75]
    """
    return Rule("midpoint", (np.arange(n_nodes) + 0.5) / n_nodes, np.full(n_nodes, 1 / n_nodes), 1)


def riemann(n_nodes: int) -> Rule:
    """Nodes j / k, weights 1 / k: the rule of right endpoints, error O(1 / k)."""
    return Rule("riemann", np.arange(1.0, n_nodes + 1) / n_nodes, np.full(n_nodes, 1 / n_nodes), 0)


def gauss_legendre(n_nodes: int) -> Rule:
    """The Gauss-Legendre rule, exact on polynomials up to degree 2 k - 1."""
    nodes, weights = np.polynomial.legendre.leggauss(n_nodes)
    return Rule("gauss-legendre", (nodes + 1) / 2, weights / 2, min(2 * n_nodes - 1, 20))


def fejer(n_nodes: int) -> Rule:
    """Fejer's second rule, nodes sin^2(j pi / (2 (k + 1))): k' nodes lie among k if k' + 1 divides k + 1.

    It is exact on polynomials up to degree k - 1 (k for odd k), and its error falls faster than any power of k for a
    smooth integrand. Its nodes nest, so one ledger shows phi at several k (`Explanation.sweep(n_nodes=...)`).

    >>> fejer(3).nodes.round(4).tolist(), fejer(1).nodes.round(4).tolist()
    ([0.1464, 0.5, 0.8536], [0.5])
    """
    angle = np.arange(1, n_nodes + 1) * np.pi / (n_nodes + 1)
    odd = np.arange(1, n_nodes + 2, 2)  # 2 m - 1 for m = 1 .. ceil((k + 1) / 2); a last term sin((k + 1) t) vanishes
    weights = 2 * np.sin(angle) / (n_nodes + 1) * (np.sin(np.outer(angle, odd)) / odd).sum(1)
    return Rule("fejer", np.sin(angle / 2) ** 2, weights, min(n_nodes - 1 + n_nodes % 2, 20))


@dataclass(frozen=True, eq=False)
class Density:
    """A positive node density on [0, 1], linear between knots; s = cumulative(a) is the scale on which it is uniform.

    Parameters
    ----------
    knots : array of shape (n_knots,)
        Increasing positions from 0 to 1.
    heights : array of shape (n_knots,)
        The density at the knots, > 0; the constructor divides it by its integral.

    Examples
    --------
    >>> float(UNIFORM.cumulative(np.array([0.3]))[0])
    0.3
    """

    knots: Array
    heights: Array
    _edges: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if self.knots[0] != 0 or self.knots[-1] != 1 or (np.diff(self.knots) <= 0).any() or (self.heights <= 0).any():
            raise bad("knots", "Density", "increasing from 0 to 1 with heights > 0", self.knots.tolist())
        area = np.diff(self.knots) * (self.heights[1:] + self.heights[:-1]) / 2
        object.__setattr__(self, "heights", self.heights / area.sum())
        object.__setattr__(self, "_edges", np.concatenate([[0.0], np.cumsum(area / area.sum())]))

    @property
    def floor(self) -> float:
        """The smallest value of the density; 1 / floor bounds the weight of a node."""
        return float(self.heights.min())

    def __call__(self, a: Array) -> Array:
        """The density at a."""
        return np.asarray(np.interp(a, self.knots, self.heights))

    def cumulative(self, a: Array) -> Array:
        """s, the integral of the density from 0 to a."""
        cell = np.clip(np.searchsorted(self.knots, a, side="right") - 1, 0, len(self.knots) - 2)
        into = a - self.knots[cell]
        slope = np.diff(self.heights)[cell] / np.diff(self.knots)[cell]
        return np.asarray(self._edges[cell] + into * (self.heights[cell] + slope * into / 2))

    def quantile(self, s: Array) -> Array:
        """The a at which the cumulative is s."""
        cell = np.clip(np.searchsorted(self._edges, s, side="right") - 1, 0, len(self.knots) - 2)
        rest, height = s - self._edges[cell], self.heights[cell]
        slope = np.diff(self.heights)[cell] / np.diff(self.knots)[cell]
        # rest = height * into + slope * into^2 / 2, solved in the form that is stable for slope near 0
        into = 2 * rest / (height + np.sqrt(np.maximum(height**2 + 2 * slope * rest, 0.0)))
        return np.asarray(np.clip(self.knots[cell] + into, 0.0, 1.0))


UNIFORM = Density(np.array([0.0, 1.0]), np.array([1.0, 1.0]))


@dataclass(frozen=True, eq=False)
class RandomRule:
    """Stratified random nodes from a density, unbiased for every integrand.

    Parameters
    ----------
    n_nodes : int
        The number of nodes per ray.
    density : Density, default=UNIFORM
        The density of the nodes.
    """

    n_nodes: int
    density: Density = UNIFORM
    name: str = "random"

    def on_rays(self, rng: np.random.Generator, n_rays: int) -> tuple[Array, Array]:
        """Fresh nodes and weights for every ray, (n_rays, n_nodes) each; shifts are stratified over the rays too."""
        return self._at(np.stack([stratified(rng, n_rays) for _ in range(self.n_nodes)], axis=1), self.n_nodes)

    def on_rays_apart(self, rng: np.random.Generator, counts: NDArray[np.int64]) -> tuple[Array, Array]:
        """The same with nodes that are independent between rays and cells, so that each may show the error of its own.

        Parameters
        ----------
        rng : numpy.random.Generator
            The source of the nodes.
        counts : array of int of shape (n_rays,)
            The number of nodes on every ray, instead of `n_nodes`.

        Returns
        -------
        tuple of two arrays of shape (n_rays, counts.max())
            Nodes and weights; NaN behind the last node of a ray.
        """
        shift = rng.random((len(counts), int(counts.max())))
        shift[np.arange(shift.shape[1]) >= counts[:, None]] = np.nan
        return self._at(shift, counts[:, None])

    def _at(self, shift: Array, counts: int | NDArray[np.int64]) -> tuple[Array, Array]:
        """Nodes at these places in [0, 1) of their cells, (n_rays, n_nodes), and their weights."""
        nodes = self.density.quantile((np.arange(shift.shape[1]) + shift) / counts)
        return nodes, 1 / (counts * self.density(nodes))


NodeRule = Rule | RandomRule

_FIXED = {"midpoint": midpoint, "riemann": riemann, "gauss-legendre": gauss_legendre, "fejer": fejer}


def in_halves(n_nodes: int) -> Rule:
    """Gauss-Legendre on [0, 1/2] and on [1/2, 1], for rays on which discrete features jump half-way."""
    if n_nodes < 2:
        return gauss_legendre(n_nodes)
    first, second = gauss_legendre(n_nodes // 2), gauss_legendre(n_nodes - n_nodes // 2)
    nodes = np.concatenate([first.nodes / 2, 0.5 + second.nodes / 2])
    return Rule("gauss-legendre", nodes, np.concatenate([first.weights, second.weights]) / 2, first.degree)


def rule(name: str, n_nodes: int, density: Density = UNIFORM, *, halves: bool = False) -> NodeRule:
    """The rule of this name.

    Parameters
    ----------
    name : {'random', 'midpoint', 'riemann', 'gauss-legendre', 'fejer'}
        The name of the rule.
    n_nodes : int
        The number of nodes per ray, >= 1.
    density : Density, default=UNIFORM
        The density of random nodes; fixed rules ignore it.
    halves : bool, default=False
        Whether discrete features jump half-way, so that Gauss-Legendre is applied to each half.

    Returns
    -------
    Rule or RandomRule
    """
    one_of(name, NAMES, "quadrature", "explain")
    n_nodes = whole(n_nodes, "n_nodes", 1, most=_MOST_OF_A_TABLE if name in ("gauss-legendre", "fejer") else _MOST)
    if name == "random":
        return RandomRule(n_nodes, density)
    return in_halves(n_nodes) if name == "gauss-legendre" and halves else _FIXED[name](n_nodes)
