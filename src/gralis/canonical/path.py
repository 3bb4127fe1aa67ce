"""Integrated Gradients as a triple: nodes on the straight path, weights (x_i - x'_i) / k that may be negative."""

from __future__ import annotations

import numpy as np

from gralis.canonical.coalitions import fixed_rule
from gralis.canonical.triple import Triple
from gralis.errors import bad
from gralis.evaluation.calls import ModelCalls
from gralis.evaluation.point_sequences import GivenPoints
from gralis.models.outputs import TargetedModel
from gralis.problem import Problem
from gralis.targets import Target

__all__ = ["integrated_gradients"]


def integrated_gradients(
    model: object,
    x: object,
    *,
    baseline: object = 0.0,
    target: Target = None,
    quadrature: str = "midpoint",
    n_nodes: int = 50,
) -> Triple:
    """phi_i = sum over the nodes a of (x_i - x'_i) w(a) dF/dx_i at x' + a (x - x'), for every coordinate i.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : array or tensor
        One input, without a batch axis; a single array.
    baseline : object, default=0.0
        The baseline x', in any form that `gralis.explain` takes, but a single one.
    target : int, tuple of int, callable or None, default=None
        Which number of the model's output is F.
    quadrature : {"midpoint", "gauss-legendre", "riemann"}, default="midpoint"
        The rule for the nodes on the path.
    n_nodes : int, default=50
        The number of nodes on the path.

    Returns
    -------
    Triple

    Examples
    --------
    >>> triple = integrated_gradients(lambda z: z[:, 0] * z[:, 1], np.array([2.0, -3.0]), n_nodes=1)
    >>> triple.attribution().tolist(), triple.weights.tolist(), triple.index[0]
    ([-3.0, -3.0], [[2.0], [-3.0]], (0.5,))
    """
    rule = fixed_rule(quadrature, n_nodes)
    problem = Problem.build(model, x, baseline=baseline, target=target)
    if len(problem.x) != 1 or problem.baselines.n_baselines != 1:
        raise bad("x", "canonical.integrated_gradients", "one array, against one baseline", "several of them")
    start = problem.baselines.points[0].double()  # (1, *x.shape)
    step = problem.x[0].double() - start
    at = step.new_tensor(rule.nodes).reshape(-1, *[1] * problem.x[0].ndim)
    points = (start + at * step).to(device=problem.device, dtype=problem.dtypes[0])
    calls = ModelCalls(TargetedModel(problem.model), points[0].nbytes, batch_size=rule.n_nodes, device=problem.device)
    with calls.session():
        batches = [batch.rows[0] for batch in calls.gradients(GivenPoints(problem.pack([points])))]
    marginals = np.concatenate(batches).T  # (n_coordinates, n_nodes)
    weights = np.outer(step.cpu().numpy().ravel(), rule.weights)
    return Triple((tuple(rule.nodes.tolist()),) * len(weights), weights, marginals, "Integrated Gradients")
