"""What a triple says about itself, and what the functions refuse."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from canonical.examples import conv_net, image
from gralis import GralisError, baselines, canonical
from gralis.canonical import Triple


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
    triple = canonical.lime(lambda z: z @ torch.from_numpy(slope), np.ones(40), masks=masks, ridge=0.0)
    assert triple.attribution() == pytest.approx(slope, abs=1e-8)


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
