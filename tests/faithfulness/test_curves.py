"""Deletion, insertion and ROAD against closed forms; none of them may depend on the batch size."""

import numpy as np
import pytest
import torch
from torch import nn

from gralis import GralisError, faithfulness, features, methods
from gralis.baselines import sample
from gralis.faithfulness import NoisyLinear, deletion, insertion, road_gap, road_lerf, road_morf
from untouched import untouched

WEIGHTS = np.array([3.0, -1.0, 0.5, 4.0, 0.0, -2.5])
X = np.array([1.0, 2.0, -1.0, 0.5, 3.0, 1.0])
BASE = np.array([0.0, 0.5, 0.0, -0.5, 1.0, 0.0])
PHI = WEIGHTS * (X - BASE)  # what every method gives for a linear model


def linear(z: torch.Tensor) -> torch.Tensor:
    return z @ torch.from_numpy(WEIGHTS) + 7


def convnet() -> nn.Sequential:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(
            nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(inplace=True), nn.AvgPool2d(4), nn.Flatten()
        )
        net.append(nn.Linear(54, 4))
    return net.double().eval()


def picture(seed: int = 0) -> torch.Tensor:
    return torch.rand(3, 12, 12, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def closed_form_deletion(phi: np.ndarray) -> float:
    """F(x) minus the sum of the j largest, j = 0 .. n, by trapezoids: an average with weights from the positions."""
    n, largest_first = len(phi), np.sort(phi)[::-1]
    lost = sum((n - j - 0.5) * value for j, value in enumerate(largest_first))  # value j is missing from j + 1 on
    return float(linear(torch.from_numpy(X)[None])) - lost / n


def test_deletion_of_a_linear_model_in_closed_form() -> None:
    score = deletion(linear, X, PHI, baseline=BASE)
    assert score.value == pytest.approx(closed_form_deletion(PHI), abs=1e-12)
    assert score.better == "lower"
    assert score.curve.at.tolist() == pytest.approx(np.arange(7) / 6)
    assert score.curve.values[[0, -1]] == pytest.approx(linear(torch.from_numpy(np.stack([X, BASE]))).numpy())
    worse = [deletion(linear, X, np.random.default_rng(s).standard_normal(6), baseline=BASE).value for s in range(8)]
    assert min(worse) >= score.value


def test_insertion_mirrors_deletion() -> None:
    """Of the same linear model the two curves add up to F(x) + F(x'); of any, insertion is deletion backwards."""
    both = float(linear(torch.from_numpy(np.stack([X, BASE]))).sum())
    removed, added = (metric(linear, X, PHI, baseline=BASE) for metric in (deletion, insertion))
    assert removed.curve.values + added.curve.values == pytest.approx(np.full(7, both))
    assert added.better == "higher"
    net, x = convnet(), picture()
    phi = np.random.default_rng(0).standard_normal(9)
    options = {"target": 1, "features": features.grid(x.shape, 4), "baseline": "blur"}
    forth, back = insertion(net, x, phi, **options), deletion(net, x, -phi, **options)
    assert forth.curve.values == pytest.approx(back.curve.values[::-1], abs=1e-12)


def test_signs_count_before_magnitudes() -> None:
    """The feature that lowers F is removed last, not second."""
    f = lambda z: z @ torch.tensor([3.0, -2.0, 1.0], dtype=torch.float64)  # noqa: E731
    assert deletion(f, np.ones(3), np.array([3.0, -2.0, 1.0])).curve.values.tolist() == [2.0, -1.0, -2.0, 0.0]


def test_normalised_curves_run_from_one_to_zero_whatever_the_scale_of_f() -> None:
    plain = deletion(linear, X, PHI, baseline=BASE, normalise=True)
    scaled = deletion(lambda z: 50 * linear(z) - 3, X, PHI, baseline=BASE, normalise=True)
    assert plain.curve.values[[0, -1]].tolist() == [1.0, 0.0]
    assert plain.value == pytest.approx(scaled.value)
    assert insertion(linear, X, PHI, baseline=BASE, normalise=True).curve.values[-1] == 1.0
    with pytest.raises(GralisError, match="no scale"):
        deletion(lambda z: 0 * z.sum(1), X, PHI, normalise=True)


def test_a_distribution_of_baselines_gives_the_mean_curve() -> None:
    rows = np.stack([BASE, 2 * BASE + 1])
    f = lambda z: (z**2).sum(1)  # noqa: E731
    mean = deletion(f, X, PHI, baseline=sample(rows)).curve.values
    each = [deletion(f, X, PHI, baseline=row).curve.values for row in rows]
    assert mean == pytest.approx(np.mean(each, axis=0))


def test_pixels_are_removed_with_all_their_channels_in_the_order_of_their_signed_sums() -> None:
    x = torch.ones(2, 1, 3, dtype=torch.float64)
    # Channel sums 1, 3, 2 (by magnitude the first pixel, 9 + 8, would lead).
    phi = np.array([[[9.0, 3.0, 1.0]], [[-8.0, 0.0, 1.0]]])
    f = lambda z: (z * torch.tensor([1.0, 10.0, 100.0], dtype=torch.float64)).sum((1, 2, 3))  # noqa: E731
    curve = deletion(f, x, phi, level="pixel").curve
    assert curve.values.tolist() == [222.0, 202.0, 2.0, 0.0]


def test_region_values_painted_on_pixels_delete_region_by_region() -> None:
    net, x = convnet(), picture()
    regions = features.grid(x.shape, 4)
    phi = np.random.default_rng(1).standard_normal(9)
    fine = deletion(net, x, phi, target=0, features=regions, level="pixel", steps=9).curve
    coarse = deletion(net, x, phi, target=0, features=regions).curve
    assert fine.values == pytest.approx(coarse.values, abs=1e-12)  # 144 pixels in 9 steps of 16


def test_steps_bound_the_work() -> None:
    net, x = convnet(), picture()
    score = deletion(net, x, np.random.default_rng(0).standard_normal(x.shape), target=0, level="pixel", steps=10)
    assert len(score.curve.at) == 11
    assert score.n_forwards == 11
    assert score.curve.at == pytest.approx(np.round(np.linspace(0, 144, 11)) / 144)


@pytest.mark.parametrize("baseline", [0.0, "blur", "mean-color", "noisy-linear"])
@pytest.mark.parametrize("metric", [deletion, insertion, road_morf, road_lerf, road_gap])
def test_no_metric_depends_on_the_batch_size_or_touches_the_model(metric, baseline) -> None:
    net, x = convnet(), picture()
    phi = np.random.default_rng(2).standard_normal((12, 12))
    options = {"target": 2, "baseline": baseline, "level": "pixel", "seed": 5}
    with untouched(net):
        scores = [metric(net, x, phi, batch_size=size, **options) for size in (1, 7, 64)]
    for score in scores[1:]:
        assert score.curve.values == pytest.approx(scores[0].curve.values, abs=1e-10)
        assert score.n_forwards == scores[0].n_forwards


def test_ties_are_broken_by_the_seed() -> None:
    orders = {tuple(deletion(linear, X, np.zeros(6), seed=seed).curve.values) for seed in range(5)}
    assert len(orders) > 1
    same = [deletion(linear, X, np.zeros(6), seed=3).curve.values.tolist() for _ in range(2)]
    assert same[0] == same[1]


class Patch(nn.Module):
    """Sees one region of the image only, and likes it bright."""

    def __init__(self, inside: np.ndarray) -> None:
        super().__init__()
        self.register_buffer("inside", torch.from_numpy(inside).double())

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(2 * ((z * self.inside).sum((1, 2, 3)) / self.inside.sum() - 0.5))


def test_road_tells_a_perfect_ranking_from_a_reversed_one() -> None:
    rng = np.random.default_rng(0)
    inside = np.zeros((12, 12))
    inside[4:8, 4:8] = 1
    x = 0.1 * rng.random((1, 12, 12)) + inside
    perfect = inside + 1e-3 * rng.random((12, 12))
    net = Patch(inside).eval()
    first, last = (road(net, x, perfect).curve.values for road in (road_morf, road_lerf))
    assert (first <= last + 1e-9).all()
    assert (first + 0.1 < last)[1:4].all()
    assert road_morf(net, x, -perfect).value == pytest.approx(road_lerf(net, x, perfect).value, abs=0.02)
    gap = road_gap(net, x, perfect)
    assert gap.value == pytest.approx((last - first).mean(), abs=1e-12)
    assert gap.better == "higher"
    assert gap.value > road_gap(net, x, rng.standard_normal((12, 12))).value + 0.1


def test_road_of_a_model_that_sees_imputed_pixels_by_hand() -> None:
    """i^2 on 3 x 3 with its centre removed: F = the centre, 22.6667 instead of 16."""
    x = np.arange(9.0).reshape(1, 3, 3) ** 2
    phi = np.zeros((3, 3))
    phi[1, 1] = 1
    score = road_morf(lambda z: z[:, 0, 1, 1], x, phi, baseline=NoisyLinear(0.0), fractions=[0.0, 1 / 9])
    assert score.curve.values == pytest.approx([16.0, 22.666667], abs=1e-6)


def test_attributions_of_the_methods_are_taken_as_they_are() -> None:
    net, x = convnet(), picture()
    regions = features.grid(x.shape, 4)
    attributions = methods.run(["gralis", "occlusion"], net, x, target=1, features=regions, budget=300)
    for attribution in attributions.values():
        by_object = deletion(net, x, attribution, target=1).value
        assert by_object == deletion(net, x, attribution.values, target=1, features=regions).value
    with pytest.raises(GralisError, match="those of the attribution"):
        deletion(net, x, attributions["gralis"], target=1, features=features.grid(x.shape, 6))


def test_bad_input_is_told_in_a_sentence() -> None:
    with pytest.raises(GralisError, match=r"one number per feature \(6\)"):
        deletion(linear, X, np.ones(5))
    with pytest.raises(GralisError, match="finite numbers"):
        deletion(linear, X, np.array([1.0, np.nan, 0, 0, 0, 0]))
    with pytest.raises(GralisError, match=r"'level' .* 'region'"):
        deletion(linear, X, PHI, level="patch")  # type: ignore[arg-type]
    with pytest.raises(GralisError, match="rows and columns"):
        deletion(linear, X, PHI, level="pixel")
    with pytest.raises(GralisError, match="'steps'"):
        deletion(linear, X, PHI, steps=0)
    with pytest.raises(GralisError, match="'batch_size'"):
        deletion(linear, X, PHI, batch_size=0)
    for wrong in ([], [0.5, 0.2], [-0.1], "half"):
        with pytest.raises(GralisError, match="'fractions'"):
            road_morf(lambda z: z.sum((1, 2)), np.ones((3, 3)), np.ones((3, 3)), fractions=wrong)
    with pytest.raises(GralisError, match="divide their channels"):
        road_morf(
            lambda z: z.sum((1, 2, 3)),
            np.ones((2, 3, 3)),
            np.ones(2),
            features=features.channels((2, 3, 3)),
            level="region",
        )
    with pytest.raises(GralisError, match="'noise'"):
        NoisyLinear(-1.0)
    with pytest.raises(GralisError, match="scores of one metric"):
        faithfulness.over([])


def test_large_images_in_another_layout_give_the_same_curve() -> None:
    """128 x 128 x 3 go in with their channels last; the plain loop does not."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(nn.Conv2d(3, 4, 5, stride=4), nn.ReLU(), nn.Flatten(), nn.LazyLinear(2)).double().eval()
    x = torch.rand(3, 128, 128, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    regions = features.grid(x.shape, 64)
    with torch.no_grad():
        net(x[None])
        phi, point, expected = np.array([2.0, 4.0, 1.0, 3.0]), x.clone(), []
        for region in (None, 1, 3, 0, 2):
            point[torch.from_numpy(regions.labels[0] == region)] = 0.0
            expected.append(net(point[None])[0, 1].item())
    assert deletion(net, x, phi, target=1, features=regions).curve.values == pytest.approx(expected, abs=1e-12)
