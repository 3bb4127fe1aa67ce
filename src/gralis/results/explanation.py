"""The explanation of one prediction: values with their errors, and the ledger from which the rest is computed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from numbers import Real
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from gralis.arrays import Array
from gralis.baselines.endpoints import Endpoints
from gralis.certificates.effective_rays import warn_if_thin
from gralis.checks import several, whole
from gralis.errors import GralisError, bad
from gralis.estimators import Design, Estimate
from gralis.evaluation.cost import Cost
from gralis.features import Features
from gralis.features.overlap import carried
from gralis.kernels import Gaussian, Uniform, as_kernel
from gralis.ledger import AnyLedger, Ledger
from gralis.results.attribution import Attribution
from gralis.results.printed import Printed
from gralis.results.result import InputForm
from gralis.results.sweep import Sweep
from gralis.storage.json_values import strict
from gralis.tables import TableCoding

__all__ = ["Continuation", "Explanation"]

#: Takes an explanation and an additional budget, and returns the extended explanation.
Continuation: TypeAlias = Callable[["Explanation", int], "Explanation"]


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Printed):
    """phi_i of every feature for one prediction, with sampling errors, and the ledger behind them.

    The methods by topic:

    * The result: `values`, `stderr`, `half_widths`, `interval`, `top`, `to_input`, `data`, `labels`.
    * How far to trust it: `doubts`, `certificate`, `residual`, `ranks`, `audit`, `weight_mass`, `baseline_spread`,
      `budget_for`, `effective_rays`, `calibration`.
    * More from the same ledger: `with_kernel`, `with_nodes`, `sweep`, `sweep_nodes`, `on`, `as_it_grew`. `extend`
      continues the run.
    * Other explainers from the same ledger: `integrated_gradients`, `singles`, `shapley`, `banzhaf`, `kernel_shap`,
      `lime`, `moebius`, `interactions`. `sign_conflicts` has the features whose phi and Shapley value disagree.
    * Pictures and files: `plot`, `report`, `token_html`, `save`, `to_dict`, `to_json`, `to_shap`.

    Attributes
    ----------
    estimate : Estimate
        The values, and the deviation of each replicate from them.
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
        The gradients, forwards and seconds that were spent.
    plan : mapping
        The name of the plan, its estimator, and every decision it took.
    provenance : mapping
        Versions, hashes and options: enough, together with the model, to compute the explanation again.
    complete : bool
        False if the run was interrupted or ran out of time before the plan was done.
    reached : bool or None
        Whether the tolerance was reached; None if there was no tolerance.
    price : float
        The divisor of 1 - level in every interval. It is above 1 if the run looked at its errors to decide when to
        stop.
    form : InputForm
        Whether x was given as one array, a tuple or a dict.
    model_doubts : tuple of str
        Sentences that say why the model may not be a function of its input. `doubts` includes them.
    table : TableCoding or None
        The columns of the table to which x belongs; None if x is not a row of a table.
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
    model_doubts: tuple[str, ...] = ()
    table: TableCoding | None = None
    _continue: Continuation | None = None

    def on(self, features: Features, shares: object = None) -> Attribution:
        """phi on other regions, shared out by area. The sum of the values stays the same.

        The tokens of a vision transformer go to their patches (`features.patches`) and those of a text to their
        positions (`features.tokens`). A value without a place in the input, such as that of a class token, gets a
        separate row after the regions.

        Parameters
        ----------
        features : Features
            The regions to bring the values to, for example segments of the input for the cells of a layer.
        shares : array of shape (n_regions, n_features), optional
            The share of each region in each feature, in place of the shares by area. A column sums to one, or to zero
            if the feature has no place.

        Returns
        -------
        Attribution
            One value per region, followed by the values without a place.
        """
        if not isinstance(features, Features):
            got = type(features).__name__
            raise bad("features", "on", "a Features, for example gralis.features.grid(x.shape, 16)", f"a {got}")
        rows, own = carried(self.features, features, at_layer=bool(self.provenance.get("layer")), shares=shares)
        if len(own) == self.n_features:
            raise GralisError(
                f"{self.features!r} has no place in the input, as channels, heads and dense units have none; explain "
                f"features of the layer that have one, or give the shares of the regions."
            )
        form = self.form if features.shapes == self.features.shapes else None
        note = f"brought from {self.features!r} {'by area' if shares is None else 'by given shares'}"
        names = (*features.names, *own) if own else features.names
        return Attribution(self.estimate.combined(rows), names, self.delta, note, features, form)

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
        if rows is not None and self.design.estimator.has_rays and not self.design.estimator.enumerates(rows):
            warn_if_thin(rows, reweighted.design, self.names)
        return reweighted

    def with_nodes(self, n_nodes: int) -> Explanation:
        """The explanation with fewer nodes on each ray, if they are among the evaluated ones. The model is not called.

        Parameters
        ----------
        n_nodes : int
            The number of nodes to keep on each ray.

        Returns
        -------
        Explanation
            It cannot be extended.
        """
        rows, rule = self._node_rows()
        ledger = rows.with_nodes(rule, whole(n_nodes, "n_nodes", 1))
        return replace(self._read(ledger, self.design), plan={**self.plan, "n_nodes": n_nodes})

    def _node_rows(self) -> tuple[Ledger, str]:
        """The rows with nodes on the rays, and the name of their rule."""
        rows, rule = self.ledger.kept_rows, self.plan.get("quadrature")
        if rows is None or not rule:
            raise GralisError("with_nodes needs the nodes on the rays, and this ledger keeps none.")
        return rows, str(rule)

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
        widths = several(sigmas, "sigmas", "sweep", "a list of at least one number > 0")
        uniform = [isinstance(sigma, Real) and sigma == np.inf for sigma in widths]
        kernels = [
            Uniform() if same else Gaussian(sigma, distance)  # type: ignore[arg-type]
            for sigma, same in zip(widths, uniform, strict=True)
        ]
        return Sweep(tuple(map(float, widths)), tuple(self.with_kernel(kernel) for kernel in kernels))

    def sweep_nodes(self, n_nodes: Sequence[int] | None = None) -> Sweep:
        """phi for several numbers of nodes on each ray, from the same ledger. The model is not called.

        Explain with `quadrature="fejer"`, whose nodes nest well, or with a number of midpoints such as 9 or 15.

        Parameters
        ----------
        n_nodes : sequence of int, optional
            Numbers of nodes whose rule lies inside the nodes on the rays. By default all for which that is so.

        Returns
        -------
        Sweep
            One explanation per number of nodes.
        """
        rows, rule = self._node_rows()
        counts = rows.nested_nodes(rule) if n_nodes is None else n_nodes
        counts = several(counts, "n_nodes", "sweep_nodes", "a list of at least one number of nodes")
        swept = tuple(self.with_nodes(whole(count, "n_nodes", 1, "sweep_nodes")) for count in counts)
        return Sweep(tuple(map(float, counts)), swept, "n_nodes")

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
            if self.exact:
                raise GralisError("This explanation cannot be extended, because its values are already exact.")
            raise GralisError(
                "This explanation cannot be extended: it was loaded from a file or re-weighted, or all its coalitions "
                "were evaluated with fixed nodes. Extend the one that explain returned, or explain with random nodes."
            )
        return self._continue(self, whole(budget, "budget", 1, "extend", most=10**9))

    @property
    def can_grow(self) -> bool:
        """Whether `extend` can add replicates."""
        return self._continue is not None

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
        n_steps = whole(n_steps, "n_steps", 1, "as_it_grew", most=10_000)
        rows, last = self.ledger.kept_rows, self.ledger.n_replicates
        if rows is None or self.estimate.exact or last < 3:
            raise GralisError(
                "as_it_grew needs a ledger that keeps the rows of three or more replicates, and this one does not; "
                "explain with a sampling plan and fewer features."
            )
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

    def _frame_columns(self) -> Mapping[str, Any]:
        named = super()._frame_columns()
        return {"feature": named["feature"], "data": list(self.data), **named} if self.table is not None else named

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
            "doubts": list(self.doubts),
            "provenance": dict(self.provenance),
        }

    def to_json(self) -> str:
        """`to_dict` as JSON text; numbers that JSON lacks (NaN, infinity) become null."""
        return json.dumps(strict(self.to_dict()), allow_nan=False)

    # The methods below call later stages; the test of the import graph lists them as exceptions.

    def plot(self, kind: str = "bars", **options: Any) -> Any:
        """Draw a matplotlib figure and return it. A notebook shows it, no window opens. This needs the extra `plot`.

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
