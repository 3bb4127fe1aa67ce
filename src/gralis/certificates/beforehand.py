"""The certificate before the run (C4): what m draws with k nodes will promise, and the m and k that an epsilon takes.

The bounds need only B, n, m, k, the kernel and the distances from the baseline. The model is not called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gralis.arrays import Array
from gralis.certificates.bernstein import slopes
from gralis.certificates.bounds import Smoothness
from gralis.certificates.calibration import Calibration
from gralis.certificates.certificate import Certificate
from gralis.certificates.promise import RULES, Promise
from gralis.checks import one_of, positive, probability, whole
from gralis.errors import GralisError, bad
from gralis.kernels import Gaussian, SizeKernel, Uniform, as_kernel

__all__ = ["Beforehand", "before"]

_N_TRIED = 64  # how many k are compared
_MOST = 2**200  # beyond this number of draws the search gives up


@dataclass(frozen=True, eq=False)
class Beforehand:
    """What a run will promise, computed before it. It prints as sentences.

    Attributes
    ----------
    paper : Certificate or None
        Theorem 3, the ratio and the aggregate corollary for Algorithm 1 (plan="permutation"). `half_widths` are the
        ratio bounds, `aggregate` is the aggregate bound, `constants["numerator"]` is Theorem 3, and `constants` has m
        and k.
    bernstein : Certificate or None
        Bernstein's inequality for independent rays (plan="independent").
    promise : Promise
        What both follow from.
    rules : tuple of two str
        The rules for the nodes of the two.
    """

    paper: Certificate | None
    bernstein: Certificate | None
    promise: Promise
    rules: tuple[str, str] = ("midpoint", "random")

    def needed(self, epsilon: float, k: int | None = None) -> Beforehand:
        """The same with the m and k that a wanted epsilon takes.

        Parameters
        ----------
        epsilon : float
            The half-width that no feature may exceed.
        k : int, optional
            The number of nodes on every ray. By default it is chosen so that m k is small, or stays as it is where the
            quadrature error is not known.

        Returns
        -------
        Beforehand
            The certificates with the least m that promises epsilon.
        """
        epsilon = positive(epsilon, "epsilon", "needed")
        k = None if k is None else whole(k, "k", 1, "needed")
        found: list[Certificate | None] = []
        made = (self.promise.paper, self.promise.bernstein)
        for certificate, make, rule in zip((self.paper, self.bernstein), made, self.rules, strict=True):
            if certificate is None:
                found.append(None)
                continue
            unknown = bool(np.isnan(certificate.quadrature).any())
            found.append(_cheapest(make, epsilon, k or (int(certificate.constants["k"]) if unknown else None), rule))
        return Beforehand(found[0], found[1], self.promise, self.rules)

    def __repr__(self) -> str:
        lines = []
        for plan, certificate in (("permutation", self.paper), ("independent", self.bernstein)):
            if certificate is not None:
                lines.append(f"plan='{plan}': {certificate!r}")
        return "\n".join(lines) or "No bound is proved for this run before it is made."


def before(
    B: float | Array | Calibration,
    n: int,
    m: int | None = None,
    k: int | None = None,
    kernel: object = Gaussian(0.75),
    *,
    epsilon: float | None = None,
    delta: float = 0.05,
    quadrature: str | None = None,
    smoothness: Smoothness | None = None,
    squared_distance: Array | None = None,
    absolute_distance: Array | None = None,
) -> Beforehand:
    """|phi_hat_i - phi_i| <= epsilon_i for all features together, before the run: what m draws with k nodes promise.

    Give `m`, or give `epsilon` and get the m and k that it takes.

    Parameters
    ----------
    B : float, array of shape (n,) or Calibration
        A bound on |(x_i - x'_i) dF/dx_i| over the box between x' and x. With a `Calibration`, which estimates it from
        below, the result is "calibrated" and not "guaranteed".
    n : int
        The number of features.
    m : int, optional
        The number of independent draws: permutations for the paper's bounds (an antithetic pair counts once), rays for
        Bernstein's.
    k : int, optional
        The number of nodes on every ray; by default 10, as in the paper, or what `epsilon` takes.
    kernel : Kernel, default=Gaussian(0.75)
        The locality kernel.
    epsilon : float, optional
        The half-width that no feature may exceed. `m` is then the least number of draws that promises it, and `k`,
        unless it is given, is chosen so that m k is small.
    delta : float, default=0.05
        The probability with which any of the features may be outside.
    quadrature : {"midpoint", "riemann", "random"}, optional
        The rule for the nodes; by default those of the plans, midpoints for the paper's bounds and random nodes, which
        have no quadrature error, for Bernstein's.
    smoothness : Smoothness, optional
        Bounds on the derivatives of F. Without them, the error of midpoints is not covered.
    squared_distance : array of shape (n,), optional
        The squared distance of every feature from its baseline. By default all features are equally far, which a
        kernel of the size does not need; for any other kernel the result is then "calibrated".
    absolute_distance : array of shape (n,), optional
        |x_i - x'_i|, summed over the coordinates of a feature, for the quadrature error; by default the square root of
        `squared_distance`, if that is given.

    Returns
    -------
    Beforehand
        One certificate by the paper's bounds and one by Bernstein's.

    Examples
    --------
    >>> from gralis import Uniform
    >>> certificates = before(1.0, n=8, m=400, k=10, kernel=Uniform(), quadrature="random")
    >>> certificates.paper.half_widths.round(3)[0], certificates.bernstein.half_widths.round(3)[0]
    (np.float64(1.789), np.float64(0.306))
    >>> wanted = before(1.0, n=8, kernel=Uniform(), epsilon=0.1, quadrature="random")
    >>> wanted.paper.constants["m"], wanted.bernstein.constants["m"]
    (128000, 3342)
    """
    n = whole(n, "n", 1, "before")
    kernel = as_kernel(kernel)
    slope, calibrated = slopes(B, n, "B", "before")
    equally_far = squared_distance is None
    if equally_far and isinstance(kernel, Gaussian) and kernel.distance == "euclidean":
        raise bad("squared_distance", "before", "given for a kernel with distance='euclidean'", "None")
    squares = np.ones(n) if squared_distance is None else _distances(squared_distance, n, "squared_distance")
    if absolute_distance is not None:
        absolute_distance = _distances(absolute_distance, n, "absolute_distance")
    elif not equally_far:
        absolute_distance = np.sqrt(squares)
    known = not calibrated and not (equally_far and not isinstance(kernel, Uniform | SizeKernel))
    promise = Promise(
        slope,
        known,
        kernel,
        squares[None],
        absolute_distance,
        Smoothness() if smoothness is None else smoothness,
        probability(delta, "delta", "before"),
    )
    if quadrature is not None:
        one_of(quadrature, RULES, "quadrature", "before")
    k = None if k is None else whole(k, "k", 1, "before")
    rules = (quadrature or "midpoint", quadrature or "random")
    if (m is None) == (epsilon is None):
        raise bad("m", "before", "given, or else epsilon (and not both)", repr(m))
    first = 1 if m is None else whole(m, "m", 1, "before")
    now = Beforehand(
        promise.paper(first, k or 10, rules[0]), promise.bernstein(first, k or 10, rules[1]), promise, rules
    )
    if epsilon is None:
        return now
    if k is None and rules[0] != "random" and np.isnan(promise.quadrature(rules[0], 1)).any():
        raise GralisError(
            "The k that epsilon takes depends on the derivatives of F: before needs smoothness= and "
            "absolute_distance=, or k=, or quadrature='random', which has no quadrature error."
        )
    return now.needed(epsilon, k)


def _cheapest(make: Callable[[int, int, str], Certificate], epsilon: float, k: int | None, rule: str) -> Certificate:
    """The certificate with the least m whose half-widths are all <= epsilon, and with a k for which m k is small."""
    if k is not None:
        return make(_least_m(make, epsilon, k, rule), k, rule)
    if rule == "random":
        return make(_least_m(make, epsilon, 1, rule), 1, rule)
    start = least(lambda nodes: bool((make(1, nodes, rule).quadrature < epsilon).all()))
    tried = np.unique(np.linspace(start, 4 * start + 4, _N_TRIED).astype(int)).tolist()
    found = [(_least_m(make, epsilon, nodes, rule), nodes) for nodes in tried]
    m, nodes = min(found, key=lambda pair: pair[0] * pair[1])
    return make(m, nodes, rule)


def _least_m(make: Callable[[int, int, str], Certificate], epsilon: float, k: int, rule: str) -> int:
    quadrature = np.nan_to_num(make(1, k, rule).quadrature)
    if (quadrature >= epsilon).any():
        raise bad("k", "before", f"so large that the quadrature error is below epsilon = {epsilon:g}", str(k))
    return least(lambda m: bool((make(m, k, rule).half_widths <= epsilon).all()))


def least(holds: Callable[[int], bool]) -> int:
    """The least whole number >= 1 for which a condition holds that, once true, stays true.

    >>> least(lambda m: m * m >= 50)
    8
    """
    high = 1
    while not holds(high):
        high *= 2
        if high > _MOST:
            raise GralisError(
                "No number of draws promises this epsilon, because the least kernel weight, or a feature's probability "
                "of being drawn, underflows; use a larger sigma, or distance='relative'."
            )
    low = high // 2  # the condition does not hold there, or low = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _distances(values: object, n: int, name: str) -> Array:
    try:
        row = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        row = np.array([np.nan])
    if row.shape != (n,) or not np.isfinite(row).all() or (row < 0).any():
        raise bad(name, "before", f"({n},) numbers >= 0", repr(values))
    return row
