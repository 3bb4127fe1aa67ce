"""What every law of coalitions answers, exactly and without a call of the model."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln

from gralis.arrays import Array, Masks

__all__ = ["Law", "all_masks", "log_shapley"]

#: Rays of size t are proposed in proportion to mass / t^TILT, which is best if rays of all sizes vary equally.
TILT = 0.5


class Law(Protocol):
    """The law q of coalitions under one kernel, for one input and one baseline.

    `masks` is always an array of bool, (n_coalitions, n_features), with one non-empty coalition T per row.
    """

    @property
    def n_features(self) -> int:
        """The number of features."""

    @property
    def normaliser(self) -> Array:
        """Z_i = sum_S w(|S|) pi(S) over the coalitions S without feature i, (n_features,)."""

    @property
    def inclusion(self) -> Array:
        """q(i in T) for every feature i, (n_features,)."""

    def log_conditional(self, masks: Masks) -> Array:
        """log q_i(T) = log q(T | i in T), shaped like masks; -inf where i is not in T."""

    def log_probability(self, masks: Masks) -> Array:
        """log q(T), (n_coalitions,)."""

    def sample(self, rng: np.random.Generator, n_coalitions: int) -> Masks:
        """Independent draws of q."""

    def propose(self, rng: np.random.Generator, n_coalitions: int, least: int = 1) -> tuple[Masks, Array]:
        """Stratified draws of the proposal r, given that |T| >= least (1 or 2), and their log probabilities under r."""

    def subset_moments(self, sets: NDArray[np.int64]) -> Array:
        """P(A in T | i in T) for each row (i, *A) of `sets`; the entry n_features fills up a short row."""

    def size_moments(self) -> Array:
        """E[(|T| / n)^k | i in T] for k = 0, 1, 2; shape (3, n_features)."""


def log_shapley(n_features: int, sizes: NDArray[np.int64]) -> Array:
    """log B(t, n - t + 1) = log of |S|! (n - |S| - 1)! / n! with |S| = t - 1: the logarithm of Shapley's weight.

    Parameters
    ----------
    n_features : int
        The number of features, n.
    sizes : array of int
        The sizes t >= 1 of coalitions.

    Returns
    -------
    array of float, shaped like `sizes`

    Examples
    --------
    >>> float(np.exp(log_shapley(3, np.array([1])))[0].round(12))
    0.333333333333
    """
    return np.asarray(betaln(sizes, n_features - sizes + 1.0), dtype=np.float64)


def all_masks(n_features: int) -> Masks:
    """Every non-empty coalition; row c is the binary form of c + 1, with feature 0 as the lowest bit.

    Parameters
    ----------
    n_features : int
        The number of features, n.

    Returns
    -------
    array of bool, shape (2^n - 1, n)

    Examples
    --------
    >>> all_masks(2).astype(int).tolist()
    [[1, 0], [0, 1], [1, 1]]
    """
    codes = np.arange(1, 2**n_features, dtype=np.int64)
    return np.asarray((codes[:, None] >> np.arange(n_features)) & 1 == 1)


def tilted(mass: Array, sizes: Array | NDArray[np.int64], least: int) -> Array:
    """The probabilities of the proposal: the mass on coalitions of these sizes >= least, divided by size^TILT."""
    wanted = np.where(sizes >= least, mass, 0.0)
    if not wanted.any():  # all the mass lies on smaller sizes, so every draw has weight zero
        wanted = np.where(sizes >= least, 1.0, 0.0)
    proposed = wanted / sizes**TILT
    return np.asarray(proposed / proposed.sum())


def stratified(rng: np.random.Generator, n: int) -> Array:
    """n uniform numbers, one in each of n equal cells, in random order."""
    return np.asarray((rng.permutation(n) + rng.random(n)) / n)


def spread(rng: np.random.Generator, n: int, n_features: int) -> NDArray[np.int64]:
    """n features in random order, each of which occurs floor(n / n_features) times or once more."""
    turns = -(-n // n_features)
    return np.concatenate([rng.permutation(n_features) for _ in range(turns)])[:n]


def systematic_counts(rng: np.random.Generator, expected: Array) -> NDArray[np.int64]:
    """Whole numbers with these expectations and a fixed sum: each is rounded up or down by one common random shift."""
    edges = np.floor(np.concatenate([[0.0], np.cumsum(expected)]) + rng.random())
    return np.diff(edges).astype(np.int64)
