"""How many rays stand behind each value: few, where rays that were drawn for one law are weighted for another."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.estimators import effective_rays, importance, unsampled
from gralis.laws import Law
from gralis.ledger import FoldedLedger

if TYPE_CHECKING:
    from gralis.results.explanation import Explanation

_FEW_RAYS = 6.0
_LITTLE = 0.2  # of the rays that serve a feature
_NEARLY_ALL = 0.05  # what is left of the law beside the census is too little to matter


def laws_of(e: Explanation) -> list[Law]:
    """The law q of its kernel, for every baseline."""
    return [e.kernel.bind(row) for row in e.squared_distance]


def support(e: Explanation, laws: Sequence[Law] | None = None) -> Array:
    """(sum w)^2 / sum w^2 of the weights each feature's rays have under these laws (its own), (n_features,)."""
    ledger = e.ledger
    if isinstance(ledger, FoldedLedger):
        raise GralisError("A folded ledger has no rays left to count; see cost.n_rays for how many were evaluated.")
    if e.plan["estimator"] == "ratio":
        own = ledger.owner[:, None] == np.arange(e.n_features)
        log = [e.kernel.log_weight(ledger.masks & ~own, row) for row in e.squared_distance]
        return effective_rays(own * np.exp(np.choose(ledger.baseline, log))[:, None])
    weights = importance(ledger, laws_of(e) if laws is None else laws, e.baseline_weights)
    return effective_rays(weights[ledger.replicate >= 0])


def warn_if_thin(e: Explanation) -> None:
    """One sentence where a re-weighted value rests on a handful of rays."""
    ledger = e.ledger
    if isinstance(ledger, FoldedLedger) or e.estimate.exact or e.plan["estimator"] in ("endpoint", "shapley"):
        return
    effective = support(e)
    if e.plan["estimator"] == "adjusted":  # what the census holds needs no rays
        known = unsampled(ledger, laws_of(e), e.baseline_weights)
        effective = np.where(known > 1 - _NEARLY_ALL, np.inf, effective)
    own = ledger.owner[:, None] == np.arange(e.n_features)
    serving = np.where(own.any(), own, ledger.masks)[ledger.replicate >= 0].sum(0)
    poor = np.where(effective < _LITTLE * serving, effective, np.inf)  # few for another reason: no fault of the law
    if poor.min() < _FEW_RAYS:
        i = int(poor.argmin())
        warnings.warn(
            f"The rays of this ledger cover {e.kernel} badly: {e.names[i]} rests on {effective[i]:.2g} "
            f"effective rays, so its value and its error are unreliable; explain with that kernel instead.",
            UserWarning,
            stacklevel=3,
        )
