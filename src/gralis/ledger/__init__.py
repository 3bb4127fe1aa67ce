"""Evaluated rays: kept row by row (`Ledger`), or added up where there are too many features (`FoldedLedger`)."""

from gralis.ledger.folded import N_GROUPS, RAYS_PER_BLOCK, FoldedLedger
from gralis.ledger.ledger import Ledger

__all__ = ["N_GROUPS", "RAYS_PER_BLOCK", "FoldedLedger", "Ledger"]
