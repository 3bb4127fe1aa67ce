"""Methods that are arithmetic on one ledger: with a ledger they do not call the model, without one they make it."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from gralis.api.signature import keywords_of
from gralis.checks import whole
from gralis.estimators import Estimate
from gralis.kernels import Uniform
from gralis.methods.method import delta_of, exact_estimate
from gralis.methods.settings import MethodKeywords, MethodSettings
from gralis.rays import RayRequest
from gralis.rays.discrete import jump_orders
from gralis.rays.quadrature import midpoint
from gralis.results import Attribution
from gralis.results.explanation import Explanation

__all__ = ["gralis", "gralis_uniform", "integrated_gradients", "kernel_shap", "lime", "singles"]

_NODES = 64  # on the path of Integrated Gradients
_MOST_NODES = 2**20
_ALL_ORDERS = 12  # so many discrete features jump in every order; of more, a few random orders are evaluated
_ORDERS = 8
_ENOUGH_POINTS = 32  # points on the ray of all features from which a ledger is read instead


@keywords_of(MethodSettings)
def gralis(model: object, x: object, *, kernel: object = None, **keywords: Unpack[MethodKeywords]) -> Attribution:
    """phi_i = E_q[ray_i(T) | i in T]: GRALIS under a kernel.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis.
    kernel : Kernel or None, default=None
        How coalitions are weighted. None means the kernel of the ledger, and Gaussian(0.75) without a ledger.

    Returns
    -------
    Attribution

    Examples
    --------
    >>> import torch
    >>> gralis(lambda z: z[:, 0] * z[:, 1], torch.tensor([2.0, 3.0]), kernel=Uniform()).values.round(6).tolist()
    [1.5, 1.5]
    """
    return _own_values(MethodSettings.of(gralis, keywords).explain(model, x, kernel))


@keywords_of(MethodSettings)
def gralis_uniform(model: object, x: object, **keywords: Unpack[MethodKeywords]) -> Attribution:
    """phi_i = E_q[ray_i(T) | i in T] under the uniform kernel: GRALIS in the limit sigma -> infinity.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis.

    Returns
    -------
    Attribution
    """
    return _own_values(MethodSettings.of(gralis_uniform, keywords).explain(model, x, Uniform()))


@keywords_of(MethodSettings)
def singles(model: object, x: object, **keywords: Unpack[MethodKeywords]) -> Attribution:
    """v({i}) = F(x_i) - F(x'): every feature alone, which is GRALIS in the limit sigma -> 0.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis.

    Returns
    -------
    Attribution
    """
    return MethodSettings.of(singles, keywords).explain(model, x).singles()


@keywords_of(MethodSettings)
def kernel_shap(model: object, x: object, **keywords: Unpack[MethodKeywords]) -> Attribution:
    """Shapley values by weighted least squares on the coalition values.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis.

    Returns
    -------
    Attribution
    """
    return MethodSettings.of(kernel_shap, keywords).explain(model, x).kernel_shap()


@keywords_of(MethodSettings)
def lime(
    model: object, x: object, *, ridge: float = 1.0, sigma: float = 0.25, **keywords: Unpack[MethodKeywords]
) -> Attribution:
    """The coefficients of a ridge fit of v on 0/1 features, weighted by closeness to x.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis.
    ridge : float, default=1.0
        The penalty on the squared coefficients. 0 means ordinary least squares.
    sigma : float, default=0.25
        The width of the weights exp(-D^2 / 2 sigma^2), where D is the cosine distance of a coalition from all features.

    Returns
    -------
    Attribution
        The coefficients, with the `intercept` and the weighted `r2` of the fit.
    """
    return MethodSettings.of(lime, keywords).explain(model, x).lime(ridge, sigma)


@keywords_of(MethodSettings)
def integrated_gradients(
    model: object, x: object, *, n_nodes: int | None = None, **keywords: Unpack[MethodKeywords]
) -> Attribution:
    """phi_i = (x_i - x'_i) times the mean of dF/dx_i on the straight path from x' to x, summed over each feature.

    Parameters
    ----------
    model : object
        The model F, in any form that `gralis.explain` takes.
    x : object
        One input, without a batch axis.
    n_nodes : int or None, default=None
        The number of midpoints on the path from each baseline. None reads the ledger if it knows the path well (it
        has every coalition, or at least 32 points on the path), and otherwise takes 64 midpoints, or fewer if the
        budget does not allow them.

    Returns
    -------
    Attribution
    """
    settings = MethodSettings.of(integrated_gradients, keywords)
    if settings.ledger is not None and n_nodes is None and _knows_path(settings.ledger):
        return settings.explain(model, x).integrated_gradients()
    with settings.evaluator(model, x) as evaluator:
        problem = evaluator.problem
        weights = problem.baselines.weights
        n_orders = 1 if problem.features.discrete.sum() <= _ALL_ORDERS else _ORDERS
        most = max(1, settings.budget // (n_orders * len(weights)))
        if n_nodes is None:
            n_nodes = min(_NODES, most)
        rule = midpoint(whole(n_nodes, "n_nodes", 1, "integrated_gradients", most=_MOST_NODES))
        replicate, baseline = np.divmod(np.arange(n_orders * len(weights)), len(weights))
        rays = (np.ones((len(replicate), problem.n_features), dtype=bool), np.zeros(len(replicate)), replicate)
        request = RayRequest.of(*rays, *rule.on_rays(np.random.default_rng(0), len(replicate)), baseline=baseline)
        if n_orders > 1:
            request = request.in_orders(jump_orders(replicate, settings.seed))
        delta, values = delta_of(evaluator), np.zeros((n_orders, problem.n_features))
        number = np.repeat(replicate, rule.n_nodes)  # of every point, in the order of the request
        share = (weights[baseline][:, None] * rule.weights).ravel()
        for _, part, rows in evaluator.gradient_batches(request):
            for own in np.unique(number[part]):
                mine = number[part] == own
                values[own] += share[part][mine] @ rows[mine]
        name = "integrated gradients"
        estimate = exact_estimate(values[0], name) if n_orders == 1 else Estimate.mean(values, name)
        return Attribution(estimate, problem.features.names, delta, f"{rule.n_nodes} nodes", problem.features)


def _own_values(explanation: Explanation) -> Attribution:
    """The values of the explanation itself."""
    e = explanation
    return Attribution(e.estimate, e.names, e.delta, repr(e.kernel), e.features)


def _knows_path(explanation: Explanation) -> bool:
    """Whether the ledger has enough points on the ray of all features."""
    rows = explanation.ledger.kept_rows
    if rows is None:
        return False
    n_points = int(rows.nodes_per_ray[rows.masks.all(1)].sum())
    return n_points >= _ENOUGH_POINTS or (explanation.design.quadrature != "random" and n_points > 0)
