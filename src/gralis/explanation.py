"""What the user holds: values with their errors, and the ledger from which everything else is arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gralis.certificates.residual import Residual, split
from gralis.certificates.simultaneous import half_widths
from gralis.errors import GralisError, bad
from gralis.estimators import Estimate, effective_rays, estimate, importance, total_of_values
from gralis.evaluate import Cost
from gralis.features import Features
from gralis.fold import FoldedLedger
from gralis.kernels import Gaussian, Kernel, Uniform, as_kernel
from gralis.laws import Array
from gralis.ledger import Ledger
from gralis.plans import whole
from gralis.views.table import explanation_table, sweep_table

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
    baseline_weights: Array
    squared_distance: Array  # (n_baselines, n_features)
    cost: Cost
    plan: Mapping[str, Any]  # name, estimator and every decision of the plan
    provenance: Mapping[str, Any]
    complete: bool = True  # False: interrupted, or out of time, before the plan was done
    reached: bool | None = None  # whether the tolerance was reached; None: none was asked for
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
    def f_baseline(self) -> float:
        """F(x'), averaged over the baselines."""
        return float(self.baseline_weights @ self.f_baselines)

    @property
    def delta(self) -> float:
        """F(x) - F(x')."""
        return self.f_x - self.f_baseline

    def interval(self, level: float = 0.95) -> Array:
        """Simultaneous intervals, (n_features, 2): all of them cover together with probability `level`."""
        if isinstance(level, bool) or not isinstance(level, int | float | np.floating) or not 0 < level < 1:
            raise bad("level", "interval", "a number between 0 and 1", repr(level))
        half = half_widths(self.estimate, level)
        return np.stack([self.values - half, self.values + half], axis=1)

    @cached_property
    def residual(self) -> Residual:
        """Why the values do not sum to F(x) - F(x'): joint path, numerical error, kernel; no model call."""
        if not isinstance(self.ledger, Ledger) or not np.isfinite(self.ledger.value).all():
            raise GralisError(
                "The residual can only be split where the value of every coalition is known: explain with "
                "coalition_values=True (and a ledger that is not folded). Its sum is delta - values.sum()."
            )
        if self.plan["estimator"] == "endpoint":
            raise GralisError("plan='endpoint' has no rays, so there is no joint path to split the residual by.")
        rows = (self.squared_distance, self.baseline_weights, self.plan["estimator"])
        uniform = self.estimate if self.kernel == Uniform() else estimate(self.ledger, Uniform(), *rows)
        return split(self.delta, self.estimate, uniform, total_of_values(self.ledger, *rows), 0.95)

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

    def with_kernel(self, kernel: object) -> Explanation:
        """The explanation under another kernel, from the same ledger: no model call."""
        kernel = as_kernel(kernel)
        if isinstance(self.ledger, FoldedLedger):
            found = self.ledger.estimate(kernel)
        else:
            found = estimate(self.ledger, kernel, self.squared_distance, self.baseline_weights, self.plan["estimator"])
        return replace(self, estimate=found, kernel=kernel, _continue=None)

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
        if isinstance(self.ledger, FoldedLedger):
            raise GralisError("A folded ledger has no rays left to count; see cost.n_rays for how many were evaluated.")
        laws = [self.kernel.bind(row) for row in self.squared_distance]
        return effective_rays(importance(self.ledger, laws, self.baseline_weights)[self.ledger.replicate >= 0])

    def extend(self, budget: int) -> Explanation:
        """Go on from the same ledger with `budget` more gradients: more replicates of the same plan."""
        if self._continue is None:
            raise GralisError(
                "This explanation cannot be extended: it was loaded from a file, re-weighted, or is already exact. "
                "Extend the one that explain returned."
            )
        return self._continue(self, whole(budget, "budget", 1))

    def plot(self, kind: str = "bars", **options: Any) -> Figure:
        """A picture: "bars" or "heatmap" (extra `plot`); the figure is returned, never shown."""
        from gralis.views.plots import plot

        return plot(self, kind, **options)

    def save(self, path: str | Path) -> Path:
        """Write everything but the model to one file; `gralis.load` reads it back bit for bit."""
        from gralis.archive import save

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

    def __repr__(self) -> str:
        return explanation_table(self)


@dataclass(frozen=True, eq=False)
class Sweep:
    """One explanation per sigma, all from one ledger."""

    sigmas: tuple[float, ...]
    explanations: tuple[Explanation, ...]

    @property
    def values(self) -> Array:
        """phi, (n_sigmas, n_features)."""
        return np.stack([e.values for e in self.explanations])

    @property
    def stderr(self) -> Array:
        return np.stack([e.stderr for e in self.explanations])

    def __repr__(self) -> str:
        return sweep_table(self)
