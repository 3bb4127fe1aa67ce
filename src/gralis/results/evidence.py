"""The fields of an explanation, declared once for the classes that hold its methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gralis.arrays import Array
from gralis.baselines.endpoints import Endpoints
from gralis.estimators import Design
from gralis.evaluation.cost import Cost
from gralis.features import Features
from gralis.kernels import Kernel
from gralis.ledger import AnyLedger
from gralis.results.result import FeatureResult
from gralis.tables import TableCoding

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
    table: TableCoding | None

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

    @property
    def data(self) -> NDArray[Any]:
        """The value of every feature in x, (n_features,): a number, or the entry of a column of a table.

        A feature of several coordinates has their mean, or the texts of its columns.
        """
        if self.table is None:
            return self.endpoints.of_features(self.features)
        entries, owners = self.table.entries(self.endpoints.x[0]), self._columns_of_features
        if all(len(own) == 1 and isinstance(entries[own[0]], int | float) for own in owners):
            return np.array([float(entries[own[0]]) for own in owners])
        texts, values = self.table.texts(self.endpoints.x[0]), np.empty(self.n_features, dtype=object)
        values[:] = [entries[own[0]] if len(own) == 1 else ", ".join(texts[k] for k in own) for own in owners]
        return values

    @property
    def labels(self) -> Sequence[str]:
        """The names of the features as tables and plots show them: with the entry, if x is a row of a table."""
        if self.table is None:
            return self.names
        texts = self.table.texts(self.endpoints.x[0])
        named = zip(self.names, self._columns_of_features, strict=True)
        return tuple(f"{name} = {texts[own[0]]}" if len(own) == 1 else name for name, own in named)

    @property
    def _columns_of_features(self) -> list[NDArray[np.int64]]:
        """The columns of a table that belong to each feature."""
        return [np.flatnonzero(self.features.labels[0] == i) for i in range(self.n_features)]
