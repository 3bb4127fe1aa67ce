"""|mean Y - phi_i| <= sqrt(2 V ln(4/d) / m) + 7 R ln(4/d) / (3 (m - 1)),  Y = ray_i 1[i in T] / q(i in T), d = delta/n.

This is Maurer and Pontil's empirical Bernstein bound for m independent draws from the law q. It holds for every sample
size and on both sides, with a union bound over the features. V is the sample variance. |Y| <= bound_i / (q(i in T)
floor), so the range R of Y is twice that.
"""

from __future__ import annotations

import numpy as np

from gralis.arrays import Array
from gralis.certificates.bounds import bernstein_bound, empirical_bernstein_bound
from gralis.certificates.calibration import Calibration
from gralis.certificates.certificate import Certificate, Checksum, Kind
from gralis.errors import GralisError, bad
from gralis.estimators import Design
from gralis.estimators.ray_weights import importance
from gralis.ledger import Ledger


def certificate(
    ledger: Ledger,
    design: Design,
    quadrature: Array,
    difference: float,
    delta: float,
    slope: Array,
    calibrated: bool,
) -> Certificate:
    """The bound for a ledger of independent draws. `slope` bounds |(x_i - x'_i) dF/dx_i| over the box."""
    m, n = ledger.n_rays, ledger.n_features
    per_draw = importance(ledger, design.laws, design.baseline_weights) * (
        m / ledger.n_replicates
    )  # 1 / q(i in T) on members
    inclusion = np.min([law.inclusion for law in design.laws], axis=0)
    if (per_draw * inclusion > 1 + 1e-9).any():
        raise GralisError(
            "certificate(method='bernstein') needs rays drawn from this very kernel, and this ledger's were drawn from "
            "another; explain with plan='independent' and this kernel."
        )
    draws = per_draw * ledger.rays
    reach = slope / inclusion
    beyond = np.abs(draws).max(0) > reach * (1 + 1e-6)
    if beyond.any():
        i = int(np.argmax(beyond))
        seen = float(np.abs(ledger.gradient[ledger.masks[ledger.ray, i], i]).max())
        allowed = "a bound on |(x_i - x'_i) dF/dx_i| over the whole box"
        raise bad("bound", "certificate", allowed, f"{slope[i]:g} for feature {i}, where {seen:g} was seen")
    variance = draws.var(0, ddof=1)
    half = empirical_bernstein_bound(variance, reach, m, delta / n)
    spread = empirical_bernstein_bound(variance, np.zeros(n), m, delta / n)
    return Certificate(
        "bernstein",
        "calibrated" if calibrated else "guaranteed",
        delta,
        half,
        quadrature,
        float((half + np.nan_to_num(quadrature)).sum()),
        difference,
        {"B": slope, "q": inclusion, "m": m, "floor": 1.0, "variance_part": spread, "range_part": half - spread},
        f"the empirical Bernstein bound on {m} independent rays, with B "
        + ("read off the gradients seen" if calibrated else "as supplied"),
        Checksum.of(ledger),
    )


def beforehand(
    slope: Array,
    inclusion: Array,
    quadrature: Array,
    m: int,
    k: int,
    delta: float,
    kind: Kind,
    difference: float,
) -> Certificate:
    """The certificate of m rays that are not drawn yet: Bernstein's inequality with the largest possible variance."""
    reach = slope / inclusion
    variance = slope**2 / inclusion
    half = bernstein_bound(variance, reach, m, delta / len(slope))
    return Certificate(
        "bernstein",
        kind,
        delta,
        half,
        quadrature,
        float((half + np.nan_to_num(quadrature)).sum()),
        difference,
        {"B": slope, "q": inclusion, "variance": variance, "reach": reach, "m": m, "k": k},
        f"Bernstein's inequality for m = {m} independent rays whose variance is at most B^2 / q",
    )


def slopes(bound: object, n_features: int, name: str = "bound", owner: str = "certificate") -> tuple[Array, bool]:
    """The bound for every feature, and whether it comes from a calibration."""
    if isinstance(bound, Calibration):
        if len(bound.slope) != n_features:
            raise bad(name, owner, f"a Calibration of {n_features} features", f"one of {len(bound.slope)}")
        return bound.slope, True
    try:
        row = np.broadcast_to(np.asarray(bound, dtype=np.float64), (n_features,))
    except (TypeError, ValueError):
        row = np.array([np.nan])
    if not np.isfinite(row).all() or (row < 0).any():
        raise bad(name, owner, f"a number >= 0, ({n_features},) of them, or a Calibration", repr(bound))
    return np.array(row), False
