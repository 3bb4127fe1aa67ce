"""The explanation of one prediction: values with their errors, and the ledger from which the rest is computed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from gralis.arrays import Array
from gralis.baselines.endpoints import Endpoints
from gralis.certificates.effective_rays import warn_if_thin
from gralis.checks import whole
from gralis.errors import GralisError, bad
from gralis.estimators import Design, Estimate
from gralis.evaluation.cost import Cost
from gralis.features import Features
from gralis.features.overlap import overlap
from gralis.kernels import Gaussian, Uniform, as_kernel
from gralis.ledger import AnyLedger
from gralis.results.attribution import Attribution
from gralis.results.other_explainers import OtherExplainers
from gralis.results.printed import Printed
from gralis.results.result import InputForm
from gralis.results.sweep import Sweep
from gralis.storage.json_values import strict

__all__ = ["Continuation", "Explanation"]

#: Takes an explanation and an additional budget, and returns the extended explanation.
Continuation: TypeAlias = Callable[["Explanation", int], "Explanation"]


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Printed, OtherExplainers):
    """phi_i of every feature for one prediction, with sampling errors, and the ledger behind them.

    By topic: `values`, `stderr`, `interval`, `top`, `to_input` are the result. `certificate`, `residual`, `ranks`,
    `audit`, `weight_mass`, `baseline_spread`, `budget_for`, `effective_rays` say how far to trust it. `with_kernel`,
    `with_nodes`, `sweep`, `on`, `as_it_grew`, `extend` read or continue the ledger. `integrated_gradients`, `singles`,
    `shapley`, `banzhaf`, `kernel_shap`, `lime`, `moebius`, `interactions` are other explainers from the same ledger.
    `plot`, `report`, `token_html`, `save`, `to_dict`, `to_json`, `to_shap` show and store it.

    Attributes
    ----------
    estimate : Estimate
        The values, and how each replicate departs from them.
    design : Design
        How the ledger is read: kernel, distances, weights of the baselines, estimator.
    ledger : Ledger or FoldedLedger
        The evaluated rays.
    features : Features
        Which coordinates of x belong to each feature.
    f_x : float
        F(x).
    f_baselines : array of shape (n_baselines,)
        F(x') of every baseline.
    endpoints : Endpoints
        x and the baselines, as arrays.
    cost : Cost
        What was spent.
    plan : mapping
        The name of the plan, its estimator, and every decision it took.
    provenance : mapping
        Versions, hashes and options: enough, together with the model, to compute the explanation again.
    complete : bool
        False if the run was interrupted or ran out of time before the plan was done.
    reached : bool or None
        Whether the tolerance was reached; None if there was no tolerance.
    price : float
        A run that looks at its errors before it stops divides 1 - level by this number in every interval.
    form : InputForm
        How the user packs the arrays of the input.
    """

    estimate: Estimate
    design: Design
    ledger: AnyLedger
    features: Features
    f_x: float
    f_baselines: Array
    endpoints: Endpoints
    cost: Cost
    plan: Mapping[str, Any]
    provenance: Mapping[str, Any]
    complete: bool = True
    reached: bool | None = None
    price: float = 1.0
    form: InputForm = field(default_factory=InputForm)
    _continue: Continuation | None = None

    def on(self, features: Features) -> Attribution:
        """phi on other regions, shared out by area. The sum of the values stays the same.

        Parameters
        ----------
        features : Features
            The regions to bring the values to, for example segments of the input for the cells of a layer.

        Returns
        -------
        Attribution
            One value per region.
        """
        carried = self.estimate.combined(overlap(self.features, features))
        form = self.form if features.shapes == self.features.shapes else None
        note = f"brought from {self.features!r} by area"
        return Attribution(carried, features.names, self.delta, note, features, form)

    def with_kernel(self, kernel: object) -> Explanation:
        """The explanation under another kernel, from the same ledger. The model is not called.

        Parameters
        ----------
        kernel : Kernel or callable
            The other kernel.

        Returns
        -------
        Explanation
            It cannot be extended. A warning is given if the rays cover the kernel badly.
        """
        kernel = as_kernel(kernel)
        if not self.design.estimator.has_kernel:
            raise GralisError("plan='values' gives Shapley values, which have no kernel; use plan='endpoint' for one.")
        reweighted = self._read(self.ledger, self.design.with_kernel(kernel))
        rows = self.ledger.kept_rows
        if rows is not None and self.design.estimator.has_rays and not reweighted.estimate.exact:
            warn_if_thin(rows, reweighted.design, self.names)
        return reweighted

    def with_nodes(self, n_nodes: int) -> Explanation:
        """The explanation with fewer nodes on each ray, if they nest in the present ones. The model is not called.

        Parameters
        ----------
        n_nodes : int
            The number of nodes to keep on each ray.

        Returns
        -------
        Explanation
            It cannot be extended.
        """
        rows, rule = self.ledger.kept_rows, self.plan.get("quadrature")
        if rows is None or not rule:
            raise GralisError("with_nodes needs the nodes on the rays, and this ledger keeps none.")
        ledger = rows.with_nodes(str(rule), whole(n_nodes, "n_nodes", 1))
        return replace(self._read(ledger, self.design), plan={**self.plan, "n_nodes": n_nodes})

    def sweep(self, sigmas: Sequence[float], distance: str = "relative") -> Sweep:
        """phi for every sigma, from the same ledger. The model is not called.

        Parameters
        ----------
        sigmas : sequence of float
            Kernel widths; `math.inf` stands for the uniform kernel.
        distance : {"relative", "euclidean"}, default="relative"
            How the kernel measures distance.

        Returns
        -------
        Sweep
            One explanation per sigma.
        """
        try:
            listed = tuple(sigmas)
        except TypeError:
            raise bad("sigmas", "sweep", "a list of numbers > 0", repr(sigmas)) from None
        if not listed:
            raise bad("sigmas", "sweep", "at least one sigma", "none")
        kernels = [Uniform() if sigma == np.inf else Gaussian(sigma, distance) for sigma in listed]  # type: ignore[arg-type]
        return Sweep(tuple(float(s) for s in listed), tuple(self.with_kernel(kernel) for kernel in kernels))

    def extend(self, budget: int) -> Explanation:
        """Add more replicates of the same plan to the same ledger.

        Parameters
        ----------
        budget : int
            How many more gradients to spend; forwards for a plan without rays.

        Returns
        -------
        Explanation
            The explanation from all rays together.
        """
        if self._continue is None:
            raise GralisError(
                "This explanation cannot be extended: it was loaded from a file, re-weighted, or is already exact. "
                "Extend the one that explain returned."
            )
        return self._continue(self, whole(budget, "budget", 1))

    def as_it_grew(self, n_steps: int = 6) -> list[Explanation]:
        """The explanations that fewer replicates would have given, up to this one. The model is not called.

        Parameters
        ----------
        n_steps : int, default=6
            How many explanations at most, spaced geometrically.

        Returns
        -------
        list of Explanation
            The one with the fewest replicates comes first.
        """
        rows, last = self.ledger.kept_rows, self.ledger.n_replicates
        if rows is None or self.estimate.exact or last < 3:
            raise GralisError("How the result grew can be read only from a ledger that keeps several replicates.")
        counts = np.unique(np.geomspace(2, last, n_steps).astype(int))
        parts = [rows.take(rows.replicate < count) for count in counts]
        return [
            replace(
                self._read(part, self.design),
                cost=replace(self.cost, n_gradients=part.n_points, n_rays=part.n_rays, n_forwards=part.n_rays),
            )
            for part in parts
        ]

    def _read(self, ledger: AnyLedger, design: Design) -> Explanation:
        """This explanation with the values that `design` reads from `ledger`."""
        return replace(self, estimate=design.estimate(ledger), design=design, ledger=ledger, _continue=None)

    def to_dict(self) -> dict[str, Any]:
        """The result in plain values, ready for JSON; the ledger is left out."""
        return {
            **super().to_dict(),
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
        return json.dumps(strict(self.to_dict()), allow_nan=False)

    # The methods below call later stages; the test of the import graph lists them as exceptions.

    def plot(self, kind: str = "bars", **options: Any) -> Any:
        """Draw a matplotlib figure. It is returned and not shown. This needs the extra `plot`.

        Parameters
        ----------
        kind : {"bars", "heatmap", "waterfall", "interactions", "network", "convergence", "text"}, default="bars"
            What to draw. `gralis.views.register_plot` adds further kinds.
        **options
            The options of this kind of plot, such as `top`, `ax` or `image`; see `gralis.views.plot`.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.
        """
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
        """Write one interactive HTML file that needs no network: what was predicted, why, and how far to trust it.

        Parameters
        ----------
        path : str or Path
            The file to write.
        title : str, optional
            The title of the page.
        image : array of shape (H, W, 3) or (C, H, W), optional
            The picture to show if people cannot read x itself, for example because it is normalised.
        label : str, optional
            The target in words.
        beside : sequence of Explanation, optional
            Explanations of the same features to show side by side, for example with another baseline.

        Returns
        -------
        Path
            The path that was written.
        """
        from gralis.report import report

        return report(self, path, title=title, image=image, label=label, beside=beside)

    def token_html(self, level: float = 0.95) -> str:
        """The tokens in their order as an HTML snippet, coloured by phi.

        Parameters
        ----------
        level : float, default=0.95
            The level of the intervals in the tooltips.

        Returns
        -------
        str
            The snippet.
        """
        from gralis.views.tokens import token_html

        return token_html(self, level)

    def save(self, path: str | Path) -> Path:
        """Write everything but the model to one file; `gralis.load` reads it back bit for bit.

        Parameters
        ----------
        path : str or Path
            The file to write.

        Returns
        -------
        Path
            The path that was written.
        """
        from gralis.files.archive import save

        return save(self, path)

    def to_shap(self, *, residual: bool = False) -> Any:
        """A `shap.Explanation` for the plots of shap.

        Parameters
        ----------
        residual : bool, default=False
            Whether to add what is not attributed as a last feature, so that the values sum to F(x) - F(x').

        Returns
        -------
        shap.Explanation
            The values, the output at the baseline, and the data.
        """
        from gralis.interop.shap import to_shap

        return to_shap(self, residual=residual)

    def _repr_html_(self) -> str:
        from gralis.views.html import explanation_html

        return explanation_html(self)
