"""Kernels without structure: pi(S) is any function of the coalition, summed over all of them (n <= 16).

q_i(T) = B(t, n - t + 1) pi(T \\ i) / Z_i by enumeration. In general no single law q has all the q_i as its
conditionals; the even mixture of the q_i takes its place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array, Masks
from gralis.laws.law import all_masks, log_shapley, tilted

__all__ = ["MOST_FEATURES", "TableLaw"]

MOST_FEATURES = 16


@dataclass(frozen=True, eq=False)
class TableLaw:
    """The law of any kernel of at most 16 features, by a table of all coalitions.

    Parameters
    ----------
    kernel : callable
        pi as a function of masks, (n_coalitions, n_features) -> (n_coalitions,), with values >= 0.
    n_features : int
        The number of features, n; the table has 2^n - 1 rows.

    Examples
    --------
    >>> TableLaw(lambda masks: np.ones(len(masks)), 2).normaliser.tolist()
    [1.0, 1.0]
    """

    kernel: Callable[[Masks], Array]
    n_features: int

    @cached_property
    def _masks(self) -> Masks:
        return all_masks(self.n_features)

    @cached_property
    def _pair_weight(self) -> Array:
        """w(|T| - 1) pi(T \\ i) for every coalition and member, zero elsewhere: (2^n - 1, n)."""
        pi = np.concatenate([self.kernel(np.zeros((1, self.n_features), dtype=bool)), self.kernel(self._masks)])
        codes = np.arange(1, 2**self.n_features)
        without = pi[codes[:, None] & ~(1 << np.arange(self.n_features))]
        weight = np.exp(log_shapley(self.n_features, self._masks.sum(1)))
        return np.where(self._masks, weight[:, None] * without, 0.0)

    @cached_property
    def normaliser(self) -> Array:
        return np.asarray(self._pair_weight.sum(0))

    @cached_property
    def _conditional(self) -> Array:
        return np.asarray(self._pair_weight / self.normaliser)

    @cached_property
    def _even(self) -> Array:
        """(1/n) sum_i q_i(T), the even mixture over the features, which takes the place of q(T)."""
        return np.asarray(self._conditional.mean(1))

    @property
    def inclusion(self) -> Array:
        return np.asarray(self._even @ self._masks)

    def _index(self, masks: Masks) -> NDArray[np.int64]:
        return np.asarray(masks @ (1 << np.arange(self.n_features)) - 1, dtype=np.int64)

    def log_conditional(self, masks: Masks) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self._conditional[self._index(masks)])

    def log_probability(self, masks: Masks) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(self._even[self._index(masks)])

    def sample(self, rng: np.random.Generator, n_coalitions: int) -> Masks:
        return np.asarray(self._masks[rng.choice(len(self._even), size=n_coalitions, p=self._even)])

    def propose(self, rng: np.random.Generator, n_coalitions: int, least: int = 1) -> tuple[Masks, Array]:
        proposed = tilted(self._even, self._masks.sum(1), least)
        order = np.argsort(self._masks.sum(1), kind="stable")  # one pass through the sizes
        place = (np.arange(n_coalitions) + rng.random(n_coalitions)) / n_coalitions
        edges = np.cumsum(proposed[order])
        chosen = order[np.minimum(np.searchsorted(edges, place * edges[-1]), len(order) - 1)]
        return self._masks[chosen], np.log(proposed[chosen])

    def subset_moments(self, sets: NDArray[np.int64]) -> Array:
        member = np.concatenate([self._masks, np.ones((len(self._masks), 1), dtype=bool)], axis=1)
        return np.array([self._conditional[:, row[0]] @ member[:, row[1:]].all(1) for row in sets])

    def size_moments(self) -> Array:
        relative = self._masks.sum(1) / self.n_features
        return np.stack([relative**k @ self._conditional for k in range(3)])
