"""What the user holds: values with their errors, and the ledger from which everything else is arithmetic."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from gralis.arrays import Array
from gralis.baselines.endpoints import Endpoints
from gralis.certificates import Audit, Certificate, Ranks, Residual, Smoothness, WeightMass
from gralis.certificates.audit import attributions
from gralis.certificates.baseline_spread import BaselineSpread, baseline_spread
from gralis.certificates.calibration import Calibration, of_ledger
from gralis.certificates.certify import certify
from gralis.certificates.effective_rays import laws_of, support, warn_if_thin
from gralis.certificates.ranks import ranks
from gralis.certificates.residual import split
from gralis.certificates.simultaneous import half_widths
from gralis.certificates.weight_mass import weight_mass
from gralis.checks import probability, whole
from gralis.errors import GralisError, bad
from gralis.estimators import Estimate, estimate, folded, total_of_values
from gralis.evaluation.cost import Cost
from gralis.explainers import Attribution, Interactions, Surrogate, from_ledger
from gralis.features import Features
from gralis.features.overlap import overlap
from gralis.kernels import Gaussian, Kernel, Uniform, as_kernel
from gralis.ledger import FoldedLedger, Ledger
from gralis.results.sweep import Sweep
from gralis.views.table import explanation_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Goes on from here with this much more budget; None after loading from a file.
Continuation = Callable[["Explanation", int], "Explanation"]


@dataclass(frozen=True, eq=False)
class Explanation:
    """phi_i of every feature for one prediction, with sampling errors, and the ledger behind them."""

    estimate: Estimate
    kernel: Kernel
    ledger: Ledger | FoldedLedger
    features: Features
    f_x: float
    f_baselines: Array  # F(x') of every baseline
    endpoints: Endpoints
    squared_distance: Array  # (n_baselines, n_features)
    cost: Cost
    plan: Mapping[str, Any]  # name, estimator and every decision of the plan
    provenance: Mapping[str, Any]
    complete: bool = True  # False: interrupted, or out of time, before the plan was done
    reached: bool | None = None  # whether the tolerance was reached; None: none was asked for
    price: float = 1.0  # of a run that looks before it stops: every interval divides 1 - level by it
    leaf_keys: tuple[str, ...] | None = None
    several_leaves: bool = False
    _continue: Continuation | None = None

    @property
    def values(self) -> Array:
        """phi, (n_features,)."""
        return self.estimate.values

    @property
    def stderr(self) -> Array:
        """Sampling error of every value; 0 if every coalition was evaluated."""
        return self.estimate.stderr

    @property
    def method(self) -> str:
        """The estimator that made `values`."""
        return self.estimate.method

    @property
    def names(self) -> Sequence[str]:
        return self.features.names

    @property
    def n_features(self) -> int:
        return self.features.n_features

    @property
    def baseline_weights(self) -> Array:
        return self.endpoints.weights

    @property
    def f_baseline(self) -> float:
        """F(x'), averaged over the baselines."""
        return float(self.baseline_weights @ self.f_baselines)

    @property
    def delta(self) -> float:
        """F(x) - F(x')."""
        return self.f_x - self.f_baseline

    def interval(self, level: float = 0.95) -> Array:
        """Simultaneous intervals, (n_features, 2): all of them cover together with probability `level`."""
        half = self._half_widths(probability(level, "level", "interval"))
        return np.stack([self.values - half, self.values + half], axis=1)

    def _half_widths(self, level: float) -> Array:
        return half_widths(self.estimate, 1 - (1 - level) / self.price)

    def certificate(
        self,
        delta: float = 0.05,
        method: str = "replicates",
        bound: object = None,
        smoothness: Smoothness | None = None,
    ) -> Certificate:
        """How far off all values together may be, with probability 1 - delta; print it for a sentence.

        "replicates" (default) is sharp and asymptotic. "bernstein" holds for any sample size on plan="independent".
        "paper" is Theorem 3 with its corollaries, for plan="permutation"; `smoothness` bounds the derivatives for its
        quadrature error. `bound` is a bound on |(x_i - x'_i) dF/dx_i| over the box, one number or one per feature;
        without it, the largest one seen is used and the kind is "calibrated".
        """
        return certify(self, delta, method, bound, smoothness)

    @property
    def calibration(self) -> Calibration:
        """The constants of the bounds as seen in this ledger."""
        return of_ledger(self.ledger)

    def ranks(self, level: float = 0.95, by: Literal["magnitude", "value"] = "magnitude") -> Ranks:
        """Which ranks each feature may have, from simultaneous intervals for all differences phi_i - phi_j."""
        return ranks(self.estimate, self.names, probability(level, "level", "ranks"), self.price, by)

    def audit(self, other: object, level: float = 0.95) -> Audit:
        """rho_E = phi - other: another explainer's attributions, or an affine surrogate; no model call."""
        half = self._half_widths(probability(level, "level", "audit"))
        theirs = attributions(other, self.features, self.endpoints)
        return Audit(self.names, self.values, theirs, half, self.delta, level)

    def weight_mass(self) -> WeightMass:
        """w_i(S) = q(S u i | i in T): on which predecessor sets the kernel puts each feature's weight."""
        return weight_mass(laws_of(self), self.baseline_weights, self.names)

    def baseline_spread(self) -> BaselineSpread:
        """How far phi moves with the baseline, and the baseline's share of the variance; several baselines only."""
        return baseline_spread(self)

    def budget_for(self, tolerance: float, level: float = 0.95) -> int:
        """Gradients at which every half-width would be about tolerance * |F(x) - F(x')|, by the square-root law.

        Forwards where the plan has no rays; of plan="values" never more than all coalitions take.
        """
        if isinstance(tolerance, bool) or not isinstance(tolerance, int | float | np.floating) or not tolerance > 0:
            raise bad("tolerance", "budget_for", "a number > 0", repr(tolerance))
        spent = self.cost.n_gradients or self.cost.n_forwards
        widest = float(self._half_widths(probability(level, "level", "budget_for")).max())
        if np.isnan(widest) or not self.delta:
            raise GralisError("No budget can be named: the half-widths are unknown, or F(x) = F(x').")
        times = widest / max(tolerance * abs(self.delta), np.finfo(float).tiny)
        needed = int(np.ceil(spent * max(1.0, min(times, 1e100) ** 2)))  # a square beyond it would overflow
        if self.plan["estimator"] != "shapley":
            return needed
        n_baselines, moving = len(self.baseline_weights), int((self.squared_distance > 0).any(0).sum())
        return min(needed, ((1 << moving) - 1) * n_baselines + 1)

    @cached_property
    def residual(self) -> Residual:
        """Why the values do not sum to F(x) - F(x'): joint path, numerical error, kernel; no model call."""
        if not isinstance(self.ledger, Ledger) or not np.isfinite(self.ledger.value).all():
            raise GralisError(
                "The residual can only be split where the value of every coalition is known: explain with "
                "coalition_values=True (and a ledger that is not folded). Its sum is delta - values.sum()."
            )
        if self.plan["estimator"] in ("endpoint", "shapley"):
            name = self.plan["name"]
            raise GralisError(f"plan='{name}' has no rays, so there is no joint path to split the residual by.")
        rows = (self.squared_distance, self.baseline_weights, self.plan["estimator"])
        uniform = self.estimate if self.kernel == Uniform() else estimate(self.ledger, Uniform(), *rows)
        return split(self.delta, self.estimate, uniform, total_of_values(self.ledger, *rows), 0.95, self.price)

    def top(self, k: int = 5) -> list[tuple[str, float, float]]:
        """The k features with the largest |phi|: (name, phi, stderr), largest first."""
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
            raise bad("k", "top", "a whole number >= 1", repr(k))
        order = np.argsort(-np.abs(self.values), kind="stable")[:k]
        return [(self.names[int(i)], float(self.values[i]), float(self.stderr[i])) for i in order]

    def to_input(self) -> Any:
        """phi on the input's own shape, in the form x was given (array, tuple or dict)."""
        leaves = self.features.to_input(self.values)
        if self.leaf_keys is not None:
            return dict(zip(self.leaf_keys, leaves, strict=True))
        return tuple(leaves) if self.several_leaves else leaves[0]

    def on(self, features: Features) -> Attribution:
        """phi on other regions, shared out by area, sums kept: the cells of a layer on segments of the input, say."""
        carried = self.estimate.combined(overlap(self.features, features))
        return Attribution(carried, features.names, self.delta, f"brought from {self.features!r} by area")

    def with_kernel(self, kernel: object) -> Explanation:
        """The explanation under another kernel, from the same ledger: no model call."""
        kernel = as_kernel(kernel)
        if self.plan["estimator"] == "shapley":
            raise GralisError("plan='values' gives Shapley values, which have no kernel; use plan='endpoint' for one.")
        if isinstance(self.ledger, FoldedLedger):
            found = folded.estimate(self.ledger, kernel)
        else:
            found = estimate(self.ledger, kernel, self.squared_distance, self.baseline_weights, self.plan["estimator"])
        reweighted = replace(self, estimate=found, kernel=kernel, _continue=None)
        warn_if_thin(reweighted)
        return reweighted

    def with_nodes(self, n_nodes: int) -> Explanation:
        """The explanation with fewer nodes on each ray, where those nest in the ones that are there: no model call."""
        if isinstance(self.ledger, FoldedLedger) or not self.plan.get("quadrature"):
            raise GralisError("with_nodes needs the nodes on the rays, and this ledger keeps none.")
        ledger = self.ledger.with_nodes(str(self.plan["quadrature"]), whole(n_nodes, "n_nodes", 1))
        found = estimate(ledger, self.kernel, self.squared_distance, self.baseline_weights, self.plan["estimator"])
        plan = {**self.plan, "n_nodes": n_nodes}
        return replace(self, estimate=found, ledger=ledger, plan=plan, _continue=None)

    def sweep(self, sigmas: Sequence[float], distance: str = "relative") -> Sweep:
        """phi for every sigma (math.inf: the uniform kernel), from the same ledger: no model call."""
        try:
            listed = tuple(sigmas)
        except TypeError:
            raise bad("sigmas", "sweep", "a list of numbers > 0", repr(sigmas)) from None
        if not listed:
            raise bad("sigmas", "sweep", "at least one sigma", "none")
        kernels = [Uniform() if sigma == np.inf else Gaussian(sigma, distance) for sigma in listed]  # type: ignore[arg-type]
        return Sweep(tuple(float(s) for s in listed), tuple(self.with_kernel(kernel) for kernel in kernels))

    @cached_property
    def effective_rays(self) -> Array:
        """How many equally weighted rays each value is worth under this kernel; few means a poorly covered kernel."""
        return support(self)

    def integrated_gradients(self) -> Attribution:
        """Integrated Gradients: the ray of all features."""
        return from_ledger.integrated_gradients(self)

    def singles(self) -> Attribution:
        """v({i}) = F(x_i) - F(x'): every feature on its own."""
        return from_ledger.singles(self)

    def shapley(self) -> Attribution:
        """Shapley values of the game v(T) = F(x_T) - F(x')."""
        return from_ledger.shapley(self)

    def banzhaf(self) -> Attribution:
        """Banzhaf values: the mean of v(S u i) - v(S) over all S alike."""
        return from_ledger.banzhaf(self)

    def kernel_shap(self) -> Attribution:
        """Shapley values by weighted least squares on coalition values, constrained to sum to F(x) - F(x')."""
        return from_ledger.kernel_shap(self)

    def lime(
        self, ridge: float = 1.0, sigma: float = 0.25, k_features: int | None = None, select: str = "lasso"
    ) -> Surrogate:
        """LIME: a ridge fit of v on 0/1 features, weighted by exp(-D^2 / 2 sigma^2), D = 1 - sqrt(|T| / n).

        k_features keeps that many features, chosen by the "lasso" path or as the "largest" coefficients, and fits
        again on these; the result is then conditional on them.
        """
        return from_ledger.lime(self, ridge, sigma, k_features, select)

    def moebius(self, max_order: int = 2) -> Interactions:
        """Moebius coefficients of the game v for coalitions of up to max_order features."""
        return from_ledger.moebius_of(self, max_order)

    def interactions(self, order: int = 2, index: str = "SII") -> Interactions:
        """Interaction index "SII", "STII", "k-SII", "FSII" or "BII" for coalitions of up to `order` features."""
        return from_ledger.interactions(self, order, index)

    def extend(self, budget: int) -> Explanation:
        """Go on from the same ledger with `budget` more gradients: more replicates of the same plan.

        Of a plan without rays the budget counts forwards.
        """
        if self._continue is None:
            raise GralisError(
                "This explanation cannot be extended: it was loaded from a file, re-weighted, or is already exact. "
                "Extend the one that explain returned."
            )
        return self._continue(self, whole(budget, "budget", 1))

    def as_it_grew(self, n_steps: int = 6) -> list[Explanation]:
        """The explanations that fewer replicates would have given, up to this one: no model call."""
        ledger, last = self.ledger, self.ledger.n_replicates
        if not isinstance(ledger, Ledger) or self.estimate.exact or last < 3:
            raise GralisError("How the result grew can be told only from a ledger that keeps several replicates.")
        counts = np.unique(np.geomspace(2, last, n_steps).astype(int))
        parts = [ledger.take(ledger.replicate < count) for count in counts]
        rows = (self.kernel, self.squared_distance, self.baseline_weights, self.plan["estimator"])
        return [
            replace(
                self,
                estimate=estimate(part, *rows),
                ledger=part,
                cost=replace(self.cost, n_gradients=part.n_points, n_rays=part.n_rays, n_forwards=part.n_rays),
                _continue=None,
            )
            for part in parts
        ]

    def plot(self, kind: str = "bars", **options: Any) -> Figure:
        """A figure, never shown: bars, heatmap, waterfall, interactions, network, convergence, text (extra `plot`)."""
        from gralis.views.plots import plot

        return plot(self, kind, **options)

    def report(
        self,
        path: str | Path,
        *,
        title: str | None = None,
        image: object = None,
        label: str | None = None,
        beside: Sequence[Explanation] = (),
    ) -> Path:
        """One interactive HTML file that needs no network: what was predicted, why, and how far to trust it.

        `image`: the picture to show, (H, W, 3) or (C, H, W), where x itself is not fit to be seen. `label`: the target
        in words. `beside`: explanations of the same features, with another baseline, say, shown side by side.
        """
        from gralis.report import report

        return report(self, path, title=title, image=image, label=label, beside=beside)

    def token_html(self, level: float = 0.95) -> str:
        """The tokens in their order as an HTML snippet, coloured by phi; intervals at `level` in their titles."""
        from gralis.views.tokens import token_html

        return token_html(self, level)

    def save(self, path: str | Path) -> Path:
        """Write everything but the model to one file; `gralis.load` reads it back bit for bit."""
        from gralis.files.archive import save

        return save(self, path)

    def to_dict(self) -> dict[str, Any]:
        """The result in plain values, ready for JSON; the ledger is left out."""
        return {
            "features": list(self.names),
            "values": self.values.tolist(),
            "stderr": self.stderr.tolist(),
            "f_x": self.f_x,
            "f_baseline": self.f_baseline,
            "delta": self.delta,
            "kernel": repr(self.kernel),
            "method": self.method,
            "plan": dict(self.plan),
            "cost": asdict(self.cost),
            "complete": self.complete,
            "reached": self.reached,
            "provenance": dict(self.provenance),
        }

    def to_json(self) -> str:
        """`to_dict` as JSON text; numbers that JSON lacks (NaN, infinity) become null."""
        from gralis.files.archive import strict

        return json.dumps(strict(self.to_dict()), allow_nan=False)

    def to_shap(self, *, residual: bool = False) -> Any:
        """`shap.Explanation` for shap's own plots; residual=True adds what is not attributed as a last feature."""
        from gralis.interop.shap import to_shap

        return to_shap(self, residual=residual)

    def __repr__(self) -> str:
        return explanation_table(self)

    def _repr_html_(self) -> str:
        from gralis.views.html import explanation_html

        return explanation_html(self)
