"""phi_i = (1 / Z_i) sum_S w(|S|) pi(S) (v(S u i) - v(S)): the endpoint form, from coalition values alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gralis.arrays import Array
from gralis.estimators.estimate import Estimate
from gralis.estimators.plain import per_replicate
from gralis.laws import Law
from gralis.ledger import Ledger


def estimate(ledger: Ledger, laws: Sequence[Law], baseline_weights: Array) -> Estimate:
    """Exact on all coalitions; on permutations, the mean over them of pi(S) (v(S u i) - v(S)) / Z_i."""
    found = per_replicate(ledger, draws(ledger, laws, baseline_weights))
    return Estimate.mean(found, "endpoint differences", bool((ledger.owner < 0).all()))


def draws(ledger: Ledger, laws: Sequence[Law], baseline_weights: Array) -> Array:
    """What every row adds to its replicate, (n_rays, n_features)."""
    difference, log_draws = differences(ledger, len(laws))
    weights = np.zeros(ledger.masks.shape)
    for number, (law, share) in enumerate(zip(laws, baseline_weights, strict=True)):
        rows = ledger.baseline == number
        weights[rows] = share * np.exp(law.log_conditional(ledger.masks[rows]) - log_draws[rows, None])
    return np.asarray(weights * difference)


def differences(ledger: Ledger, n_baselines: int) -> tuple[Array, Array]:
    """v(T) - v(T \\ i) of every row and member, and the log of how often (T, i) is expected in a replicate.

    On permutations only the owner's column is there, and T is divided by the |T| possible owners.
    """
    exact = bool((ledger.owner < 0).all())
    found = np.zeros(ledger.masks.shape)
    for number in range(n_baselines):
        rows = np.flatnonzero(ledger.baseline == number)
        found[rows] = _all_pairs(ledger.value[rows], ledger.n_features) if exact else _along_orders(ledger, rows)
    return found, np.asarray(ledger.log_rate - (0.0 if exact else np.log(ledger.sizes)))


def _all_pairs(value: Array, n_features: int) -> Array:
    """v(T) - v(T \\ i) for every coalition in the order of `all_masks`, zero where i is not in T."""
    table = np.concatenate([[0.0], value])
    codes = np.arange(1, 2**n_features)[:, None]
    bits = 1 << np.arange(n_features)
    return np.where(codes & bits, table[codes] - table[codes & ~bits], 0.0)


def _along_orders(ledger: Ledger, rows: np.ndarray) -> Array:
    """v(T) - v(T before its owner joined), in the owner's column: rows lie in order along each permutation."""
    value = ledger.value[rows]
    before = np.where(ledger.sizes[rows] == 1, 0.0, np.concatenate([[0.0], value[:-1]]))
    differences = np.zeros((len(rows), ledger.n_features))
    differences[np.arange(len(rows)), ledger.owner[rows]] = value - before
    return differences
