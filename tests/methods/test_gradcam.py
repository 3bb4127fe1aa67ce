"""GradCAM and GradCAM-lin: by hand, against captum, linear or not, and their sums on the way back to the input."""

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate

from gralis import GralisError, canonical, features, methods
from gralis.methods import Map, gradcam_map, gradcam_maps
from gralis.methods.layer_map import overlap, spread
from untouched import untouched


def network(seed: int = 0) -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = nn.Sequential(
            nn.Conv2d(3, 4, 3, stride=2, padding=1),
            nn.BatchNorm2d(4),
            nn.ReLU(inplace=True),
            nn.Conv2d(4, 5, 3, padding=1),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(5, 3),
        )
    return net.double().eval()


def image(seed: int = 0, side: int = 16) -> Tensor:
    return torch.randn(3, side, side, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_gradcam_by_hand() -> None:
    """A = (x, -x) on 2 x 2 positions, y = A^1_00 + 3 A^1_11 + 2 A^2_01: alpha = (4/4, 2/4), L = x - x/2."""
    net = nn.Sequential(nn.Conv2d(1, 2, 1, bias=False), nn.Flatten(), nn.Linear(8, 1, bias=False)).double().eval()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([1.0, -1.0]).reshape(2, 1, 1, 1))
        net[2].weight.copy_(torch.tensor([[1.0, 0, 0, 3, 0, 2, 0, 0]]))
    x = torch.tensor([[[2.0, -4.0], [6.0, 8.0]]]).double()
    linear, standard = (gradcam_map(net, x, layer="0", relu=relu) for relu in (False, True))
    assert linear.values.tolist() == [[1.0, -2.0], [3.0, 4.0]]
    assert standard.values.tolist() == [[1.0, 0.0], [3.0, 4.0]]


@pytest.mark.parametrize("name", ["0", "2", "3"])
def test_gradcam_against_captum_and_the_canonical_triple(name: str) -> None:
    attr = pytest.importorskip("captum.attr")
    net, x = network(), image()
    layer = net[int(name)]
    theirs = attr.LayerGradCam(net, layer).attribute(x[None], target=1).detach().numpy()[0, 0]
    with untouched(net):
        ours = gradcam_map(net, x, target=1, layer=name, relu=False)
    assert ours.values == pytest.approx(theirs, rel=1e-10, abs=1e-14)
    assert ours.layer == name
    triple = canonical.gradcam_lin(net, x, layer=layer, target=1).attribution()
    assert ours.values.ravel() == pytest.approx(triple, rel=1e-10, abs=1e-14)
    positive = attr.LayerGradCam(net, layer).attribute(x[None], target=1, relu_attributions=True)
    assert gradcam_map(net, x, target=1, layer=layer).values == pytest.approx(
        positive.detach().numpy()[0, 0], abs=1e-14
    )


def test_lin_is_linear_in_the_output_and_gradcam_is_not() -> None:
    net, x = network(), image()

    def of(target: object, relu: bool) -> np.ndarray:
        return gradcam_map(net, x, target=target, relu=relu).values  # type: ignore[arg-type]

    mixed = lambda outputs: 2 * outputs[:, 0] - 5 * outputs[:, 1]  # noqa: E731
    assert of(mixed, False) == pytest.approx(2 * of(0, False) - 5 * of(1, False), abs=1e-12)
    assert np.abs(of(mixed, True) - (2 * of(0, True) - 5 * of(1, True))).max() > 1e-3
    nonnegative = of(0, False) >= 0
    assert 0 < nonnegative.sum() < nonnegative.size
    assert (of(0, True) == of(0, False))[nonnegative].all()
    assert (of(0, True)[~nonnegative] == 0).all()


def test_the_default_is_the_last_layer_with_cells() -> None:
    net, x = network(), image()
    assert gradcam_map(net, x, target=0).layer == "4"  # not the pool, which has one cell
    assert gradcam_map(net, x, target=0).values == pytest.approx(gradcam_map(net, x, target=0, layer="4").values)


@pytest.mark.parametrize("weight", [None, 0.0], ids=["not read", "weight zero"])
def test_the_default_is_a_layer_that_the_output_reads(weight: float | None) -> None:
    """An auxiliary head runs last; a map of it would be all zeros, whatever the output reads."""

    class Auxiliary(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = network()[:5], nn.Conv2d(5, 2, 1).double()
            self.score = network()[5:]

        def forward(self, x: Tensor) -> Tensor:
            read = self.body(x)
            aside = self.head(read)
            return self.score(read) + (0 if weight is None else weight * aside.mean((1, 2, 3))[:, None])

    net, x = Auxiliary().eval(), image()
    with untouched(net):
        found = gradcam_map(net, x, target=1, relu=False)
    assert found.layer == "body"  # a container, whose output is that of its last layer
    assert found.values == pytest.approx(gradcam_map(network(), x, target=1, relu=False).values)
    assert np.abs(found.values).max() > 0
    assert gradcam_map(net, x, target=1, pre_activation=True).layer == "body.4"


def test_where_the_output_is_flat_the_last_layer_gives_zeros_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    net, x = network(), image()
    with torch.no_grad():
        net[7].weight.zero_()
    asked: list[object] = []
    ours = gradcam_maps.activation_and_gradient

    def counted(model: object, x: object, layer: object, *rest: object, **options: object) -> object:
        asked.append(layer)
        return ours(model, x, layer, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(gradcam_maps, "activation_and_gradient", counted)
    found = gradcam_map(net, x, target=1)
    assert found.layer == "4"
    assert not found.values.any()
    assert asked == [net[4], net[0], net[4]]


def test_before_the_activation_keeps_the_signs_of_the_layer() -> None:
    net, x = network(), image()
    with untouched(net):
        before = gradcam_map(net, x, target=2, relu=False, pre_activation=True)
    assert before.layer == "4"
    # By hand: A = conv(...), y = w . mean(relu(A)): dy/dA = w_k 1[A > 0] / Z.
    with torch.no_grad():
        activation = net[3](net[2](net[1](net[0](x[None]))))[0]
        alpha = net[7].weight[2] * (activation > 0).double().mean((1, 2)) / activation[0].numel()
        expected = torch.einsum("k,kij->ij", alpha, activation).numpy()
    assert before.values == pytest.approx(expected, abs=1e-12)
    after = gradcam_map(net, x, target=2, relu=False).values
    assert np.abs(before.values - after).max() > 1e-3


def test_a_model_without_a_map_is_told_so() -> None:
    dense = nn.Sequential(nn.Flatten(), nn.Linear(48, 2)).double().eval()
    x = image(side=4)
    with pytest.raises(GralisError, match=r"No layer of Sequential .* \(rows, channels, h, w\) .* layer="):
        gradcam_map(dense, x, target=0)
    with pytest.raises(GralisError, match="No activation of Sequential"):
        gradcam_map(dense, x, target=0, pre_activation=True)
    net = network()
    with pytest.raises(GralisError, match=r"'layer' .* such as '\d'"):
        gradcam_map(net, image(), target=0, layer="conv9")
    with untouched(net), pytest.raises(GralisError, match=r"output \(rows, channels"):
        gradcam_map(net, image(), target=0, layer="7")
    with pytest.raises(GralisError, match=r"'model' .* which has layers"):
        gradcam_map(lambda z: z.sum(1), image())
    with pytest.raises(GralisError, match="rows and columns"):
        gradcam_map(net, torch.ones(3))


@pytest.mark.parametrize(("h", "w"), [(7, 7), (5, 3), (1, 4), (16, 16), (20, 31)])
def test_both_ways_back_keep_the_sum(h: int, w: int) -> None:
    rng = np.random.default_rng(0)
    cells = Map(rng.standard_normal((h, w)), (3, 16, 18))
    assert cells.to_input().shape == (16, 18)
    assert cells.to_input().sum() == pytest.approx(cells.values.sum(), abs=1e-9)
    labels = rng.integers(0, 4, (16, 18))
    assert cells.on(labels).sum() == pytest.approx(cells.values.sum(), abs=1e-9)
    assert cells.on(features.channels((3, 16, 18))) == pytest.approx(np.full(3, cells.values.sum() / 3))


def test_whole_ratios_are_bilinear_upsampling() -> None:
    values = np.random.default_rng(1).standard_normal((4, 3))
    up = interpolate(torch.from_numpy(values)[None, None], size=(16, 15), mode="bilinear", align_corners=False)
    assert Map(values, (1, 16, 15)).to_input() * 20 == pytest.approx(up[0, 0].numpy(), abs=1e-12)


def test_regions_get_cells_by_the_area_they_cover() -> None:
    """Cells 3 pixels wide against regions 2 and 4 pixels wide, by brute force on a grid that divides both."""
    values = np.array([[6.0, 12.0]])
    labels = np.array([[0, 0, 1, 1, 1, 1]])
    assert Map(values, (1, 6)).on(labels) == pytest.approx([4.0, 14.0])
    assert overlap(2, 3) == pytest.approx(np.array([[2 / 3, 1 / 3, 0], [0, 1 / 3, 2 / 3]]))
    assert spread(3, 1) == pytest.approx(np.ones((3, 1)))


def test_as_a_method_the_map_is_on_the_features() -> None:
    net, x = network(), image()
    regions = features.grid(x.shape, 4)
    with untouched(net):
        cam = methods.gradcam(net, x, target=1, features=regions)
        linear = methods.gradcam_lin(net, x, target=1, features=regions, layer="2")
    assert cam.values == pytest.approx(cam.map.on(regions))
    assert cam.values.sum() == pytest.approx(cam.map.values.sum())
    assert cam.method == "GradCAM"
    assert linear.map.values == pytest.approx(gradcam_map(net, x, target=1, layer="2", relu=False).values)
    assert cam.delta == pytest.approx((net(x[None]) - net(0 * x[None]))[0, 1].item())
