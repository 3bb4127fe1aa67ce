"""The integral along one ray from random nodes in their order: the trapezoidal rule, less shares of the checksum.

With s_1 < ... < s_k the places of the nodes on the scale of their density and y(s) the slopes of all features there,

    integral of y  =  sum_j y(s_j) (s_(j+1) - s_(j-1)) / 2,     y constant before the first and after the last node.

Neighbours in order say much more about the integral than the mean of all nodes, which does not look at the places. The
error comes from how far each node lies off the line between its neighbours: with b = (s_j - s_(j-1)) / (s_(j+1) -
s_(j-1)), the variance is the sum over j of

    ((s_(j+1) - s_(j-1)) / 2)^2 (y_j - (1 - b) y_(j-1) - b y_(j+1))^2 / (1 + b^2 + (1 - b)^2),

which is right for noise and zero for a straight line. The slopes sum to v at the end of the ray, so the members share
the checksum (`checksum_shares`). The nodes may all have missed where the slope of one feature changes: an event that k
nodes did not show may have a share of about 1 / k, so that much is added to the variance of a share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gralis.arrays import Array
from gralis.estimators.checksum_shares import checksum_shares

__all__ = ["LEAST_NODES", "RayIntegral", "integral_of_nodes"]

LEAST_NODES = 4  # fewer nodes say nothing about the error
_OF_ENDS = np.sqrt(3 / 8)  # of the larger of the two nearest differences
_CLEARLY = 4.0  # how many times the error that neighbours show the checksum must be to mean that the nodes miss a part


@dataclass(frozen=True, eq=False)
class RayIntegral:
    """The integral of the slopes of all features along one ray, and its error.

    Attributes
    ----------
    values : array of shape (n_features,)
        The integral of each slope.
    errors : array of shape (n_rows, n_features)
        Rows whose squares sum to the variance of the values.
    missed : float
        The part of the value at the end of the ray that the nodes miss; zero if the values sum to it.
    """

    values: Array
    errors: Array
    missed: float


def integral_of_nodes(place: Array, slope: Array, value: float) -> RayIntegral:
    """The integral along the ray.

    Parameters
    ----------
    place : array of shape (n_nodes,)
        The nodes on the scale of their density, in any order; at least `LEAST_NODES`.
    slope : array of shape (n_nodes, n_features)
        The slopes per unit of this scale.
    value : float
        F at the end of the ray minus F at its start; NaN if it is not known.

    Returns
    -------
    RayIntegral

    Examples
    --------
    A feature with a constant slope and one whose slope grows; the values sum to 1 + 1/2:

    >>> s = np.array([0.9, 0.1, 0.35, 0.6])
    >>> found = integral_of_nodes(s, np.stack([np.ones(4), s], axis=1), 1.5)
    >>> found.values.round(3).tolist()
    [1.0, 0.5]
    """
    order = np.argsort(place, kind="stable")
    place, slope = place[order], slope[order]
    edges = np.concatenate([[0.0], (place[1:] + place[:-1]) / 2, [1.0]])
    values, noise = np.diff(edges) @ slope, _departures(place, slope)
    check = float(values.sum() - value) if np.isfinite(value) else 0.0
    spread = float(np.sqrt((noise.sum(1) ** 2).sum()))  # of the checksum
    if abs(check) > _CLEARLY * spread:
        return RayIntegral(values, noise, abs(check))
    taken = checksum_shares(np.ones((1, slope.shape[1]), dtype=bool), noise, np.zeros(len(noise), dtype=np.int64))
    shares = taken.shares[0] if np.isfinite(value) else np.zeros(slope.shape[1])
    left = noise - shares * noise.sum(1, keepdims=True)
    # A checksum that is small by chance does not make the shares surer.
    by_shares = np.sqrt(taken.variance + 1 / len(place)) * max(abs(check), spread)
    errors = np.concatenate([left, (slope.any(0) * by_shares)[None]])
    return RayIntegral(values - shares * check, errors, abs(check) * abs(1 - float(shares.sum())))


def _departures(place: Array, slope: Array) -> Array:
    """How far every node lies off the line between its neighbours, and the two ends, (n_nodes, n_features)."""
    before, after = np.diff(place)[:-1, None], np.diff(place)[1:, None]
    b = before / (before + after)
    off = slope[1:-1] - (1 - b) * slope[:-2] - b * slope[2:]
    inner = (before + after) / 2 * off / np.sqrt(1 + b**2 + (1 - b) ** 2)
    steps, columns = np.diff(slope, axis=0), np.arange(slope.shape[1])
    first, last = (_OF_ENDS * near[np.abs(near).argmax(0), columns] for near in (steps[:2], steps[-2:]))
    return np.concatenate([[place[0] * first], inner, [(1 - place[-1]) * last]])
