"""k(T) ~ sqrt(W(T) |T|): how many random nodes every ray gets, where all coalitions are evaluated.

With one random node in each of k cells, the error of a ray falls like k^(-3/2). It enters phi with the weight
W(T) = max_i q_i(T), and longer rays err more. The sum of (W |T|)^2 / k^3 is least for these k. They depend on the law
alone and not on what the nodes see, so the estimate has no bias.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array

__all__ = ["nodes_by_ray"]

_FEWEST = 4  # three nodes show one difference, and that is too little
_HALVINGS = 60


def nodes_by_ray(weight: Array, sizes: NDArray[np.int64], n_nodes: int) -> NDArray[np.int64]:
    """The number of nodes on every ray: n_nodes on the average, and at least half as many.

    Parameters
    ----------
    weight : array of shape (n_rays,)
        W(T) of every ray.
    sizes : array of int of shape (n_rays,)
        |T| of every ray.
    n_nodes : int
        The mean number of nodes.

    Returns
    -------
    array of int of shape (n_rays,)

    Examples
    --------
    >>> nodes_by_ray(np.array([0.1, 0.1, 0.9]), np.array([2, 2, 2]), 8).tolist()
    [5, 5, 14]
    """
    share, total = np.sqrt(weight * sizes), n_nodes * len(weight)
    if n_nodes <= _FEWEST or not share.any():
        return np.full(len(weight), n_nodes)
    least = max(_FEWEST, n_nodes // 2)
    low, high = 0.0, total / share.max()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if np.maximum(least, middle * share).sum() > total else (middle, high)
    wanted = np.maximum(least, low * share)
    counts = np.floor(wanted).astype(np.int64)
    most_missing = np.argsort(counts - wanted, kind="stable")[: total - int(counts.sum())]
    counts[most_missing] += 1
    return counts
