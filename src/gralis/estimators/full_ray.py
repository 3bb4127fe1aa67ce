"""The ray of all features: v(F) = F(x) - F(x') needs no forward, so this ray has a checksum without coalition values.

With coalition_values=False it is the only checksum that is known. What the nodes miss of F on this ray they may miss on
every other ray too, so its checksum stands for theirs.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.ledger import Ledger

__all__ = ["checksums_of_all", "only_full_is_known"]


def only_full_is_known(ledger: Ledger) -> bool:
    """Whether v(T) is known for the coalition of all features and for no other.

    Parameters
    ----------
    ledger : Ledger
        The evaluated rays.

    Returns
    -------
    bool
    """
    known = np.isfinite(ledger.value)
    return bool(known.any() and not known.all() and ledger.masks[known].all())


def checksums_of_all(ledger: Ledger, number: int) -> Array:
    """c(F) of every sampled row of the coalition of all features with the baseline `number`, (n_rows,).

    Parameters
    ----------
    ledger : Ledger
        The evaluated rays.
    number : int
        The number of the baseline.

    Returns
    -------
    array of shape (n_rows,)
    """
    rows: NDArray[np.bool_] = ledger.masks.all(1) & (ledger.baseline == number) & (ledger.replicate >= 0)
    return np.asarray(ledger.checksum[rows & np.isfinite(ledger.value) & (ledger.nodes_per_ray > 0)])
