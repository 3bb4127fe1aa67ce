"""Each canonical triple equals its method."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from canonical.examples import BASE, N, conv_net, every_mask, image, mixed, values_at
from gralis import Gaussian, SizeKernel, Uniform, canonical, explain
from reference import (
    definition_1,
    game,
    gauss_panels,
    gaussian,
    gradients,
    midpoints,
    network,
    point,
    shapley_by_orders,
    uniform,
)


def ridge_by_rows(
    values: np.ndarray, masks: np.ndarray, ridge: float, sigma: float, intercept: bool = True
) -> np.ndarray:
    """argmin of sum_z w_z (f_z - b_0 - b z)^2 + ridge |b|^2, as least squares on rows with the penalty added."""
    n = masks.shape[1]
    weight = np.array([math.exp(-((1 - math.sqrt(row.sum() / n)) ** 2) / (2 * sigma**2)) for row in masks])
    root = np.sqrt(weight)
    rows = np.concatenate([np.ones((len(masks), 1)), masks], axis=1) if intercept else masks.astype(float)
    penalty = math.sqrt(ridge) * np.eye(rows.shape[1])
    if intercept:
        penalty[0] = 0.0
    stacked = np.concatenate([rows * root[:, None], penalty])
    fitted = np.linalg.lstsq(stacked, np.append(values * root, np.zeros(len(penalty))), rcond=None)[0]
    return fitted[1:] if intercept else fitted


@pytest.mark.parametrize("kind", ["softplus", "relu"])
def test_shap_is_the_mean_over_all_orders(kind: str) -> None:
    model, x = network(kind, N, 1), point(N, 1)
    triple = canonical.shap(model, x, baseline=BASE)
    assert triple.attribution() == pytest.approx(shapley_by_orders(game(model, x, BASE), N), abs=1e-10)
    exact = explain(model, x, baseline=BASE, plan="exhaustive", budget=None).shapley()
    assert exact.exact
    assert triple.attribution() == pytest.approx(exact.values, abs=1e-10)
    assert triple.normalised
    assert all(len(own) == 2 ** (N - 1) and all(i not in s for s in own) for i, own in enumerate(triple.index))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("ridge", "sigma"), [(1.0, 0.25), (0.0, 0.6), (7.5, 1.0)])
def test_lime_is_the_weighted_ridge(ridge: float, sigma: float, intercept: bool) -> None:
    model, x, masks = network("softplus", N, 2), point(N, 2), every_mask(N)[[0, 3, 5, 6, 9, 10, 12, 13, 15, 15]]
    triple = canonical.lime(model, x, baseline=BASE, masks=masks, ridge=ridge, sigma=sigma, intercept=intercept)
    expected = ridge_by_rows(values_at(model, x, BASE, masks), masks, ridge, sigma, intercept)
    assert triple.attribution() == pytest.approx(expected, abs=1e-10)
    assert triple.marginals[0] == pytest.approx(values_at(model, x, BASE, masks), abs=1e-14)


def test_lime_over_all_coalitions_is_the_one_of_the_ledger() -> None:
    model, x = network("relu", N, 3), point(N, 3)
    explanation = explain(model, x, baseline=BASE, plan="exhaustive", budget=None)
    triple = canonical.lime(model, x, baseline=BASE)
    assert triple.attribution() == pytest.approx(explanation.lime().values, abs=1e-10)
    for select in ("lasso", "largest"):
        chosen = explanation.lime(k_features=2, select=select)
        kept = canonical.lime(model, x, baseline=BASE, support=chosen.support)
        assert kept.attribution() == pytest.approx(chosen.values, abs=1e-10)


def test_lime_of_k_features_is_the_ridge_on_its_columns() -> None:
    model, x, masks, support = network("tanh", N, 4), point(N, 4), every_mask(N), (1, 3)
    triple = canonical.lime(model, x, baseline=BASE, support=support, ridge=0.5, sigma=0.4)
    n, values = N, values_at(model, x, BASE, masks)
    weight = np.exp(-((1 - np.sqrt(masks.sum(1) / n)) ** 2) / (2 * 0.4**2))
    rows = np.concatenate([np.ones((len(masks), 1)), masks[:, support]], axis=1)
    normal = rows.T @ np.diag(weight) @ rows + np.diag([0.0, 0.5, 0.5])
    expected = np.zeros(N)
    expected[list(support)] = np.linalg.inv(normal) @ rows.T @ (weight * values) @ np.eye(3)[:, 1:]
    assert triple.attribution() == pytest.approx(expected, abs=1e-10)
    assert (triple.weights[[0, 2]] == 0).all()


@pytest.mark.parametrize("quadrature", ["midpoint", "riemann", "gauss-legendre"])
def test_integrated_gradients_is_its_quadrature(quadrature: str) -> None:
    model, x, k = network("softplus", N, 5), point(N, 5), 7
    nodes, weights = {
        "midpoint": midpoints(k),
        "riemann": (np.arange(1, k + 1) / k, np.full(k, 1 / k)),
        "gauss-legendre": gauss_panels(k),
    }[quadrature]
    expected = (x - BASE) * (weights @ gradients(model, BASE + nodes[:, None] * (x - BASE)))
    triple = canonical.integrated_gradients(model, x, baseline=BASE, quadrature=quadrature, n_nodes=k)
    assert triple.attribution() == pytest.approx(expected, abs=1e-10)
    assert triple.total_weight == pytest.approx(x - BASE, abs=1e-12)
    assert (triple.weights < 0).any()
    assert not triple.normalised
    assert triple.index[0] == pytest.approx(tuple(nodes))


def test_integrated_gradients_knows_the_gradient_of_a_feature_that_does_not_move() -> None:
    x = np.array([1.0, BASE[1], 2.0, -1.0])
    triple = canonical.integrated_gradients(lambda z: z.prod(1), x, baseline=BASE, n_nodes=3)
    assert triple.attribution()[1] == 0.0
    assert (triple.marginals[1] != 0).all()


@pytest.mark.parametrize("name", ["uniform", "relative", "euclidean", "size"])
def test_gralis_is_definition_1(name: str) -> None:
    model, x = network("softplus", N, 6, gain=0.7), point(N, 6)
    d = (x - BASE) ** 2
    kernel, reference = {
        "uniform": (Uniform(), uniform),
        "relative": (Gaussian(0.5), gaussian(d, 0.5, "relative")),
        "euclidean": (Gaussian(1.2, "euclidean"), gaussian(d, 1.2, "euclidean")),
        "size": (SizeKernel(lambda s: 1.0 + s), lambda s: 1.0 + len(s)),
    }[name]
    triple = canonical.gralis(model, x, baseline=BASE, kernel=kernel, n_nodes=12)
    expected = definition_1(model, x, BASE, reference, gauss_panels(12))
    assert triple.attribution() == pytest.approx(expected, abs=1e-10)
    explanation = explain(model, x, baseline=BASE, kernel=kernel, plan="exhaustive", budget=None, n_nodes=12)
    assert triple.attribution() == pytest.approx(explanation.values, abs=1e-10)
    assert triple.normalised


def test_groups_are_features_too() -> None:
    model, x, labels = network("tanh", 5, 7), point(5, 7), np.array([0, 1, 1, 2, 0])
    exact = explain(model, x, features=labels, plan="exhaustive", budget=None, n_nodes=40)
    triple = canonical.gralis(model, x, features=labels, n_nodes=40)
    assert triple.attribution() == pytest.approx(exact.values, abs=1e-10)
    assert canonical.shap(model, x, features=labels).attribution() == pytest.approx(exact.shapley().values, abs=1e-10)
    assert canonical.lime(model, x, features=labels).attribution() == pytest.approx(exact.lime().values, abs=1e-10)


@pytest.mark.parametrize("target", [0, 2, mixed(-0.7)])
def test_gradcam_lin_from_activations_and_gradients(target: object) -> None:
    net, x = conv_net(1), image(1)
    activation = torch.relu(net[0](x[None])).detach().requires_grad_()
    outputs = net[5](torch.tanh(net[3](activation.flatten(1))))
    y = target(outputs) if callable(target) else outputs[:, target]
    (gradient,) = torch.autograd.grad(y.sum(), activation)
    alpha = gradient[0].mean(dim=(1, 2))  # alpha_k = (1 / Z) sum_ij dy/dA^k_ij
    expected = torch.einsum("k,kpq->pq", alpha, activation.detach()[0]).numpy().ravel()
    triple = canonical.gradcam_lin(net, x, layer=net[1], target=target)
    assert triple.attribution() == pytest.approx(expected, abs=1e-10)
    assert (triple.weights == 1 / 16).all()
    assert triple.total_weight == pytest.approx(2.0)  # one per channel: not a probability
    assert triple.index[0][:2] == ((0, 0, 0), (0, 0, 1))


@pytest.mark.parametrize("seed", range(6))
def test_gradcam_is_gradcam_lin_exactly_where_that_is_not_negative(seed: int) -> None:
    net, x = conv_net(seed), image(seed)
    linear = canonical.gradcam_lin(net, x, layer=net[1], target=0).attribution()
    standard = canonical.gradcam(net, x, layer=net[1], target=0)
    assert ((standard == linear) == (linear >= 0)).all()
    assert (standard[linear < 0] == 0).all()
