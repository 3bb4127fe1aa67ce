"""Methods that are arithmetic on one ledger: given a ledger they do not call the model, without one they make it."""

from __future__ import annotations

import numpy as np

from gralis.explain import explain
from gralis.explainers import Attribution
from gralis.explanation import Explanation
from gralis.fold import FoldedLedger
from gralis.kernels import Gaussian, Uniform, as_kernel
from gralis.laws import Array
from gralis.methods.method import BUDGET, BatchSize, delta_of, evaluator_of, known, require_same
from gralis.plans import whole
from gralis.problem import Problem
from gralis.quadrature import midpoint
from gralis.sheet import Sheet
from gralis.targets import Target, check

_NODES = 64  # on the path of Integrated Gradients
_ENOUGH_POINTS = 32  # points on the ray of all features that a ledger must have to be read instead


def gralis(
    model: object,
    x: object,
    *,
    target: Target = None,
    baseline: object = 0.0,
    features: object = None,
    budget: int = BUDGET,
    seed: int = 0,
    batch_size: BatchSize = "auto",
    ledger: Explanation | None = None,
    kernel: object = None,
) -> Attribution:
    """GRALIS: phi_i = E_q[ray_i(T) | i in T] under the kernel; None is that of the ledger, or Gaussian(0.75).

    >>> import torch
    >>> gralis(lambda z: z[:, 0] * z[:, 1], torch.tensor([2.0, 3.0]), kernel=Uniform()).values.round(6).tolist()
    [1.5, 1.5]
    """
    e = ledger_of(model, x, target, baseline, features, budget, seed, batch_size, ledger, kernel)
    return Attribution(e.estimate, e.names, e.delta, repr(e.kernel), e.features)


def gralis_uniform(
    model: object,
    x: object,
    *,
    target: Target = None,
    baseline: object = 0.0,
    features: object = None,
    budget: int = BUDGET,
    seed: int = 0,
    batch_size: BatchSize = "auto",
    ledger: Explanation | None = None,
) -> Attribution:
    """GRALIS with the uniform kernel, the limit sigma -> infinity."""
    e = ledger_of(model, x, target, baseline, features, budget, seed, batch_size, ledger, Uniform())
    return Attribution(e.estimate, e.names, e.delta, repr(e.kernel), e.features)


def singles(
    model: object,
    x: object,
    *,
    target: Target = None,
    baseline: object = 0.0,
    features: object = None,
    budget: int = BUDGET,
    seed: int = 0,
    batch_size: BatchSize = "auto",
    ledger: Explanation | None = None,
) -> Attribution:
    """v({i}) = F(x_i) - F(x'): every feature on its own, the limit sigma -> 0."""
    return ledger_of(model, x, target, baseline, features, budget, seed, batch_size, ledger).singles()


def kernel_shap(
    model: object,
    x: object,
    *,
    target: Target = None,
    baseline: object = 0.0,
    features: object = None,
    budget: int = BUDGET,
    seed: int = 0,
    batch_size: BatchSize = "auto",
    ledger: Explanation | None = None,
) -> Attribution:
    """Shapley values by weighted least squares on the coalition values."""
    return ledger_of(model, x, target, baseline, features, budget, seed, batch_size, ledger).kernel_shap()


def lime(
    model: object,
    x: object,
    *,
    target: Target = None,
    baseline: object = 0.0,
    features: object = None,
    budget: int = BUDGET,
    seed: int = 0,
    batch_size: BatchSize = "auto",
    ledger: Explanation | None = None,
    ridge: float = 1.0,
    sigma: float = 0.25,
) -> Attribution:
    """The coefficients of a ridge fit of v on 0/1 features, weighted by closeness to x."""
    return ledger_of(model, x, target, baseline, features, budget, seed, batch_size, ledger).lime(ridge, sigma)


def integrated_gradients(
    model: object,
    x: object,
    *,
    target: Target = None,
    baseline: object = 0.0,
    features: object = None,
    budget: int = BUDGET,
    seed: int = 0,
    batch_size: BatchSize = "auto",
    ledger: Explanation | None = None,
    n_nodes: int | None = None,
) -> Attribution:
    """phi_i = (x_i - x'_i) times the mean of dF/dx_i on the straight path from x' to x, summed over each feature.

    A ledger is read if it knows that path well (every coalition evaluated, or at least 32 points there) and n_nodes is
    not given; else the path is evaluated at
    n_nodes (64, or fewer if the budget says so) midpoints for every baseline.
    """
    if ledger is not None and n_nodes is None and _knows_path(ledger):
        return ledger_of(model, x, target, baseline, features, budget, seed, batch_size, ledger).integrated_gradients()
    with evaluator_of(model, x, baseline, target, features, batch_size) as evaluator:
        problem = evaluator.problem
        weights = problem.baselines.weights
        most = max(1, whole(budget, "budget", 1) // len(weights))
        rule = midpoint(min(_NODES, most) if n_nodes is None else whole(n_nodes, "n_nodes", 1))
        rays = (np.ones((len(weights), problem.n_features), dtype=bool), np.zeros(len(weights)), 0)
        sheet = Sheet.of(*rays, *rule.on_rays(np.random.default_rng(0), len(weights)), baseline=np.arange(len(weights)))
        values = np.zeros(problem.n_features)
        share = (weights[:, None] * rule.weights).ravel()  # of every point, in the order of the sheet

        def add(question: int, part: slice, rows: Array) -> None:
            nonlocal values
            values += share[part] @ rows

        evaluator.stream(sheet, add)
        found, names = known(values, "integrated gradients"), problem.features.names
        return Attribution(found, names, delta_of(evaluator), f"{rule.n_nodes} nodes", problem.features)


def ledger_of(
    model: object,
    x: object,
    target: Target,
    baseline: object,
    features: object,
    budget: int,
    seed: int,
    batch_size: BatchSize,
    ledger: Explanation | None = None,
    kernel: object = None,
) -> Explanation:
    """The ledger that was given, under this kernel if one is named, or one of its own."""
    if ledger is None:
        return explain(
            model,
            x,
            target=check(target, "a method"),
            baseline=baseline,
            features=features,
            budget=budget,
            seed=seed,
            batch_size=batch_size,
            kernel=Gaussian(0.75) if kernel is None else kernel,
            progress=False,
        )
    # The ledger's own features unless others are asked for, which must then be the same.
    asked = ledger.features if features is None else features
    require_same(ledger, Problem.build(model, x, baseline=baseline, target=target, features=asked), "a method")
    return ledger if kernel is None or ledger.kernel == as_kernel(kernel) else ledger.with_kernel(kernel)


def _knows_path(ledger: Explanation) -> bool:
    rows = ledger.ledger
    if isinstance(rows, FoldedLedger):
        return False
    n_points = int(rows.nodes_per_ray[rows.masks.all(1)].sum())
    return n_points >= _ENOUGH_POINTS or (ledger.estimate.exact and n_points > 0)
