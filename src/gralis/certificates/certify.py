"""Which certificate an explanation can have, and what it would need for another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gralis.arrays import Array
from gralis.certificates import bernstein, paper, replicates
from gralis.certificates.calibration import of_ledger
from gralis.certificates.certificate import Certificate
from gralis.certificates.paper import Smoothness
from gralis.checks import probability
from gralis.errors import GralisError, bad
from gralis.ledger import Ledger

if TYPE_CHECKING:
    from gralis.results.explanation import Explanation

METHODS = ("replicates", "bernstein", "paper")


def certify(e: Explanation, delta: float, method: str, bound: object, smoothness: Smoothness | None) -> Certificate:
    """The certificate of this explanation by one of METHODS."""
    delta = probability(delta, "delta", "certificate")
    if method == "replicates":
        if bound is not None:
            raise bad("bound", "certificate(method='replicates')", "None, which needs no bound", repr(bound))
        return replicates.certificate(e.estimate, e.ledger, _quadrature(e), abs(e.delta), delta, e.price)
    if method == "bernstein":
        ledger = _rows(e, method, "independent", "plain")
        slope, calibrated = bernstein.slopes(of_ledger(ledger) if bound is None else bound, e.n_features)
        rows = (ledger, e.kernel, e.squared_distance, e.baseline_weights)
        return bernstein.certificate(*rows, _quadrature(e), abs(e.delta), delta / e.price, slope, calibrated)
    if method == "paper":
        ledger = _rows(e, method, "permutation", "ratio")
        if len(e.baseline_weights) > 1:
            raise GralisError(
                "certificate(method='paper') is printed for one baseline; explain against each of them on its own."
            )
        return paper.certificate(
            ledger,
            e.kernel,
            e.squared_distance[0],
            e.endpoints.absolute_distance(e.features)[0],
            str(e.plan["quadrature"]),
            abs(e.delta),
            delta / e.price,
            None if bound is None else bernstein.slopes(bound, e.n_features),
            of_ledger(ledger),
            smoothness or Smoothness(),
        )
    raise bad("method", "certificate", f"one of {', '.join(map(repr, METHODS))}", repr(method))


def _rows(e: Explanation, method: str, plan: str, estimator: str) -> Ledger:
    if e.plan["estimator"] != estimator or not isinstance(e.ledger, Ledger):
        folded = "" if isinstance(e.ledger, Ledger) else ", folded"
        raise GralisError(
            f"certificate(method='{method}') needs the rows of plan='{plan}', and this ledger is of "
            f"plan='{e.plan['name']}'{folded}; explain again with plan='{plan}', or use method='replicates'."
        )
    return e.ledger


def _quadrature(e: Explanation) -> Array:
    rule = e.plan.get("quadrature")
    return replicates.quadrature_error(e.ledger, rule, e.kernel, e.squared_distance, e.baseline_weights)
