"""phi_i = (1 / Z_i) sum_S w(|S|) pi(S) (v(S u i) - v(S)): the endpoint form, from coalition values alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.estimators.design import Design, Estimator
from gralis.estimators.estimate import Estimate
from gralis.estimators.plain import per_replicate
from gralis.ledger import Ledger


class EndpointDifferences(Estimator):
    """Weighted differences of coalition values, over all coalitions or along permutations."""

    name = "endpoint"
    page_formula = "weighted"
    summary = "What a feature adds to the output of coalitions; those near the baseline count more."
    has_rays = False

    def estimates(self, ledgers: Sequence[Ledger], designs: Sequence[Design]) -> tuple[Estimate, ...]:
        return tuple(self._estimate(ledger, design) for ledger, design in zip(ledgers, designs, strict=True))

    def _estimate(self, ledger: Ledger, design: Design) -> Estimate:
        parts = self.contributions(ledger, design)
        return Estimate.mean(per_replicate(ledger, parts), "endpoint differences", self.enumerates(ledger), parts)

    def enumerates(self, ledger: Ledger) -> bool:
        return _enumerated(ledger)

    def contributions(self, ledger: Ledger, design: Design) -> Array:
        difference, log_draws = differences(ledger, design.n_baselines)
        weights = np.zeros(ledger.masks.shape)
        for number, (law, share) in enumerate(zip(design.laws, design.baseline_weights, strict=True)):
            rows = ledger.baseline == number
            weights[rows] = share * np.exp(law.log_conditional(ledger.masks[rows]) - log_draws[rows, None])
        return np.asarray(weights * difference)

    def report_columns(self, ledger: Ledger, design: Design) -> dict[str, NDArray[Any]]:
        rays, log_rate = differences(ledger, design.n_baselines)  # the page sums them as it sums rays
        return {**super().report_columns(ledger, design), "log_rate": log_rate, "rays": rays}


def _enumerated(ledger: Ledger) -> bool:
    """Whether the ledger holds all coalitions and not permutations."""
    return bool((ledger.owner < 0).all())


def differences(ledger: Ledger, n_baselines: int) -> tuple[Array, Array]:
    """v(T) - v(T \\ i) of every row and member, and the log of how often (T, i) is expected in a replicate.

    On permutations only the column of the owner is filled. The rate of T is then divided by |T|, because each of its
    |T| members may be the owner.
    """
    exact = _enumerated(ledger)
    difference = np.zeros(ledger.masks.shape)
    for number in range(n_baselines):
        rows = np.flatnonzero(ledger.baseline == number)
        difference[rows] = _all_pairs(ledger.value[rows], ledger.n_features) if exact else _along_orders(ledger, rows)
    return difference, np.asarray(ledger.log_rate - (0.0 if exact else np.log(ledger.sizes)))


def _all_pairs(value: Array, n_features: int) -> Array:
    """v(T) - v(T \\ i) for every coalition in the order of `all_masks`, zero where i is not in T."""
    table = np.concatenate([[0.0], value])
    codes = np.arange(1, 2**n_features)[:, None]
    bits = 1 << np.arange(n_features)
    return np.where(codes & bits, table[codes] - table[codes & ~bits], 0.0)


def _along_orders(ledger: Ledger, rows: np.ndarray) -> Array:
    """v(T) - v(T without its owner), in the column of the owner. The rows follow the order of each permutation."""
    value = ledger.value[rows]
    before = np.where(ledger.sizes[rows] == 1, 0.0, np.concatenate([[0.0], value[:-1]]))
    differences = np.zeros((len(rows), ledger.n_features))
    differences[np.arange(len(rows)), ledger.owner[rows]] = value - before
    return differences
