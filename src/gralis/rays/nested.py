"""Rules inside rules: which of the nodes on a ray form a rule of the same name with fewer nodes (C3, sweeps over k).

k midpoints contain a rule with k' midpoints if k / k' is odd, k right endpoints if k' divides k, and k nodes of Fejer's
rule if k' + 1 divides k + 1. Gauss-Legendre rules of odd size share only the middle.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.errors import bad
from gralis.rays.quadrature import NodeRule, Rule, in_halves, rule

__all__ = ["default_nodes", "nested", "thinned"]

_SAME = 1e-12
_MANY_INSIDE = (1, 2, 3, 5, 7, 11, 15, 23, 31)  # sizes of Fejer's rule in which many smaller ones nest


def default_nodes(name: str | None, most: int) -> int:
    """The number of nodes, at most `most`, where the user gave none: for Fejer's rule one with many rules inside.

    >>> default_nodes("fejer", 16), default_nodes("midpoint", 16)
    (15, 16)
    """
    return max(k for k in _MANY_INSIDE if k <= max(most, 1)) if name == "fejer" else most


def nested(name: str, nodes: Array) -> list[int]:
    """The numbers of nodes k for which a rule of this name with k nodes lies inside `nodes`.

    Parameters
    ----------
    name : str
        The name of the rule.
    nodes : array of shape (n_nodes,)
        The nodes on a ray.

    Returns
    -------
    list of int

    Examples
    --------
    >>> nested("midpoint", rule("midpoint", 15).nodes), nested("fejer", rule("fejer", 11).nodes)
    ([1, 3, 5, 15], [1, 2, 3, 5, 11])
    """
    n_nodes = len(nodes)
    if name == "random":
        return [k for k in range(1, n_nodes + 1) if n_nodes % k == 0]
    return [k for k in range(1, n_nodes + 1) if _places(_table(name, nodes, k), nodes) is not None]


def thinned(name: str, nodes: Array, weights: Array, fewer: int) -> tuple[NDArray[np.bool_], Array]:
    """Which nodes on each ray make a rule of the same name with `fewer` nodes, and the weights of that rule.

    Parameters
    ----------
    name : str
        The name of the rule. Of random nodes one in each group of neighbouring cells is drawn.
    nodes, weights : array of shape (n_rays, n_nodes)
        The nodes on each ray and their weights.
    fewer : int
        The number of nodes to keep.

    Returns
    -------
    chosen : array of bool, shape (n_rays, n_nodes)
    weights : array of shape (n_rays, fewer)

    Examples
    --------
    >>> nine = rule("midpoint", 9)
    >>> thinned("midpoint", nine.nodes[None], nine.weights[None], 3)[0].astype(int).tolist()
    [[0, 1, 0, 0, 1, 0, 0, 1, 0]]
    """
    n_rays, n_nodes = nodes.shape
    fixed = name != "random"
    if fixed and not np.allclose(nodes, nodes[:1], rtol=0, atol=_SAME):
        raise bad("n_nodes", "with_nodes", "left out: the rays have different nodes", repr(fewer))
    inside = nested(name, nodes[0])
    if fewer not in inside:
        allowed = f"one of {inside}, whose {name} nodes are among the {n_nodes} on each ray"
        raise bad("n_nodes", "with_nodes", allowed, repr(fewer), "quadrature='fejer' with n_nodes=11 or 15 nests well.")
    chosen = np.zeros((n_rays, n_nodes), dtype=bool)
    if fixed:
        table = _table(name, nodes[0], fewer)
        chosen[:, _places(table, nodes[0])] = True
        return chosen, np.broadcast_to(table.weights, (n_rays, fewer))
    ratio = n_nodes // fewer
    place = np.random.default_rng(0).integers(ratio, size=(n_rays, fewer))
    np.put_along_axis(chosen, place + ratio * np.arange(fewer), True, axis=1)
    return chosen, ratio * weights[chosen].reshape(n_rays, fewer)


def _table(name: str, nodes: Array, n_nodes: int) -> Rule:
    """The rule of this name; Gauss-Legendre on each half if that is what `nodes` are."""
    whole: NodeRule = rule(name, len(nodes))
    assert isinstance(whole, Rule)
    if np.allclose(whole.nodes, nodes, rtol=0, atol=_SAME):
        made = rule(name, n_nodes)
        assert isinstance(made, Rule)
        return made
    return in_halves(n_nodes)


def _places(table: Rule, nodes: Array) -> NDArray[np.int64] | None:
    """Where the nodes of a rule are among these nodes; None if one of them is missing."""
    place = np.abs(nodes[:, None] - table.nodes).argmin(0)
    return place if np.abs(nodes[place] - table.nodes).max() <= _SAME else None
