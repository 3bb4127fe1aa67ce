"""Every canonical triple is linear in F; standard GradCAM, and LIME with a selection, are not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from canonical.examples import BASE, conv_net, every_mask, image, mixed
from gralis import canonical, explain
from gralis.canonical import Triple
from reference import (
    Model,
    network,
    point,
)

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
        fit = explain(model, x, plan="exhaustive", budget=None).lime(k_features=1, select="largest")
        return fit.values, fit.support

    (of_f, on_f), (of_g, on_g), (of_both, on_both) = map(one_feature, (f, g, lambda z: f(z) + g(z)))
    assert (on_f, on_g, on_both) == ((0,), (2,), (0,))
    assert np.abs(of_both - of_f - of_g).max() > 1.0
    fixed = [
        canonical.lime(model, x, masks=masks, support=on_f).attribution() for model in (f, g, lambda z: f(z) + g(z))
    ]
    np.testing.assert_allclose(fixed[2], fixed[0] + fixed[1], rtol=0, atol=1e-12)
