"""Methods that are arithmetic on one ledger: given a ledger they do not call the model, without one they make it."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from gralis.arrays import Array
from gralis.checks import whole
from gralis.explainers import Attribution
from gralis.kernels import Uniform
from gralis.ledger import FoldedLedger
from gralis.methods.method import Task, TaskWords, delta_of, known
from gralis.rays import RayRequest
from gralis.rays.quadrature import midpoint
from gralis.results.explanation import Explanation

_NODES = 64  # on the path of Integrated Gradients
_ENOUGH_POINTS = 32  # points on the ray of all features that a ledger must have to be read instead


def gralis(
    model: object,
    x: object,
    *,
    kernel: object = None,
    **asked: Unpack[TaskWords],
) -> Attribution:
    """GRALIS: phi_i = E_q[ray_i(T) | i in T] under the kernel; None is that of the ledger, or Gaussian(0.75).

    >>> import torch
    >>> gralis(lambda z: z[:, 0] * z[:, 1], torch.tensor([2.0, 3.0]), kernel=Uniform()).values.round(6).tolist()
    [1.5, 1.5]
    """
    e = Task.of(gralis, asked).explain(model, x, kernel)
    return Attribution(e.estimate, e.names, e.delta, repr(e.kernel), e.features)


def gralis_uniform(
    model: object,
    x: object,
    **asked: Unpack[TaskWords],
) -> Attribution:
    """GRALIS with the uniform kernel, the limit sigma -> infinity."""
    e = Task.of(gralis_uniform, asked).explain(model, x, Uniform())
    return Attribution(e.estimate, e.names, e.delta, repr(e.kernel), e.features)


def singles(
    model: object,
    x: object,
    **asked: Unpack[TaskWords],
) -> Attribution:
    """v({i}) = F(x_i) - F(x'): every feature on its own, the limit sigma -> 0."""
    return Task.of(singles, asked).explain(model, x).singles()


def kernel_shap(
    model: object,
    x: object,
    **asked: Unpack[TaskWords],
) -> Attribution:
    """Shapley values by weighted least squares on the coalition values."""
    return Task.of(kernel_shap, asked).explain(model, x).kernel_shap()


def lime(
    model: object,
    x: object,
    *,
    ridge: float = 1.0,
    sigma: float = 0.25,
    **asked: Unpack[TaskWords],
) -> Attribution:
    """The coefficients of a ridge fit of v on 0/1 features, weighted by closeness to x."""
    return Task.of(lime, asked).explain(model, x).lime(ridge, sigma)


def integrated_gradients(
    model: object,
    x: object,
    *,
    n_nodes: int | None = None,
    **asked: Unpack[TaskWords],
) -> Attribution:
    """phi_i = (x_i - x'_i) times the mean of dF/dx_i on the straight path from x' to x, summed over each feature.

    A ledger is read if it knows that path well (every coalition evaluated, or at least 32 points there) and n_nodes is
    not given; else the path is evaluated at n_nodes (64, or fewer if the budget says so) midpoints for every baseline.
    """
    task = Task.of(integrated_gradients, asked)
    if task.ledger is not None and n_nodes is None and _knows_path(task.ledger):
        return task.explain(model, x).integrated_gradients()
    with task.evaluator(model, x) as evaluator:
        problem = evaluator.problem
        weights = problem.baselines.weights
        most = max(1, task.budget // len(weights))
        rule = midpoint(min(_NODES, most) if n_nodes is None else whole(n_nodes, "n_nodes", 1, "integrated_gradients"))
        rays = (np.ones((len(weights), problem.n_features), dtype=bool), np.zeros(len(weights)), 0)
        request = RayRequest.of(
            *rays, *rule.on_rays(np.random.default_rng(0), len(weights)), baseline=np.arange(len(weights))
        )
        values = np.zeros(problem.n_features)
        share = (weights[:, None] * rule.weights).ravel()  # of every point, in the order of the request

        def add(question: int, part: slice, rows: Array) -> None:
            nonlocal values
            values += share[part] @ rows

        evaluator.stream(request, add)
        found, names = known(values, "integrated gradients"), problem.features.names
        return Attribution(found, names, delta_of(evaluator), f"{rule.n_nodes} nodes", problem.features)


def _knows_path(ledger: Explanation) -> bool:
    rows = ledger.ledger
    if isinstance(rows, FoldedLedger):
        return False
    n_points = int(rows.nodes_per_ray[rows.masks.all(1)].sum())
    return n_points >= _ENOUGH_POINTS or (ledger.estimate.exact and n_points > 0)
