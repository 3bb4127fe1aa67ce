"""The correspondence map between the triples, arrow by arrow."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from canonical.examples import BASE, N, conv_net, every_mask, image, values_at
from gralis import Gaussian, SizeKernel, Uniform, canonical, explain
from gralis.games import Multilinear, appendix_e
from reference import (
    game,
    network,
    point,
    shapley_by_orders,
)


def full_predecessor(n: int) -> SizeKernel:
    """All weight on S = F without i."""
    return SizeKernel(lambda s: float(s == n - 1))


@pytest.mark.parametrize("kind", ["softplus", "relu"])
def test_integrated_gradients_is_the_point_mass_on_the_full_predecessor_set(kind: str) -> None:
    model, x, k = network(kind, N, 8), point(N, 8), 9
    ig = canonical.integrated_gradients(model, x, baseline=BASE, n_nodes=k).attribution()
    options = {"baseline": BASE, "kernel": full_predecessor(N), "quadrature": "midpoint", "n_nodes": k}
    triple = canonical.gralis(model, x, **options)
    assert triple.attribution() == pytest.approx(ig, abs=1e-10)
    for i in range(N):
        used = {s for (s, _), w in zip(triple.index[i], triple.weights[i], strict=True) if w}
        assert used == {tuple(j for j in range(N) if j != i)}
    explanation = explain(model, x, plan="exhaustive", budget=None, **options)
    assert explanation.values == pytest.approx(ig, abs=1e-10)
    assert explanation.integrated_gradients().values == pytest.approx(ig, abs=1e-10)


@pytest.mark.parametrize("kind", ["softplus", "relu"])
def test_the_endpoint_plan_with_the_uniform_kernel_is_shapley(kind: str) -> None:
    model, x = network(kind, N, 9), point(N, 9)
    explanation = explain(model, x, baseline=BASE, plan="endpoint", kernel=Uniform(), budget=None)
    assert explanation.values == pytest.approx(canonical.shap(model, x, baseline=BASE).attribution(), abs=1e-10)
    assert explanation.values == pytest.approx(shapley_by_orders(game(model, x, BASE), N), abs=1e-10)
    local = explain(model, x, baseline=BASE, plan="endpoint", kernel=Gaussian(0.5), budget=None)
    assert np.abs(local.values - explanation.values).max() > 1e-3


def test_a_constant_kernel_is_neither_integrated_gradients_nor_shapley() -> None:
    """pi = 1 gives 8.5 on the paper's toy, where both others give 11."""
    toy, x = appendix_e(), np.ones(3)
    flat = canonical.gralis(toy, x, kernel=Uniform()).attribution()
    assert flat.sum() == pytest.approx(8.5)
    assert canonical.integrated_gradients(toy, x).attribution().sum() == pytest.approx(11)
    assert canonical.shap(toy, x).attribution().sum() == pytest.approx(11)


@pytest.mark.parametrize("curvature", [0.0, 0.1, 0.2, 1.0])
def test_a_nearly_constant_gradient_is_only_nearly_shapley(curvature: float) -> None:
    """F = a + 2b + e ab: Shapley shares e ab / 2, uniform GRALIS e ab / 4. Equal for affine F, and only then."""
    model = Multilinear({(0,): 1, (1,): 2, (0, 1): curvature}, 2)
    gap = (
        canonical.shap(model, np.ones(2)).attribution()
        - canonical.gralis(model, np.ones(2), kernel=Uniform()).attribution()
    )
    assert gap == pytest.approx([curvature / 4] * 2, abs=1e-12)


def test_kernel_shap_is_shap_for_shapleys_kernel_and_for_no_uniform_one() -> None:
    model, x = network("softplus", N, 10), point(N, 10)
    explanation = explain(model, x, baseline=BASE, plan="exhaustive", budget=None)
    shapley = shapley_by_orders(game(model, x, BASE), N)
    assert explanation.kernel_shap().values == pytest.approx(shapley, abs=1e-10)
    masks = every_mask(N)[1:-1]
    values = values_at(model, x, BASE, masks) - values_at(model, x, BASE, np.zeros((1, N)))
    # minimise |values - masks phi|^2 given sum phi = v(F), by eliminating the last feature
    total, last = explanation.delta, masks[:, -1:]
    free = np.linalg.lstsq(masks[:, :-1] - last, values - total * last[:, 0], rcond=None)[0]
    assert np.abs(np.append(free, total - free.sum()) - shapley).max() > 1e-3


@pytest.mark.parametrize(("ridge", "sigma"), [(0.0, 0.1), (0.0, 0.25), (0.0, 10.0), (1.0, 0.25)])
def test_no_point_mass_gives_lime(ridge: float, sigma: float) -> None:
    """Weight on F without i gives IG, weight on the empty set F(x_i) - F(x'); neither is the fitted slope."""
    model, x = network("softplus", N, 11), point(N, 11)
    lime = canonical.lime(model, x, baseline=BASE, ridge=ridge, sigma=sigma).attribution()
    for kernel in (full_predecessor(N), Gaussian(0.005), Uniform()):
        phi = canonical.gralis(model, x, baseline=BASE, kernel=kernel).attribution()
        assert np.abs(phi - lime).max() > 1e-3


@pytest.mark.parametrize("kernel", [full_predecessor(N), Gaussian(0.5), Uniform()])
def test_affine_functions_are_where_all_arrows_meet(kernel: object) -> None:
    slope, x = np.array([2.0, -1.0, 0.5, 3.0]), point(N, 12)
    model = lambda z: z @ torch.from_numpy(slope) + 4  # noqa: E731
    expected = slope * (x - BASE)
    for triple in (
        canonical.gralis(model, x, baseline=BASE, kernel=kernel),
        canonical.shap(model, x, baseline=BASE),
        canonical.lime(model, x, baseline=BASE, ridge=0.0),
        canonical.integrated_gradients(model, x, baseline=BASE),
    ):
        assert triple.attribution() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(("head", "equal"), [("pooled", True), ("mlp", False)])
def test_one_layer_without_a_path_is_gradcam_only_for_a_pooled_linear_head(head: str, equal: bool) -> None:
    """One node at a = 1 on the ray of all: gradient times activation, which GradCAM pools over positions first."""
    net, x = conv_net(13, head), image(13)
    activation = torch.relu(net[0](x[None])).detach()[0]
    one_node = canonical.integrated_gradients(net[2:].eval(), activation, target=0, quadrature="riemann", n_nodes=1)
    per_position = one_node.attribution().reshape(2, 16).sum(0)
    lin = canonical.gradcam_lin(net, x, layer=net[1], target=0).attribution()
    if equal:
        assert per_position == pytest.approx(lin, abs=1e-10)
    else:
        assert np.abs(per_position - lin).max() > 1e-2
