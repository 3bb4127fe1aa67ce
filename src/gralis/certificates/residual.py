"""Why the values do not sum to F(x) - F(x'), for any model:

observed  = v(F) - sum_i phi_i            = path + numerical + kernel, exactly
path      = v(F) - sum_T v(T) / (t C(n, t))               joint-path attenuation, from forwards only
numerical = sum_T v(T) / (t C(n, t)) - sum_i phi_i(uniform)   how far rays and forwards disagree
kernel    = sum_i phi_i(uniform) - sum_i phi_i            what the locality kernel does: same rows, two kernels
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gralis.certificates.simultaneous import single_half_widths
from gralis.estimators import Estimate
from gralis.notebook import InNotebooks


@dataclass(frozen=True)
class Term:
    """One part of the residual.

    Attributes
    ----------
    value : float
        Its value.
    half_width : float
        The half-width of its interval; NaN if there is a single replicate.
    """

    value: float
    half_width: float

    def __str__(self) -> str:
        return f"{self.value:.4g} +- {self.half_width:.2g}"


@dataclass(frozen=True)
class Residual(InNotebooks):
    """observed = path + numerical + kernel; each term has its own interval.

    Attributes
    ----------
    observed : Term
        F(x) - F(x') - sum of phi.
    path : Term
        The part that comes from moving all members of a coalition together.
    numerical : Term
        How far rays and coalition values disagree.
    kernel : Term
        The part that comes from the locality kernel.
    level : float
        The level of each interval by itself.
    """

    observed: Term
    path: Term
    numerical: Term
    kernel: Term
    level: float

    def _frame_columns(self) -> Mapping[str, Any]:
        names = ["observed", "path", "numerical", "kernel"]
        terms = [getattr(self, name) for name in names]
        return {"part": names, "value": [t.value for t in terms], "half_width": [t.half_width for t in terms]}

    def __repr__(self) -> str:
        return (
            f"residual {self.observed} = joint path {self.path}, numerical {self.numerical}, kernel {self.kernel} "
            f"({self.level:.0%} intervals)"
        )


#: The coefficients of each term on the sum of phi, the sum of phi under the uniform kernel, the sum over coalition
#: values, and v(F).
_TERMS = {"observed": (-1, 0, 0, 1), "path": (0, 0, -1, 1), "numerical": (0, -1, 1, 0), "kernel": (-1, 1, 0, 0)}


def split(
    delta: float,
    estimate: Estimate,
    uniform: Estimate,
    total: Estimate,
    level: float,
    price: float = 1.0,
    *,
    same_kernel: bool = False,
) -> Residual:
    """The residual of `estimate`; `uniform` and `total` are the uniform estimate and the sum over coalition values.

    `same_kernel` says that the kernel is uniform, so that it changes nothing.
    """
    everyone = np.ones((1, len(estimate.values)))
    sums = Estimate.beside([estimate.combined(everyone), uniform.combined(everyone), total])
    table = np.array(list(_TERMS.values()), dtype=np.float64)
    combined = sums.combined(table[:, :3])
    half = single_half_widths(combined, 1 - (1 - level) / price)
    values = combined.values + table[:, 3] * delta
    terms = {name: Term(float(v), float(h)) for name, v, h in zip(_TERMS, values, half, strict=True)}
    if same_kernel:
        terms["kernel"] = Term(0.0, 0.0)
    return Residual(**terms, level=level)
