"""How far off the values of an explanation may be: certificates, ranks, audits and the residual."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.certificates import (
    Audit,
    Certificate,
    Ranks,
    Residual,
    Smoothness,
    WeightMass,
    bernstein,
    paper,
    replicates,
)
from gralis.certificates.audit import attributions
from gralis.certificates.baseline_spread import BaselineSpread, baseline_spread
from gralis.certificates.calibration import Calibration, of_ledger
from gralis.certificates.doubts import witness_doubts
from gralis.certificates.ranks import ranks
from gralis.certificates.residual import split
from gralis.certificates.simultaneous import half_widths
from gralis.certificates.standing_gradients import standing_gradients
from gralis.certificates.weight_mass import weight_mass
from gralis.checks import one_of, positive, probability
from gralis.errors import GralisError, bad
from gralis.kernels import Uniform
from gralis.ledger import Ledger
from gralis.results.evidence import Evidence

__all__ = ["Certified"]

_METHODS = ("replicates", "bernstein", "paper")
_PLAN_OF_BOUND = {"bernstein": "independent", "paper": "permutation"}


class Certified(Evidence):
    """The part of an `Explanation` that says how far off its values may be."""

    @property
    def _exact_numbers(self) -> NDArray[np.bool_]:
        """All if no coalition was drawn; otherwise the features that are at their baseline, whose phi is 0."""
        return self.exact | ~self.design.moving

    def _half_widths(self, level: float) -> Array:
        """Half-widths with 1 - level divided by `price`, because the run may have looked at its errors to stop."""
        return half_widths(self.estimate, 1 - (1 - level) / self.price)

    @cached_property
    def doubts(self) -> tuple[str, ...]:
        """Sentences that say why the intervals may not hold; empty if no check failed. The model is not called."""
        rows = self.ledger.kept_rows
        standing = () if rows is None else standing_gradients(rows, self.delta, self.names)
        try:
            witnesses = witness_doubts(self.ledger, self.design, self.estimate, self.names, self.delta)
        except GralisError as error:  # a kernel that a file could not hold
            witnesses = (f"Some checks of these intervals cannot be repeated. {error}",)
        return self.model_doubts + standing + witnesses

    def certificate(
        self,
        delta: float = 0.05,
        method: str = "replicates",
        bound: object = None,
        smoothness: Smoothness | None = None,
    ) -> Certificate:
        """How far off all values together may be, with probability 1 - delta. It prints as a sentence.

        Parameters
        ----------
        delta : float, default=0.05
            The probability with which the certificate may fail.
        method : {"replicates", "bernstein", "paper"}, default="replicates"
            "replicates" is sharp and asymptotic, and works for every plan. "bernstein" holds for every sample size on
            plan="independent". "paper" is Theorem 3 with its corollaries, for plan="permutation".
        bound : float, array of shape (n_features,) or Calibration, optional
            A bound on |(x_i - x'_i) dF/dx_i| over the box between x' and x. Without it, the largest gradient that was
            seen is used, and the kind of the certificate is "calibrated" instead of "guaranteed".
        smoothness : Smoothness, optional
            Bounds on higher derivatives, for the quadrature error of method="paper".

        Returns
        -------
        Certificate
            Half-widths for every feature, a bound on the sum, and the constants behind them.
        """
        delta = probability(delta, "delta", "certificate")
        one_of(method, _METHODS, "method", "certificate")
        if self.design.estimator.no_certificate is not None:
            raise GralisError(self.design.estimator.no_certificate)
        rule, difference = self.plan.get("quadrature"), abs(self.delta)
        if method == "replicates":
            if bound is not None:
                raise bad("bound", "certificate(method='replicates')", "None, which needs no bound", repr(bound))
            return replicates.certificate(self.estimate, self.ledger, self.design, difference, delta, self.price)
        ledger = self._rows_of_bound(method)
        if method == "bernstein":
            slope, calibrated = bernstein.slopes(self.calibration if bound is None else bound, self.n_features)
            return bernstein.certificate(
                ledger,
                self.design,
                self.design.fixed_node_error(ledger) + self.design.noise,
                difference,
                delta / self.price,
                slope,
                calibrated,
            )
        if self.design.n_baselines > 1:
            raise GralisError(
                "certificate(method='paper') is printed for one baseline; explain against each of them on its own."
            )
        return paper.certificate(
            ledger,
            self.design.kernel,
            self.design.squared_distance[0],
            self.endpoints.absolute_distance(self.features)[0],
            str(rule),
            difference,
            delta / self.price,
            None if bound is None else bernstein.slopes(bound, self.n_features),
            self.calibration,
            Smoothness() if smoothness is None else smoothness,
        )

    def _rows_of_bound(self, method: str) -> Ledger:
        """The rows for which this bound is proved."""
        rows = self.ledger.kept_rows
        if rows is None or self.design.estimator.bound != method:
            plan, folded = _PLAN_OF_BOUND[method], ", folded" if rows is None else ""
            raise GralisError(
                f"certificate(method='{method}') needs the rows of plan='{plan}', and this ledger is of "
                f"plan='{self.plan['name']}'{folded}; explain again with plan='{plan}', or use method='replicates'."
            )
        return rows

    @property
    def calibration(self) -> Calibration:
        """The constants of the bounds as seen in this ledger."""
        return of_ledger(self.ledger)

    def ranks(self, level: float = 0.95, by: Literal["magnitude", "value"] = "magnitude") -> Ranks:
        """Which ranks each feature may have, from simultaneous intervals for all differences phi_i - phi_j.

        Parameters
        ----------
        level : float, default=0.95
            The probability with which all statements hold together.
        by : {"magnitude", "value"}, default="magnitude"
            Whether features are ranked by |phi| or by phi.

        Returns
        -------
        Ranks
            The best and the worst rank that each feature may have.
        """
        return ranks(self.estimate, self.names, probability(level, "level", "ranks"), self.price, by)

    def audit(self, other: object, level: float = 0.95) -> Audit:
        """rho_E = phi - other: another explainer against this one. The model is not called.

        Parameters
        ----------
        other : array, Attribution, or fitted linear model
            The attributions of another explainer for the same features or on the shape of the input, or an affine
            surrogate with `coef_`.
        level : float, default=0.95
            The level of the simultaneous intervals beyond which a disagreement counts.

        Returns
        -------
        Audit
            The differences, which of them exceed the error, and the agreement of the ranks.
        """
        half = self._half_widths(probability(level, "level", "audit"))
        theirs = attributions(other, self.features, self.endpoints)
        return Audit(self.names, self.values, theirs, half, self.delta, level)

    def weight_mass(self) -> WeightMass:
        """w_i(S) = q(S u i | i in T): on which predecessor sets the kernel puts the weight of each feature."""
        return weight_mass(self.design.laws, self.design.baseline_weights, self.names)

    def baseline_spread(self) -> BaselineSpread:
        """How much phi varies with the baseline, and the share of the baselines in the variance of a single draw.

        It needs several baselines.
        """
        rows = self.ledger.require_rows("The spread over baselines")
        return baseline_spread(rows, self.design, self.names)

    def budget_for(self, tolerance: float, level: float = 0.95) -> int:
        """The budget at which every half-width would be about tolerance * |F(x) - F(x')|, by the square-root law.

        Parameters
        ----------
        tolerance : float
            The wanted half-width as a share of |F(x) - F(x')|.
        level : float, default=0.95
            The level of the simultaneous intervals.

        Returns
        -------
        int
            Gradients, or forwards for plans without rays. For plan="values" it is at most what all coalitions take.
        """
        wanted = positive(tolerance, "tolerance", "budget_for") * abs(self.delta)
        points = 0 if self.ledger.kept_rows is None else self.ledger.kept_rows.n_points  # if all features are discrete
        spent = self.cost.n_gradients or points or self.cost.n_forwards
        widest = float(self._half_widths(probability(level, "level", "budget_for")).max())
        if np.isnan(widest) or not self.delta:
            raise GralisError("No budget can be named: the half-widths are unknown, or F(x) = F(x').")
        times = widest / max(wanted, np.finfo(float).tiny)
        needed = int(np.ceil(spent * max(1.0, min(times, 1e100) ** 2)))  # the square of a larger number would overflow
        return int(min(needed, self.design.estimator.most_budget(self.design)))

    @cached_property
    def residual(self) -> Residual:
        """Why the values do not sum to F(x) - F(x'): joint path, numerical error, kernel. The model is not called."""
        ledger, estimator = self.ledger, self.design.estimator
        if not ledger.has_values:
            raise GralisError(
                "The residual can be split only if the value of every evaluated coalition is known; explain with "
                "coalition_values=True and fewer features. The whole residual is delta - values.sum()."
            )
        if not estimator.has_rays:
            name = self.plan["name"]
            raise GralisError(f"plan='{name}' has no rays, so there is no joint path to split the residual by.")
        is_uniform = self.design.kernel == Uniform()
        uniform = self.estimate if is_uniform else self.design.with_kernel(Uniform()).estimate(ledger)
        total = estimator.total_of_values(ledger, self.design)
        return split(self.delta, self.estimate, uniform, total, 0.95, self.price, same_kernel=is_uniform)

    @cached_property
    def effective_rays(self) -> Array:
        """How many equally weighted rays each value is worth; if they are few, its error is not reliable."""
        return self.design.estimator.effective_rays(self.ledger, self.design)
