"""Why the values do not sum to F(x) - F(x'), for any model:

observed  = v(F) - sum_i phi_i            = path + numerical + kernel, exactly
path      = v(F) - sum_T v(T) / (t C(n, t))               joint-path attenuation, from forwards only
numerical = sum_T v(T) / (t C(n, t)) - sum_i phi_i(uniform)   how far rays and forwards disagree
kernel    = sum_i phi_i(uniform) - sum_i phi_i            what the locality kernel does: same rows, two kernels
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from gralis.estimators import Estimate
from gralis.estimators.result import Total
from gralis.laws import Array


@dataclass(frozen=True)
class Term:
    """One part of the residual and the half-width of its interval; NaN where a single replicate cannot tell."""

    value: float
    half_width: float

    def __str__(self) -> str:
        return f"{self.value:.4g} +- {self.half_width:.2g}"


@dataclass(frozen=True)
class Residual:
    """observed = path + numerical + kernel; each term has its own interval at `level`."""

    observed: Term
    path: Term
    numerical: Term
    kernel: Term
    level: float

    def __repr__(self) -> str:
        return (
            f"residual {self.observed} = joint path {self.path}, numerical {self.numerical}, kernel {self.kernel} "
            f"({self.level:.0%} intervals)"
        )


def split(delta: float, found: Estimate, uniform: Estimate, total: Total, level: float) -> Residual:
    """The residual of `found`, given the uniform-kernel estimate and the sum of values from the same replicates."""
    phi, flat = _summed(found), _summed(uniform)
    parts = {
        "observed": (delta - phi.value, -phi.departures),
        "path": (delta - total.value, -total.departures),
        "numerical": (total.value - flat.value, total.departures - flat.departures),
        "kernel": (flat.value - phi.value, flat.departures - phi.departures),
    }
    terms = {name: _term(value, rows, found.exact, level) for name, (value, rows) in parts.items()}
    return Residual(**terms, level=level)


def _summed(estimate: Estimate) -> Total:
    return Total(float(estimate.values.sum()), estimate.departures.sum(1))


def _term(value: float, departures: Array, exact: bool, level: float) -> Term:
    n = len(departures)
    if exact:
        return Term(value, 0.0)
    if n < 2:
        return Term(value, float("nan"))
    stderr = float(np.sqrt((departures**2).sum() / (n * (n - 1))))
    return Term(value, float(student.ppf((1 + level) / 2, n - 1)) * stderr)
