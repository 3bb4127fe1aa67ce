"""Other explainers that an explanation's ledger gives without a model call."""

from __future__ import annotations

import numpy as np

from gralis.checks import one_of
from gralis.estimators import Estimate
from gralis.explainers import from_values, paths
from gralis.explainers.coalition_values import Game, coalition_values_of
from gralis.explainers.indices import BANZHAF, SII, Index
from gralis.explainers.transform import coalitions
from gralis.results.attribution import Attribution, LinearSurrogate
from gralis.results.evidence import Evidence
from gralis.results.interactions import Interactions

__all__ = ["OtherExplainers"]


class OtherExplainers(Evidence):
    """The part of an `Explanation` that reads the same ledger by other methods."""

    def integrated_gradients(self) -> Attribution:
        """Integrated Gradients: the ray of all features."""
        full = self.f_x - self.f_baselines
        return self._attribution(paths.integrated_gradients(self.ledger, full, self.design))

    def singles(self) -> Attribution:
        """v({i}) = F(x_i) - F(x'): every feature by itself."""
        return self._attribution(paths.singles(self.ledger, self.baseline_weights))

    def shapley(self) -> Attribution:
        """Shapley values of the game v(T) = F(x_T) - F(x'). They sum to F(x) - F(x')."""
        if not self.design.estimator.has_kernel:  # the values are Shapley values already
            return self._attribution(self.estimate)
        return self._by_index(SII, "Shapley values")

    def banzhaf(self) -> Attribution:
        """Banzhaf values: the plain mean of v(S u i) - v(S) over all S."""
        return self._by_index(BANZHAF, "Banzhaf values")

    def kernel_shap(self) -> Attribution:
        """Shapley values by weighted least squares on coalition values, constrained to sum to F(x) - F(x')."""
        values = self._coalition_values()
        return self._attribution(from_values.kernel_shap(values), values.note)

    def lime(
        self, ridge: float = 1.0, sigma: float = 0.25, k_features: int | None = None, select: str = "lasso"
    ) -> LinearSurrogate:
        """LIME: a ridge fit of v on 0/1 features, weighted by exp(-D^2 / 2 sigma^2), D = 1 - sqrt(|T| / n).

        Parameters
        ----------
        ridge : float, default=1.0
            The penalty on the squared coefficients.
        sigma : float, default=0.25
            The width of LIME's kernel.
        k_features : int, optional
            Keep this many features and fit again on them. The result is then conditional on the choice.
        select : {"lasso", "largest"}, default="lasso"
            How the features are chosen: along the lasso path, or by the size of their coefficients.

        Returns
        -------
        LinearSurrogate
            The coefficients, the intercept and the weighted R2.
        """
        fit = from_values.lime(self._coalition_values(), ridge, sigma, k_features, select)
        about = (self.names, self.delta, fit.note, self.features, self.form)
        estimate = self._with_known_errors(self.design.allowing(fit.estimate, np.zeros(self.n_features)))
        return LinearSurrogate(estimate, *about, intercept=fit.intercept, r2=fit.r2, support=fit.support)

    def moebius(self, max_order: int = 2) -> Interactions:
        """Moebius coefficients of the game v.

        Parameters
        ----------
        max_order : int, default=2
            The largest size of a coalition.

        Returns
        -------
        Interactions
            One coefficient per coalition, keyed by sorted feature indices.
        """
        sets = from_values.coalitions_up_to(self.n_features, max_order, "max_order", "moebius")
        estimate, note = from_values.moebius_up_to(self._coalition_values(), sets)
        return Interactions(self._rounded(estimate, max_order), sets, "Moebius", max_order, self.names, note)

    def interactions(self, order: int = 2, index: str = "SII") -> Interactions:
        """An interaction index of the game v.

        Parameters
        ----------
        order : int, default=2
            The largest size of a coalition.
        index : {"SII", "STII", "k-SII", "FSII", "BII"}, default="SII"
            Shapley, Shapley-Taylor, k-Shapley, faithful Shapley or Banzhaf interactions.

        Returns
        -------
        Interactions
            One number per coalition, keyed by sorted feature indices.
        """
        one_of(index, from_values.INDICES, "index", "interactions")
        sets = from_values.coalitions_up_to(self.n_features, order, "order", "interactions")
        values = self._coalition_values()
        estimate = from_values.interactions(values, sets, order, index)
        note = f"{from_values.FIT_IS_BIASED} {values.note}" if index == "FSII" and not estimate.exact else values.note
        return Interactions(self._rounded(estimate, order), sets, index, order, self.names, note.strip())

    def _rounded(self, estimate: Estimate, order: int) -> Estimate:
        """The estimate with noise and rounding: a difference of the given order adds up 2^order values."""
        values = np.full(len(estimate.values), 2.0**order)
        known = self._with_known_errors(estimate).with_margin(values * self.design.noise / 2)
        return known.with_rounding(values * self.design.rounding)

    def _by_index(self, index: Index, method: str) -> Attribution:
        values = self._coalition_values()
        estimate = from_values.by_index(values, index, coalitions(self.n_features, 1), method)
        return self._attribution(estimate, values.note)

    def _coalition_values(self) -> Game:
        full = self.f_x - self.f_baselines
        return coalition_values_of(self.ledger, full, self.baseline_weights)

    def _with_known_errors(self, estimate: Estimate) -> Estimate:
        """The estimate, with unknown errors if the rays were not drawn at random and some coalitions are missing."""
        if estimate.exact or self.design.estimator.no_certificate is None:
            return estimate
        return estimate.unknown_where(np.ones(len(estimate.values), dtype=bool))

    def _attribution(self, estimate: Estimate, note: str = "") -> Attribution:
        if estimate.rounding is None:
            estimate = self.design.allowing(estimate, np.zeros_like(estimate.values))
        return Attribution(self._with_known_errors(estimate), self.names, self.delta, note, self.features, self.form)
