"""The folded ledger: for very many features, rows are added up per kernel and group instead of being kept.

A = sum W ray and B = sum W over one block, E B = 1: phi_hat = A - beta (B - 1), beta learnt from the other groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gralis.errors import GralisError
from gralis.estimators.result import Estimate
from gralis.kernels import Kernel
from gralis.laws import Array, Law
from gralis.sheet import Sheet

N_GROUPS = 8
RAYS_PER_BLOCK = 24


@dataclass(eq=False)
class FoldedLedger:
    """Sums per kernel and group, (n_kernels, N_GROUPS, n_features); blocks of rays are dealt to the groups in turn."""

    kernels: tuple[Kernel, ...]
    rays: Array
    weights: Array
    blocks: Array = field(default_factory=lambda: np.zeros(N_GROUPS))

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
        """Blocks that are complete."""
        return int(self.blocks.sum())

    def block(self, sheet: Sheet, laws: Sequence[Sequence[Law]], baseline_weights: Array) -> Block:
        """Open the sums for one block of rays; laws[k][b] belongs to kernel k and baseline b."""
        importance = np.zeros((len(self.kernels), *sheet.masks.shape))
        for k, of_kernel in enumerate(laws):
            for number, law in enumerate(of_kernel):
                rows = sheet.baseline == number
                log = law.log_conditional(sheet.masks[rows]) - sheet.log_rate[rows, None]
                importance[k, rows] = baseline_weights[number] * np.exp(log)
        return Block(self, sheet, importance)

    def estimate(self, kernel: Kernel) -> Estimate:
        """phi of one of the kernels that were named beforehand."""
        if kernel not in self.kernels:
            raise GralisError(
                f"This ledger is folded ({self.n_features} features), so its rows are gone and {kernel} cannot be "
                f"applied to them; name every kernel beforehand with kernel=[...]. It has {list(self.kernels)}."
            )
        k = self.kernels.index(kernel)
        used = np.flatnonzero(self.blocks)
        count = self.blocks[used, None]
        sums, weights = self.rays[k, used], self.weights[k, used]
        others_weight = weights.sum(0) - weights
        beta = np.divide(sums.sum(0) - sums, others_weight, out=np.zeros_like(sums), where=others_weight > 0)
        estimates = sums / count - beta * (weights / count - 1)
        share = count / count.mean()  # groups may differ by one block
        values = (share * estimates).mean(0)
        found = Estimate(values, share * (estimates - values), "folded rays")
        return found.unknown_where(weights.sum(0) == 0)


@dataclass(eq=False)
class Block:
    """One block being evaluated: batches of gradients come in, nothing but the sum stays."""

    ledger: FoldedLedger
    sheet: Sheet
    importance: Array  # (n_kernels, n_rays, n_features), zero outside T

    def __post_init__(self) -> None:
        self._total = np.zeros((len(self.importance), self.ledger.n_features))
        self._ray = np.repeat(np.arange(self.sheet.n_rays), self.sheet.nodes.shape[1])

    def take(self, part: slice, rows: Array) -> None:
        """Add the gradients of the points in this slice."""
        weights = np.asarray(self.sheet.weights).ravel()[part]
        for ray, weight, row in zip(self._ray[part], weights, rows, strict=True):
            self._total += self.importance[:, ray] * (weight * row)

    def close(self) -> None:
        """The block is complete: only now does it count."""
        group = int(self.sheet.replicate[0]) % N_GROUPS
        self.ledger.rays[:, group] += self._total
        self.ledger.weights[:, group] += self.importance.sum(1)
        self.ledger.blocks[group] += 1
