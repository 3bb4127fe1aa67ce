"""The folded ledger. For very many features the rows are not kept: they are summed for each kernel and group.

`estimators.folded` turns the sums into values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.kernels import Kernel
from gralis.laws import Law
from gralis.ledger.ledger import Ledger
from gralis.rays.request import RayRequest

N_GROUPS = 8
RAYS_PER_BLOCK = 24


@dataclass(eq=False)
class FoldedLedger:
    """Sums of rays for each kernel and group. Blocks of rays go to the groups in turn.

    Attributes
    ----------
    kernels : tuple of Kernel
        The kernels for which sums are kept.
    rays : array of shape (n_kernels, N_GROUPS, n_features)
        The sums of W_i(T) ray_i(T) over the blocks of each group.
    weights : array of shape (n_kernels, N_GROUPS, n_features)
        The sums of W_i(T) over the blocks of each group.
    blocks : array of shape (N_GROUPS,)
        The number of complete blocks in each group.
    """

    kernels: tuple[Kernel, ...]
    rays: Array
    weights: Array
    blocks: Array = field(default_factory=lambda: np.zeros(N_GROUPS))

    keeps_rows: ClassVar[bool] = False
    has_points: ClassVar[bool] = False
    has_values: ClassVar[bool] = False

    kept_rows: ClassVar[None] = None

    def require_rows(self, purpose: str) -> Ledger:
        """Raise an error, because a folded ledger does not keep its rows."""
        raise GralisError(
            f"{purpose} needs the rows of the ledger, and this ledger is folded: with {self.n_features} features only "
            f"their sums were kept. Group the coordinates into fewer features, or lower the budget."
        )

    def of_one_size(self, size: int) -> None:
        """None: what coalitions of one size give is not kept."""

    @classmethod
    def empty(cls, kernels: Sequence[Kernel], n_features: int) -> FoldedLedger:
        shape = (len(kernels), N_GROUPS, n_features)
        return cls(tuple(kernels), np.zeros(shape), np.zeros(shape))

    def copy(self) -> FoldedLedger:
        return FoldedLedger(self.kernels, self.rays.copy(), self.weights.copy(), self.blocks.copy())

    @property
    def n_features(self) -> int:
        return int(self.rays.shape[2])

    @property
    def n_replicates(self) -> int:
        """The number of complete blocks."""
        return int(self.blocks.sum())

    def block(self, request: RayRequest, laws: Sequence[Sequence[Law]], baseline_weights: Array) -> FoldedBlock:
        """Start the sums of one block of rays; laws[k][b] belongs to kernel k and baseline b."""
        importance = np.zeros((len(self.kernels), *request.masks.shape))
        for k, of_kernel in enumerate(laws):
            for number, law in enumerate(of_kernel):
                rows = request.baseline == number
                log = law.log_conditional(request.masks[rows]) - request.log_rate[rows, None]
                importance[k, rows] = baseline_weights[number] * np.exp(log)
        return FoldedBlock(self, request, importance)


@dataclass(eq=False)
class FoldedBlock:
    """A block of rays that is being evaluated. It adds up the gradients of each batch and keeps only the sum.

    Attributes
    ----------
    ledger : FoldedLedger
        The ledger that receives the sums when the block is complete.
    request : RayRequest
        The rays of the block.
    importance : array of shape (n_kernels, n_rays, n_features)
        W_i(T), zero outside T.
    """

    ledger: FoldedLedger
    request: RayRequest
    importance: Array

    def __post_init__(self) -> None:
        self._total = np.zeros((len(self.importance), self.ledger.n_features))
        self._ray = self.request.ray

    def take(self, part: slice, rows: Array) -> None:
        """Add the gradients of the points in this slice."""
        weights = self.request.by_point("weights")[part]
        for ray, weight, row in zip(self._ray[part], weights, rows, strict=True):
            self._total += self.importance[:, ray] * (weight * row)

    def close(self) -> None:
        """Add the complete block to the ledger. A block that is never closed does not count."""
        group = int(self.request.replicate[0]) % N_GROUPS
        self.ledger.rays[:, group] += self._total
        self.ledger.weights[:, group] += self.importance.sum(1)
        self.ledger.blocks[group] += 1
