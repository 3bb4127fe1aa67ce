"""Kernels of the size alone, pi(S) = g(|S|): all coalitions of one size have the same weight.

q_i(T) = g(t - 1) / (C(n - 1, t - 1) sum_s g(s)),   Z_i = (1/n) sum_s g(s),   the uniform kernel is g = 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from gralis.arrays import Array, Masks
from gralis.laws.law import systematic_counts, tilted

__all__ = ["SizeLaw"]


@dataclass(frozen=True, eq=False)
class SizeLaw:
    """The law of a size kernel, pi(S) = g(|S|).

    Parameters
    ----------
    weights : array of shape (n_features,)
        g(0), ..., g(n - 1) >= 0: the weights of predecessor sets by their size.

    Examples
    --------
    >>> SizeLaw(np.array([1.0, 0.5])).normaliser.tolist()
    [0.75, 0.75]
    """

    weights: Array

    @property
    def n_features(self) -> int:
        return len(self.weights)

    @cached_property
    def _sizes(self) -> Array:
        return np.arange(1.0, self.n_features + 1)

    @cached_property
    def _given_member(self) -> Array:
        """P(|T| = t | i in T), t = 1..n: the same for every feature."""
        return np.asarray(self.weights / self.weights.sum())

    @cached_property
    def _size_law(self) -> Array:
        """q(|T| = t): each t-set is shared by t members."""
        shared = self._given_member / self._sizes
        return np.asarray(shared / shared.sum())

    @property
    def normaliser(self) -> Array:
        return np.full(self.n_features, self.weights.mean())

    @property
    def inclusion(self) -> Array:
        return np.full(self.n_features, self._size_law @ self._sizes / self.n_features)

    def _log_within(self, masks: Masks) -> Array:
        """log 1 / C(n, t)."""
        t = masks.sum(1)
        n = self.n_features
        return np.asarray(gammaln(t + 1) + gammaln(n - t + 1) - gammaln(n + 1))

    def log_conditional(self, masks: Masks) -> Array:
        t = masks.sum(1)
        with np.errstate(divide="ignore"):  # a size of weight zero has log -inf
            common = np.log(self._given_member[t - 1]) + np.log(self.n_features / t) + self._log_within(masks)
        return np.where(masks, common[:, None], -np.inf)

    def log_probability(self, masks: Masks) -> Array:
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(self._size_law[masks.sum(1) - 1]) + self._log_within(masks))

    def sample(self, rng: np.random.Generator, n_coalitions: int) -> Masks:
        return _uniform_sets(rng, rng.choice(self.n_features, size=n_coalitions, p=self._size_law) + 1, self.n_features)

    def propose(self, rng: np.random.Generator, n_coalitions: int, least: int = 1) -> tuple[Masks, Array]:
        proposed = tilted(self._given_member, self._sizes, least)
        counts = systematic_counts(rng, n_coalitions * proposed)
        masks = _windows(rng, np.repeat(np.arange(1, self.n_features + 1), counts), self.n_features)
        return masks, np.log(proposed[masks.sum(1) - 1]) + self._log_within(masks)

    def subset_moments(self, sets: NDArray[np.int64]) -> Array:
        n = self.n_features
        order = (sets[:, 1:] < n).sum(1)
        # P(A in T | i in T, |T| = t) = (t-1)(t-2).. / (n-1)(n-2)..; one number per order of A
        by_order, falling = [1.0], np.ones(n)
        for k in range(1, sets.shape[1]):
            falling = falling * np.maximum(self._sizes - k, 0) / max(n - k, 1)
            by_order.append(float(self._given_member @ falling))
        return np.asarray(np.array(by_order)[order])

    def size_moments(self) -> Array:
        relative = self._sizes / self.n_features
        moments = np.array([self._given_member @ relative**k for k in range(3)])
        return np.repeat(moments[:, None], self.n_features, axis=1)


def _uniform_sets(rng: np.random.Generator, sizes: NDArray[np.int64], n_features: int) -> Masks:
    """Independent uniform sets of the given sizes: the members with the smallest random ranks."""
    masks = np.empty((len(sizes), n_features), dtype=bool)
    for row, size in enumerate(sizes):
        masks[row] = rng.permutation(n_features) < size
    return masks


def _windows(rng: np.random.Generator, sizes: NDArray[np.int64], n_features: int) -> Masks:
    """Uniform sets of the given sizes, cut one after the other from random circular orders.

    Rays of one size then cover the features as evenly as possible, and each single set is still uniform.
    """
    masks = np.zeros((len(sizes), n_features), dtype=bool)
    order, start, current = rng.permutation(n_features), 0, 0
    for row, size in enumerate(sizes):
        if size != current or start >= n_features:
            order, start, current = rng.permutation(n_features), 0, size
        masks[row, order[np.arange(start, start + size) % n_features]] = True
        start += size
    return masks
