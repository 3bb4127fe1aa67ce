"""phi(F_b) - phi(F_a) = phi(F_b - F_a): both are read from the same rays, so their common error cancels (C2)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from gralis.errors import GralisError
from gralis.ledger import Ledger
from gralis.results.explanation import Explanation
from gralis.results.tables import united

__all__ = ["difference"]


def difference(a: Explanation, b: Explanation) -> Explanation:
    """The explanation of F_b - F_a, with paired errors. Both explanations must come from the same rays."""
    rows, others = (e.ledger.require_rows("A difference of two explanations") for e in (a, b))
    if not (np.array_equal(rows.masks, others.masks) and np.array_equal(rows.node, others.node)):
        raise GralisError(
            "A difference needs two explanations on the same rays, and these were drawn separately; explain both "
            "targets in one call."
        )
    ledger = replace(rows, value=others.value - rows.value, gradient=others.gradient - rows.gradient)
    # Both sides round at the size of their own terms, which the difference does not show. The estimate counts one
    # rounding of the first side by itself.
    both = _rounding(a, rows) + _rounding(b, others) - a.design.rounding
    rounding, noise = (np.where(a.design.moving, part, 0.0) for part in (both, b.design.noise))
    return replace(
        a,
        estimate=a.design.estimate(ledger).with_margin(noise).with_rounding(rounding),
        ledger=ledger,
        f_x=b.f_x - a.f_x,
        f_baselines=b.f_baselines - a.f_baselines,
        reached=None,
        model_doubts=united([a.model_doubts, b.model_doubts]),
        _continue=None,
    )


def _rounding(e: Explanation, rows: Ledger) -> float:
    """A rounding error of F at the size of what cancels in it: the larger of |F| and the largest sum of |ray_i|."""
    size = max(abs(e.f_x), float(np.abs(e.f_baselines).max()))
    cancels = float(np.abs(rows.rays).sum(1).max())
    return e.design.rounding * max(1.0, cancels / size) if size > 0 else e.design.rounding
