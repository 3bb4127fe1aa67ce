"""A warning if values rest on few rays, because the rays were drawn for one kernel and weighted for another."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from gralis.estimators import Design
from gralis.ledger import Ledger

__all__ = ["warn_if_thin"]

FEW_RAYS = 6.0
LITTLE = 0.2  # as a share of the rays that inform a feature
NEARLY_ALL = 0.05  # if less than this share of the law needs sampling, few rays do no harm


def warn_if_thin(ledger: Ledger, design: Design, names: Sequence[str]) -> None:
    """Warn in one sentence if a re-weighted value rests on a handful of rays."""
    estimator = design.estimator
    effective = estimator.effective_rays(ledger, design)
    effective = np.where(estimator.known_share(ledger, design) > 1 - NEARLY_ALL, np.inf, effective)
    # If only few rays inform a feature at all, the change of the law is not the cause.
    poor = np.where(effective < LITTLE * estimator.serving(ledger), effective, np.inf)
    if poor.min() < FEW_RAYS:
        i = int(poor.argmin())
        warnings.warn(
            f"The rays of this ledger cover {design.kernel} badly: {names[i]} rests on {effective[i]:.2g} "
            f"effective rays, so its value and its error are unreliable; explain with that kernel instead.",
            UserWarning,
            stacklevel=3,
        )
