"""Who takes which part of a checksum: share(T) = C_TT 1 / (1^T C_TT 1), with C the covariance of the noise of nodes.

The checksum c(T) = sum_i ray_i - v(T) is the sum of the node noise of all members, and v(T) is known. Given c(T), the
noise of member i is share_i(T) c(T) on the average. The shares of the members sum to one, so the rays without their
shares sum to v(T).

C is taken to be the same for all rays up to a factor, so the noise of every ray is divided by its own size before the
mean is taken. The shares of a ray are learnt from all other rays: a share that is learnt from the same nodes would be
biased. (Two features that no other ray contains learn from their own ray.)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks

__all__ = ["ChecksumShares", "checksum_shares"]

_ROUNDS = 30  # the sizes of the rays and of the features depend on each other
_LEAST_VARIANCE = 1e-16  # a share is never known better than to eight digits
_NO_NOISE = 1e-20  # of the largest variance
_CANCELS = 0.1  # of the sum of the variances: if the noise of the members cancels, the shares follow the variances


@dataclass(frozen=True, eq=False)
class ChecksumShares:
    """The shares of the members in the checksums, and how far a share may be off.

    Attributes
    ----------
    shares : array of shape (n_rays, n_features)
        share_i(T), zero outside T. A row sums to one, or is zero if no member has noise.
    variance : array of shape (n_features,)
        The mean square of noise_i - share_i c, relative to that of c.
    """

    shares: Array
    variance: Array


def checksum_shares(masks: Masks, noise: Array, ray: NDArray[np.int64]) -> ChecksumShares:
    """The shares of all rays, from rows that have the mean zero and the covariance of the noise of their ray.

    Parameters
    ----------
    masks : array of shape (n_rays, n_features)
        The coalition of every ray.
    noise : array of shape (n_rows, n_features)
        Rows of noise, zero outside the coalition of their ray. All rays count alike, whatever the number of rows.
    ray : array of shape (n_rows,)
        The ray of every row.

    Returns
    -------
    ChecksumShares

    Examples
    --------
    Two features of which the second has twice the noise of the first, always in the same direction:

    >>> masks = np.ones((2, 2), dtype=bool)
    >>> found = checksum_shares(masks, np.array([[1.0, 2.0], [-2.0, -4.0]]), np.array([0, 1]))
    >>> found.shares.round(3).tolist()
    [[0.333, 0.667], [0.333, 0.667]]
    >>> found.variance.round(3).tolist()
    [0.0, 0.0]
    """
    members = masks.astype(np.float64)
    rows, ray = _levelled(members, *_noisy(noise, ray))
    shares = _shares(members, rows, ray)
    check, inside = rows.sum(1, keepdims=True), members[ray]
    off = ((rows - shares[ray] * check) ** 2).sum(0)
    whole = (inside * check**2).sum(0)
    variance = np.divide(off, whole, out=np.zeros_like(off), where=whole > 0)
    return ChecksumShares(shares, np.maximum(variance, _LEAST_VARIANCE))


def _noisy(noise: Array, ray: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
    """The rows of the rays that have noise. The others do not say in which direction their noise would go."""
    size = np.bincount(ray, (noise**2).sum(1))
    rows = size[ray] > _NO_NOISE * size.max(initial=0.0)
    return noise[rows], ray[rows]


def _levelled(members: Array, noise: Array, ray: NDArray[np.int64]) -> tuple[Array, NDArray[np.int64]]:
    """The rows, divided by the size of the noise of their ray: the mean of noise_i^2 / C_ii over the members."""
    alone, level = np.ones(members.shape[1]), noise
    for _ in range(_ROUNDS):
        size = np.bincount(ray, (noise**2 / alone).sum(1), len(members)) / members.sum(1)
        level = noise / np.sqrt(size)[ray, None]
        variance = (level**2).sum(0) / np.maximum(members[np.unique(ray)].sum(0), 1.0)
        alone = np.where(variance > _NO_NOISE * variance.max(initial=0.0), variance, 1.0)
    return level, ray


def _shares(members: Array, rows: Array, ray: NDArray[np.int64]) -> Array:
    """C_TT 1 / (1^T C_TT 1) of every coalition, with C from the rows of all other rays."""
    has_rows = np.isin(np.arange(len(members)), ray)[:, None]
    rays = members * has_rows
    squares, count = rows.T @ rows, rays.T @ rays
    others = np.divide(1.0, count - 1, out=np.zeros_like(count), where=count > 1)
    everyone = squares / np.maximum(count, 1.0)
    without_own = np.where(others > 0, squares * others, everyone)
    alone = np.diag(everyone)
    noisy = members * (alone > _NO_NOISE * alone.max(initial=0.0))
    own, own_alone = (_sums(part, ray, len(members)) for part in (rows * (rows @ others), rows**2 * np.diag(others)))
    by_covariance = noisy * np.where(has_rows, noisy @ without_own - own, noisy @ everyone)
    by_variance = noisy * np.where(has_rows, np.diag(without_own) - own_alone, alone)
    cancels = by_covariance.sum(1) < _CANCELS * by_variance.sum(1)
    loads = np.where(cancels[:, None], by_variance, by_covariance)
    total = loads.sum(1, keepdims=True)
    return np.asarray(np.divide(loads, total, out=np.zeros_like(loads), where=total > 0))


def _sums(rows: Array, ray: NDArray[np.int64], n_rays: int) -> Array:
    """The sum of the rows of every ray, (n_rays, n_columns)."""
    sums = np.zeros((n_rays, rows.shape[1]))
    np.add.at(sums, ray, rows)
    return sums
