"""B_i = max over the evaluated points of |(x_i - x'_i) dF/dx_i|: the constants of the bounds, read from a ledger.

B_i estimates a bound from below and is never a bound itself. A certificate that uses it has the kind `calibrated`, not
`guaranteed`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gralis.arrays import Array, describe
from gralis.checks import whole
from gralis.errors import GralisError, bad
from gralis.ledger import AnyLedger, Ledger
from gralis.notebook import InNotebooks


@dataclass(frozen=True, eq=False)
class Calibration(InNotebooks):
    """What the points of a ledger say about g(a) = (x_i - x'_i) dF/dx_i along the rays, for every feature.

    Attributes
    ----------
    slope : array of shape (n_features,)
        max |g|: the constant B.
    first_difference : array of shape (n_features,)
        max |g(a_j+1) - g(a_j)| between neighbouring nodes; NaN with fewer than two evenly spaced nodes.
    second_difference : array of shape (n_features,)
        max |g(a_j+1) - 2 g(a_j) + g(a_j-1)|; NaN with fewer than three evenly spaced nodes.
    n_points : int
        The number of points that were evaluated.
    """

    slope: Array
    first_difference: Array
    second_difference: Array
    n_points: int

    def __repr__(self) -> str:
        return f"B = {self.slope.max():.4g}, the largest |(x_i - x'_i) dF/dx_i| at {self.n_points} points: no bound"


def of_ledger(ledger: AnyLedger) -> Calibration:
    """The constants of the rows of a ledger."""
    rows = ledger.kept_rows
    if rows is None or not rows.has_points:
        raise GralisError(
            "A calibration reads the gradients of a ledger's rows, and this ledger has none (it is folded, or its plan "
            "uses forwards only); run gralis.certificates.calibrate(model, x, ...) on fewer features."
        )
    g = np.where(rows.masks[rows.ray], np.abs(rows.gradient), 0.0)
    first, second = _differences(rows)
    return Calibration(g.max(0), first, second, rows.n_points)


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


def calibrate(
    model: object,
    x: object,
    *,
    budget: int = 512,
    baseline: object = 0.0,
    target: Any = None,
    features: object = None,
    kernel: object = None,
    layer: object = None,
    seed: int | None = 0,
) -> Calibration:
    """The constants B from `budget` gradients on independent rays of the kernel's law, before the run itself.

    Parameters
    ----------
    model, x, baseline, target, features, layer, seed
        The problem, as in `gralis.explain`.
    budget : int, default=512
        How many gradients to evaluate.
    kernel : Kernel, optional
        The kernel whose law draws the rays; by default the default kernel of `gralis.explain`.

    Returns
    -------
    Calibration
        The largest gradients at the points that were evaluated. They estimate a bound from below.

    Examples
    --------
    >>> import torch
    >>> calibrate(lambda z: 3 * z[:, 0] - z[:, 1], torch.ones(2)).slope.tolist()
    [3.0, 1.0]
    """
    from gralis.api.explain import explain  # this is the only stage below `api` that starts a run

    options: dict[str, Any] = {"baseline": baseline, "features": features, "layer": layer, "seed": seed}
    budget = whole(budget, "budget", 1, "calibrate", most=10**9)
    if isinstance(target, list) or (isinstance(target, str) and target == "all"):
        raise bad("target", "calibrate", "one target", describe(target))
    if kernel is not None:
        options["kernel"] = kernel
    return of_ledger(explain(model, x, target=target, budget=budget, plan="independent", **options).ledger)
