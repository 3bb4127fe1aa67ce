"""The game v(T) = F(x_T) - F(x') of a tree ensemble: indices of single features and of pairs are finite sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.explainers.indices import SII, Index, stii
from gralis.explainers.transform import Coalition
from gralis.ledger import TreeLedger

__all__ = ["TreeValues"]


@dataclass(frozen=True, eq=False)
class TreeValues:
    """What explainers ask of coalition values, answered by the trees.

    Attributes
    ----------
    ledger : TreeLedger
        The trees, the input and the baselines.
    """

    ledger: TreeLedger

    complete: ClassVar[bool] = True
    note: ClassVar[str] = ""

    @property
    def n_features(self) -> int:
        return self.ledger.n_features

    def rows(self, owner: str) -> NoReturn:
        """Raise an error, because the game is not given by rows."""
        raise GralisError(
            f"{owner} fits the values of sampled coalitions, and on trees none was sampled; use shapley(), which is "
            f"exact, or explain with plan='values' to sample coalitions."
        )

    def index(self, index: Index, sets: Sequence[Coalition]) -> Array:
        """The index of single features and of pairs."""
        largest = max(map(len, sets), default=1)
        if largest > 2:
            raise GralisError(
                f"On trees the indices of single features and of pairs are finite sums, and order={largest} is not "
                f"available; use order=2, or explain with plan='values'."
            )
        singles = self.ledger.shapley() if index is SII else self.ledger.singles(index.weight)
        pairs = self.ledger.pairs(index.weight) if largest == 2 else np.zeros((0, 0))
        return np.array([singles[one[0]] if len(one) == 1 else pairs[one] for one in sets])

    def moebius(self, sets: Sequence[Coalition]) -> Array:
        """The Moebius coefficients, which are the terms of the Shapley-Taylor index below its order."""
        return self.index(stii(3), sets)

    def faith(self, order: int, sets: Sequence[Coalition]) -> NoReturn:
        """Raise an error: the best fit is not a sum over leaves."""
        raise GralisError("FSII is not available on trees; use index='SII', 'k-SII', 'STII' or 'BII'.")
