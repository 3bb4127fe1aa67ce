"""phi(F_b) - phi(F_a) = phi(F_b - F_a): two questions on the same rays, so that what they share cancels (C2)."""

from __future__ import annotations

from dataclasses import replace

from gralis.errors import GralisError
from gralis.estimators import estimate
from gralis.ledger import Ledger
from gralis.results.explanation import Explanation


def difference(a: Explanation, b: Explanation) -> Explanation:
    """The explanation of F_b - F_a, with paired errors; both must come from the same rays."""
    if not isinstance(a.ledger, Ledger) or not isinstance(b.ledger, Ledger):
        raise GralisError("A difference needs the rows of both ledgers, and a folded one keeps none.")
    ledger = replace(a.ledger, value=b.ledger.value - a.ledger.value, gradient=b.ledger.gradient - a.ledger.gradient)
    return replace(
        a,
        estimate=estimate(ledger, a.kernel, a.squared_distance, a.baseline_weights, a.plan["estimator"]),
        ledger=ledger,
        f_x=b.f_x - a.f_x,
        f_baselines=b.f_baselines - a.f_baselines,
        reached=None,
        _continue=None,
    )
