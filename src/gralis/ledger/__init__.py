"""Evaluated rays. `Ledger` keeps every row; `FoldedLedger` keeps sums if there are too many features.

`TreeLedger` keeps trees, whose jumps along all rays are known without evaluating any.
"""

from typing import TypeAlias

from gralis.ledger.folded import N_GROUPS, RAYS_PER_BLOCK, FoldedLedger
from gralis.ledger.ledger import Ledger
from gralis.ledger.tree_ledger import TreeLedger

AnyLedger: TypeAlias = Ledger | FoldedLedger | TreeLedger

__all__ = ["N_GROUPS", "RAYS_PER_BLOCK", "AnyLedger", "FoldedLedger", "Ledger", "TreeLedger"]
