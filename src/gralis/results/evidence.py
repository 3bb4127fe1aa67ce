"""The fields of an explanation, declared once for the classes that hold its methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gralis.arrays import Array
from gralis.baselines.endpoints import Endpoints
from gralis.estimators import Design
from gralis.evaluation.cost import Cost
from gralis.features import Features
from gralis.kernels import Kernel
from gralis.ledger import AnyLedger
from gralis.results.result import FeatureResult

__all__ = ["Evidence"]


class Evidence(FeatureResult):
    """The ledger of one prediction, how it is read, and the ends of its rays. `Explanation` describes the fields."""

    design: Design
    ledger: AnyLedger
    features: Features
    f_x: float
    f_baselines: Array
    endpoints: Endpoints
    cost: Cost
    plan: Mapping[str, Any]
    price: float
    model_doubts: tuple[str, ...]

    @property
    def names(self) -> Sequence[str]:  # type: ignore[override]
        """The names of the features."""
        return self.features.names

    @property
    def kernel(self) -> Kernel:
        """The locality kernel."""
        return self.design.kernel

    @property
    def squared_distance(self) -> Array:
        """||x_i - x'_i||^2 for every baseline and feature, (n_baselines, n_features)."""
        return self.design.squared_distance

    @property
    def baseline_weights(self) -> Array:
        """The weights of the baselines; they sum to one."""
        return self.design.baseline_weights

    @property
    def f_baseline(self) -> float:
        """F(x'), averaged over the baselines."""
        return float(self.baseline_weights @ self.f_baselines)

    @property
    def delta(self) -> float:
        """F(x) - F(x')."""
        return self.f_x - self.f_baseline
