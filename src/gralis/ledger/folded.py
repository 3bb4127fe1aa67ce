"""The folded ledger: for very many features, rows are added up per kernel and group instead of being kept.

`estimators.folded` turns the sums into values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from gralis.arrays import Array
from gralis.kernels import Kernel
from gralis.laws import Law
from gralis.rays.request import RayRequest

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

    def block(self, request: RayRequest, laws: Sequence[Sequence[Law]], baseline_weights: Array) -> Block:
        """Open the sums for one block of rays; laws[k][b] belongs to kernel k and baseline b."""
        importance = np.zeros((len(self.kernels), *request.masks.shape))
        for k, of_kernel in enumerate(laws):
            for number, law in enumerate(of_kernel):
                rows = request.baseline == number
                log = law.log_conditional(request.masks[rows]) - request.log_rate[rows, None]
                importance[k, rows] = baseline_weights[number] * np.exp(log)
        return Block(self, request, importance)


@dataclass(eq=False)
class Block:
    """One block being evaluated: batches of gradients come in, nothing but the sum stays."""

    ledger: FoldedLedger
    request: RayRequest
    importance: Array  # (n_kernels, n_rays, n_features), zero outside T

    def __post_init__(self) -> None:
        self._total = np.zeros((len(self.importance), self.ledger.n_features))
        self._ray = np.repeat(np.arange(self.request.n_rays), self.request.nodes.shape[1])

    def take(self, part: slice, rows: Array) -> None:
        """Add the gradients of the points in this slice."""
        weights = np.asarray(self.request.weights).ravel()[part]
        for ray, weight, row in zip(self._ray[part], weights, rows, strict=True):
            self._total += self.importance[:, ray] * (weight * row)

    def close(self) -> None:
        """The block is complete: only now does it count."""
        group = int(self.request.replicate[0]) % N_GROUPS
        self.ledger.rays[:, group] += self._total
        self.ledger.weights[:, group] += self.importance.sum(1)
        self.ledger.blocks[group] += 1
