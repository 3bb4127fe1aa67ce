"""What every law of coalitions answers, exactly and without a model call."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from gralis.arrays import Array, Masks

#: Rays of size t are proposed in proportion to mass / t^TILT: best when rays of all sizes vary alike.
TILT = 0.5


class Law(Protocol):
    """The law q of one kernel. Shapes: masks (n_coalitions, n_features)."""

    @property
    def n_features(self) -> int: ...

    @property
    def normaliser(self) -> Array:
        """Z_i = sum_S w(|S|) pi(S) over the S without i."""
        ...

    @property
    def inclusion(self) -> Array:
        """q(i in T)."""
        ...

    def log_conditional(self, masks: Masks) -> Array:
        """log q_i(T) = log q(T | i in T), shaped like masks; -inf where i is not in T."""
        ...

    def log_probability(self, masks: Masks) -> Array:
        """log q(T)."""
        ...

    def sample(self, rng: np.random.Generator, n_coalitions: int) -> Masks:
        """Independent draws of q."""
        ...

    def propose(self, rng: np.random.Generator, n_coalitions: int, least: int = 1) -> tuple[Masks, Array]:
        """Stratified draws of the proposal r, given |T| >= least (1 or 2), and its log probabilities."""
        ...

    def subset_moments(self, sets: NDArray[np.int64]) -> Array:
        """P(A in T | i in T) for each row (i, *A) of sets; n_features pads a short row."""
        ...

    def size_moments(self) -> Array:
        """E[(|T| / n)^k | i in T] for k = 0, 1, 2; shape (3, n_features)."""
        ...


def log_shapley(n_features: int, sizes: NDArray[np.int64]) -> Array:
    """log B(t, n - t + 1) = log of |S|! (n - |S| - 1)! / n! with |S| = t - 1.

    >>> float(np.exp(log_shapley(3, np.array([1])))[0].round(12))
    0.333333333333
    """
    return np.asarray(betaln(sizes, n_features - sizes + 1.0), dtype=np.float64)


def all_masks(n_features: int) -> Masks:
    """Every non-empty coalition, (2^n - 1, n); row c is the binary form of c + 1, feature 0 the lowest bit.

    >>> all_masks(2).astype(int).tolist()
    [[1, 0], [0, 1], [1, 1]]
    """
    codes = np.arange(1, 2**n_features, dtype=np.int64)
    return np.asarray((codes[:, None] >> np.arange(n_features)) & 1 == 1)


def stratified(rng: np.random.Generator, n: int) -> Array:
    """n uniform numbers, one in each of n equal cells, in random order."""
    return np.asarray((rng.permutation(n) + rng.random(n)) / n)


def spread(rng: np.random.Generator, n: int, n_features: int) -> NDArray[np.int64]:
    """n features in random order, each floor(n / n_features) or one more times."""
    turns = -(-n // n_features)
    return np.concatenate([rng.permutation(n_features) for _ in range(turns)])[:n]


def systematic_counts(rng: np.random.Generator, expected: Array) -> NDArray[np.int64]:
    """Whole numbers with these expectations and a fixed sum: floor or ceiling of each, by one random shift."""
    edges = np.floor(np.concatenate([[0.0], np.cumsum(expected)]) + rng.random())
    return np.diff(edges).astype(np.int64)
