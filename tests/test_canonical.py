"""Canonical triples: each equals its method and is linear in F; the correspondence map, arrow by arrow."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gralis import Gaussian, GralisError, SizeKernel, Uniform, baselines, canonical, explain
from gralis.canonical import Triple
from gralis.games import Multilinear, appendix_e
from reference import (
    Model,
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

N = 4
BASE = np.linspace(-0.4, 0.3, N)


def conv_net(seed: int, head: str = "mlp") -> torch.nn.Sequential:
    """Two channels of 4 x 4 positions, three outputs; no global generator is touched."""
    layers = [torch.nn.Conv2d(1, 2, 3, padding=1), torch.nn.ReLU(inplace=True)]
    if head == "mlp":
        layers += [torch.nn.Flatten(), torch.nn.Linear(32, 6), torch.nn.Tanh(), torch.nn.Linear(6, 3)]
    else:
        layers += [torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten(), torch.nn.Linear(2, 3)]
    net = torch.nn.Sequential(*layers).double().eval()
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.from_numpy(rng.standard_normal(parameter.shape)))
    return net


def image(seed: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng([seed, 5]).standard_normal((1, 4, 4)))


def mixed(c: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """y_0 + c y_1: the functions of one fixed network and layer that a linear method must respect."""
    return lambda outputs: outputs[:, 0] + c * outputs[:, 1]


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


def every_mask(n: int) -> np.ndarray:
    return np.array(list(itertools.product([0, 1], repeat=n)))


def values_at(model: Model, x: np.ndarray, base: np.ndarray, masks: np.ndarray) -> np.ndarray:
    return model(torch.from_numpy(np.where(masks, x, base))).numpy()


# ---- each triple is its method


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
    found = explain(model, x, baseline=BASE, plan="exhaustive", budget=None)
    triple = canonical.lime(model, x, baseline=BASE)
    assert triple.attribution() == pytest.approx(found.lime().values, abs=1e-10)
    for select in ("lasso", "largest"):
        chosen = found.lime(k_features=2, select=select)
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
    found = explain(model, x, baseline=BASE, kernel=kernel, plan="exhaustive", budget=None, n_nodes=12)
    assert triple.attribution() == pytest.approx(found.values, abs=1e-10)
    assert triple.normalised


def test_groups_are_features_too() -> None:
    model, x, labels = network("tanh", 5, 7), point(5, 7), np.array([0, 1, 1, 2, 0])
    found = explain(model, x, features=labels, plan="exhaustive", budget=None, n_nodes=6)
    triple = canonical.gralis(model, x, features=labels, n_nodes=6)
    assert triple.attribution() == pytest.approx(found.values, abs=1e-10)
    assert canonical.shap(model, x, features=labels).attribution() == pytest.approx(found.shapley().values, abs=1e-10)
    assert canonical.lime(model, x, features=labels).attribution() == pytest.approx(found.lime().values, abs=1e-10)


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


# ---- linear in F


METHODS: dict[str, Callable[[Model, np.ndarray], Triple]] = {
    "SHAP": lambda f, x: canonical.shap(f, x, baseline=BASE[:3]),
    "LIME": lambda f, x: canonical.lime(f, x, baseline=BASE[:3]),
    "LIME, 2 features": lambda f, x: canonical.lime(f, x, baseline=BASE[:3], support=(0, 2)),
    "IG": lambda f, x: canonical.integrated_gradients(f, x, baseline=BASE[:3], n_nodes=5),
    "GRALIS": lambda f, x: canonical.gralis(f, x, baseline=BASE[:3], n_nodes=4),
}
finite = st.floats(-3, 3).map(lambda c: round(c, 6))
seeds = st.integers(0, 2**16)


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())
@given(first=seeds, second=seeds, b=finite, c=finite, kind=st.sampled_from(["softplus", "relu", "tanh"]))
@settings(max_examples=15)
def test_every_triple_is_linear_in_f(
    method: Callable[[Model, np.ndarray], Triple], first: int, second: int, b: float, c: float, kind: str
) -> None:
    f, g, x = network(kind, 3, first), network("softplus", 3, second), point(3, first)
    of_f, of_g, of_both = method(f, x), method(g, x), method(lambda z: b * f(z) + c * g(z), x)
    expected = b * of_f.attribution() + c * of_g.attribution()
    scale = 1 + np.abs(of_f.attribution()).max() + np.abs(of_g.attribution()).max()
    np.testing.assert_allclose(of_both.attribution(), expected, rtol=0, atol=1e-12 * scale)
    np.testing.assert_array_equal(of_both.weights, of_f.weights)  # the weights do not look at F
    assert of_both.index == of_f.index == of_g.index


@given(seed=seeds, c=finite)
@settings(max_examples=20)
def test_gradcam_lin_is_linear_in_y(seed: int, c: float) -> None:
    net, x = conv_net(seed), image(seed)
    first, second, both = (
        canonical.gradcam_lin(net, x, layer=net[1], target=target).attribution() for target in (0, 1, mixed(c))
    )
    np.testing.assert_allclose(both, first + c * second, rtol=0, atol=1e-12 * (1 + np.abs([first, second]).max()))


@given(seed=seeds)
@settings(max_examples=20)
def test_standard_gradcam_fails_that_test(seed: int) -> None:
    """For lambda = -1: ReLU(-L) is not -ReLU(L), wherever L is not zero."""
    net, x = conv_net(seed), image(seed)
    linear = canonical.gradcam_lin(net, x, layer=net[1], target=0).attribution()
    of_f = canonical.gradcam(net, x, layer=net[1], target=0)
    of_minus_f = canonical.gradcam(net, x, layer=net[1], target=lambda outputs: -outputs[:, 0])
    np.testing.assert_allclose(of_minus_f, np.maximum(-linear, 0), rtol=0, atol=1e-14)
    assert ((of_minus_f + of_f != 0) == (linear != 0)).all()
    assert (linear != 0).any()


def test_lime_with_a_selection_is_linear_only_given_its_support() -> None:
    """Two functions that choose different features: the K-feature fit of their sum is not the sum of their fits."""
    x, masks = np.ones(3), every_mask(3)
    f, g = (lambda z: 3 * z[:, 0] + z[:, 1]), (lambda z: z[:, 1] + 2.5 * z[:, 2])

    def one_feature(model: Model) -> tuple[np.ndarray, tuple[int, ...]]:
        found = explain(model, x, plan="exhaustive", budget=None).lime(k_features=1, select="largest")
        return found.values, found.support

    (of_f, on_f), (of_g, on_g), (of_both, on_both) = map(one_feature, (f, g, lambda z: f(z) + g(z)))
    assert (on_f, on_g, on_both) == ((0,), (2,), (0,))
    assert np.abs(of_both - of_f - of_g).max() > 1.0
    fixed = [
        canonical.lime(model, x, masks=masks, support=on_f).attribution() for model in (f, g, lambda z: f(z) + g(z))
    ]
    np.testing.assert_allclose(fixed[2], fixed[0] + fixed[1], rtol=0, atol=1e-12)


# ---- the correspondence map


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
    found = explain(model, x, plan="exhaustive", budget=None, **options)
    assert found.values == pytest.approx(ig, abs=1e-10)
    assert found.integrated_gradients().values == pytest.approx(ig, abs=1e-10)


@pytest.mark.parametrize("kind", ["softplus", "relu"])
def test_the_endpoint_plan_with_the_uniform_kernel_is_shapley(kind: str) -> None:
    model, x = network(kind, N, 9), point(N, 9)
    found = explain(model, x, baseline=BASE, plan="endpoint", kernel=Uniform(), budget=None)
    assert found.values == pytest.approx(canonical.shap(model, x, baseline=BASE).attribution(), abs=1e-10)
    assert found.values == pytest.approx(shapley_by_orders(game(model, x, BASE), N), abs=1e-10)
    local = explain(model, x, baseline=BASE, plan="endpoint", kernel=Gaussian(0.5), budget=None)
    assert np.abs(local.values - found.values).max() > 1e-3


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
    found = explain(model, x, baseline=BASE, plan="exhaustive", budget=None)
    shapley = shapley_by_orders(game(model, x, BASE), N)
    assert found.kernel_shap().values == pytest.approx(shapley, abs=1e-10)
    masks = every_mask(N)[1:-1]
    values = values_at(model, x, BASE, masks) - values_at(model, x, BASE, np.zeros((1, N)))
    # minimise |values - masks phi|^2 given sum phi = v(F), by eliminating the last feature
    total, last = found.delta, masks[:, -1:]
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


# ---- what a triple says, and what it refuses


def test_repr_says_what_the_weights_sum_to() -> None:
    text = repr(canonical.shap(lambda z: z.sum(1), np.ones(2)))
    assert text.startswith("SHAP triple, 2 features, weights are probabilities")
    assert "phi           1" in text
    assert "sum to -1 .. 2" in repr(canonical.integrated_gradients(lambda z: z.sum(1), np.array([2.0, -1.0])))


def test_shapes_must_agree() -> None:
    with pytest.raises(GralisError, match=r"'marginals' parameter of Triple must be of shape \(n_features, n_index\)"):
        Triple(((0, 1),), np.ones((1, 2)), np.ones((1, 3)))
    with pytest.raises(GralisError, match="'weights' parameter of Triple"):
        Triple(((0, 1), (0,)), np.ones((2, 2)), np.ones((2, 2)))


def test_refusals_are_sentences() -> None:
    f, x = (lambda z: z.sum(1)), np.ones(3)
    with pytest.raises(GralisError, match="up to n_features = 12; here n_features = 13"):
        canonical.shap(f, np.ones(13))
    with pytest.raises(GralisError, match="'baseline' parameter of a canonical triple must be a single one"):
        canonical.gralis(f, x, baseline=baselines.sample(np.ones((2, 3))))
    with pytest.raises(GralisError, match="'quadrature' parameter of a canonical triple must be 'midpoint'"):
        canonical.integrated_gradients(f, x, quadrature="random")
    with pytest.raises(GralisError, match="one array, against one baseline"):
        canonical.integrated_gradients(lambda a, b: a.sum(1) + b.sum(1), (x, x))
    with pytest.raises(GralisError, match=r"'masks' .* must be 0/1 rows of shape \(n_perturbations, 3\)"):
        canonical.lime(f, x, masks=np.ones((4, 2)))
    with pytest.raises(GralisError, match=r"'support' .* out of 0 \.\. 2"):
        canonical.lime(f, x, support=(0, 3))
    with pytest.raises(GralisError, match=r"'ridge' parameter of canonical\.lime must be a number >= 0"):
        canonical.lime(f, x, ridge=-1.0)
    with pytest.raises(GralisError, match=r"'sigma' parameter of canonical\.lime must be a number > 0"):
        canonical.lime(f, x, sigma=0.0)


def test_a_given_design_may_have_many_features() -> None:
    masks = np.random.default_rng(0).random((90, 40)) < 0.5
    slope = np.linspace(-1, 1, 40)
    found = canonical.lime(lambda z: z @ torch.from_numpy(slope), np.ones(40), masks=masks, ridge=0.0)
    assert found.attribution() == pytest.approx(slope, abs=1e-8)


def test_gradcam_refuses_layers_it_cannot_read_and_leaves_no_hook() -> None:
    net, x = conv_net(0), image(0)
    with pytest.raises(GralisError, match="must be a module inside the model"):
        canonical.gradcam_lin(net, x, layer=torch.nn.ReLU())
    with pytest.raises(GralisError, match=r"output \(rows, channels, positions \.\.\.\)"):
        canonical.gradcam_lin(net, x, layer=net[3], target=0)
    twice = torch.nn.Sequential(net[0], net[1], net[1], *net[2:]).eval()
    with pytest.raises(GralisError, match="called 2 times"):
        canonical.gradcam_lin(twice, x, layer=net[1], target=0)
    with pytest.raises(GralisError, match=r"'model' .* must be a torch\.nn\.Module"):
        canonical.gradcam_lin(lambda z: z, x, layer=net[1])  # type: ignore[arg-type]
    assert not any(part._forward_hooks for part in net.modules())
    assert all(parameter.requires_grad and parameter.grad is None for parameter in net.parameters())
