"""The game v(T) = F(x_T) - F(x') of a tree ensemble.

Indices of single features and of pairs are finite sums over leaves. Whatever needs the coalition values themselves
(larger interactions, FSII, LIME, KernelSHAP) reads all of them from the trees if there are at most 12 features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from gralis.arrays import Array, Masks
from gralis.errors import GralisError
from gralis.explainers.indices import SII, Index, stii
from gralis.explainers.transform import Coalition
from gralis.laws import all_masks
from gralis.ledger import TreeLedger

__all__ = ["MOST_LISTED", "TreeValues"]

MOST_LISTED = 12  # features


@dataclass(frozen=True, eq=False)
class TreeValues:
    """What explainers ask of coalition values, answered by the trees.

    Attributes
    ----------
    ledger : TreeLedger
        The trees, the input and the baselines.
    listed : callable
        Makes coalition values from the coalitions and v of each of them.
    """

    ledger: TreeLedger
    listed: Callable[[Masks, Array], Any]

    complete: ClassVar[bool] = True
    note: ClassVar[str] = ""

    @property
    def n_features(self) -> int:
        return self.ledger.n_features

    def rows(self, owner: str) -> Any:
        """All coalition values, if there are few features. Otherwise an error says that `owner` needs them."""
        n = self.n_features
        if n > MOST_LISTED:
            raise GralisError(
                f"{owner} needs the values of coalitions. Trees list them for at most {MOST_LISTED} features, and here "
                f"are {n}; use shapley() or interactions(order=2), which are exact, or explain with plan='values'."
            )
        return self._all

    @cached_property
    def _all(self) -> Any:
        masks = all_masks(self.n_features)
        return self.listed(masks, self.ledger.values_of(masks))

    def index(self, index: Index, sets: Sequence[Coalition]) -> Array:
        """The index of these coalitions."""
        largest = max(map(len, sets), default=1)
        if largest > 2:
            return np.asarray(self.rows(f"order={largest}").index(index, sets))
        singles = self.ledger.shapley() if index is SII else self.ledger.singles(index.weight)
        pairs = self.ledger.pairs(index.weight) if largest == 2 else np.zeros((0, 0))
        return np.array([singles[one[0]] if len(one) == 1 else pairs[one] for one in sets])

    def moebius(self, sets: Sequence[Coalition]) -> Array:
        """The Moebius coefficients, which are the terms of the Shapley-Taylor index below its order."""
        if max(map(len, sets), default=1) > 2:
            return np.asarray(self.rows("moebius").moebius(sets))
        return self.index(stii(3), sets)

    def faith(self, order: int, sets: Sequence[Coalition]) -> Array:
        """Faith-Shap of this order."""
        return np.asarray(self.rows("FSII").faith(order, sets))
