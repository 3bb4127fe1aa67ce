"""B_i = max over the points looked at of |(x_i - x'_i) dF/dx_i|: the constants of the bounds, read off a ledger.

An estimate from below, never a bound: what rests on it is `calibrated`, not `guaranteed`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gralis.arrays import Array
from gralis.errors import GralisError
from gralis.ledger import FoldedLedger, Ledger


@dataclass(frozen=True, eq=False)
class Calibration:
    """What the points of a ledger say about the gradient along the rays; everything is per feature."""

    slope: Array  # max |g|, g(a) = (x_i - x'_i) dF/dx_i on a ray through i: the constant B
    first_difference: Array  # max |g(a_j+1) - g(a_j)| between neighbouring nodes, NaN with fewer than 2 even nodes
    second_difference: Array  # max |g(a_j+1) - 2 g(a_j) + g(a_j-1)|, NaN with fewer than 3 even nodes
    n_points: int

    def __repr__(self) -> str:
        return f"B = {self.slope.max():.4g}, the largest |(x_i - x'_i) dF/dx_i| at {self.n_points} points: no bound"


def of_ledger(ledger: Ledger | FoldedLedger) -> Calibration:
    """The constants of the rows that are there."""
    if isinstance(ledger, FoldedLedger) or not ledger.n_points:
        raise GralisError(
            "A calibration reads the gradients of a ledger's rows, and this ledger has none (it is folded, or its plan "
            "uses forwards only); run gralis.certificates.calibrate(model, x, ...) on fewer features."
        )
    g = np.where(ledger.masks[ledger.ray], np.abs(ledger.gradient), 0.0)
    first, second = _differences(ledger)
    return Calibration(g.max(0), first, second, ledger.n_points)


def _differences(ledger: Ledger) -> tuple[Array, Array]:
    """The largest first and second differences between evenly spaced neighbours on a ray."""
    unknown = np.full(ledger.n_features, np.nan)
    counts = np.unique(ledger.nodes_per_ray[ledger.nodes_per_ray > 0])
    if len(counts) != 1 or counts[0] < 2:
        return unknown, unknown
    n_nodes = int(counts[0])
    nodes = ledger.node.reshape(-1, n_nodes)
    if not np.allclose(np.diff(nodes, axis=1), 1 / n_nodes, atol=1e-9):
        return unknown, unknown
    members = ledger.masks[ledger.nodes_per_ray > 0]
    g = ledger.gradient.reshape(-1, n_nodes, ledger.n_features)
    first = np.abs(np.diff(g, axis=1)).max(1)
    second = np.abs(np.diff(g, n=2, axis=1)).max(1) if n_nodes > 2 else np.full(members.shape, np.nan)
    return np.where(members, first, 0.0).max(0), np.where(members, second, 0.0).max(0)


def calibrate(model: object, x: object, *, budget: int = 512, **options: Any) -> Calibration:
    """B from a pass before the run: `budget` gradients on independent rays of the kernel's own law.

    >>> import torch
    >>> calibrate(lambda z: 3 * z[:, 0] - z[:, 1], torch.ones(2)).slope.tolist()
    [3.0, 1.0]
    """
    from gralis.api.explain import explain

    return of_ledger(explain(model, x, budget=budget, plan="independent", **options).ledger)
