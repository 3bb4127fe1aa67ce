"""Evaluated rays. `Ledger` keeps every row; `FoldedLedger` keeps sums if there are too many features."""

from typing import TypeAlias

from gralis.ledger.folded import N_GROUPS, RAYS_PER_BLOCK, FoldedLedger
from gralis.ledger.ledger import Ledger

AnyLedger: TypeAlias = Ledger | FoldedLedger

__all__ = ["N_GROUPS", "RAYS_PER_BLOCK", "AnyLedger", "FoldedLedger", "Ledger"]
