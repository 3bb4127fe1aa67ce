"""MS-GRALIS: weights against closed forms and optimality conditions, levels brought to common features."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

import gralis
from gralis import GralisError, explain, multiscale
from gralis.estimators import Estimate
from gralis.features import channels, grid, groups, slic_ensemble
from gralis.features.overlap import overlap
from gralis.scales import between_levels, minimum_variance


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return (
        nn.Sequential(nn.Conv2d(2, 6, 3, stride=2, padding=1), nn.Tanh(), nn.Flatten(), nn.Linear(96, 4), nn.Tanh())
        .append(nn.Linear(4, 3))
        .double()
        .eval()
    )


def image(seed: int = 1) -> torch.Tensor:
    return torch.randn(2, 8, 8, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ---- weights


def test_the_toy_of_appendix_e() -> None:
    weights = minimum_variance([1.0, 4.0, 0.25], "inverse-variance")
    assert weights == pytest.approx([float(Fraction(k, 21)) for k in (4, 1, 16)], abs=1e-15)
    variances = np.array([1.0, 4.0, 0.25])
    assert (weights**2 * variances).sum() == pytest.approx(float(Fraction(4, 21)), abs=1e-15)
    uniform = minimum_variance(variances, "uniform")
    assert (uniform**2 * variances).sum() == pytest.approx(5.25 / 9)  # 0.583
    assert minimum_variance(variances, "covariance") == pytest.approx(weights, abs=1e-9)
    assert minimum_variance(variances, "nonnegative") == pytest.approx(weights, abs=1e-9)


def covariances() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    result = []
    for size in (2, 3, 5, 8):
        for shared in (0.1, 1.0, 3.0):
            root = rng.standard_normal((size, size)) + shared * rng.random((size, 1))
            result.append(root @ root.T * np.exp(rng.standard_normal()))
    return result


@pytest.mark.parametrize("sigma", covariances(), ids=lambda s: f"{len(s)} levels")
def test_covariance_weights_solve_the_linear_system(sigma: np.ndarray) -> None:
    expected = np.linalg.solve(sigma, np.ones(len(sigma)))
    assert minimum_variance(sigma) == pytest.approx(expected / expected.sum(), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("sigma", covariances(), ids=lambda s: f"{len(s)} levels")
def test_nonnegative_weights_satisfy_the_optimality_conditions(sigma: np.ndarray) -> None:
    """KKT: sigma w >= w' sigma w everywhere, with equality where w > 0."""
    weights = minimum_variance(sigma, "nonnegative")
    least = weights @ sigma @ weights
    slope = sigma @ weights
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1)
    assert (slope >= least * (1 - 1e-6)).all()
    assert slope[weights > 1e-12] == pytest.approx(np.full((weights > 1e-12).sum(), least), rel=1e-6)


def test_some_nonnegative_weights_are_no_clipped_ones() -> None:
    different = 0
    for sigma in covariances():
        free = minimum_variance(sigma)
        clipped = np.maximum(free, 0) / np.maximum(free, 0).sum()
        best = minimum_variance(sigma, "nonnegative")
        assert best @ sigma @ best <= clipped @ sigma @ clipped * (1 + 1e-9)
        different += not np.allclose(best, clipped, atol=1e-6)
    assert different


@pytest.mark.parametrize("method", ["inverse-variance", "covariance", "nonnegative"])
def test_levels_without_variance_take_all_the_weight(method: str) -> None:
    assert minimum_variance([2.0, 0.0, 1.0, 0.0], method).tolist() == [0.0, 0.5, 0.0, 0.5]


@pytest.mark.parametrize(
    ("covariance", "method", "sentence"),
    [
        ([1.0, -1.0], "covariance", "variances >= 0"),
        ([[1.0, 2.0], [2.0, 1.0]], "covariance", "negative eigenvalue"),
        ([[1.0, 0.0], [0.5, 1.0]], "covariance", "symmetric"),
        ([1.0, np.nan], "covariance", "finite"),
        ([1.0, 2.0], "best", "'inverse-variance', 'covariance', 'nonnegative', 'uniform'"),
    ],
)
def test_bad_covariances(covariance: object, method: str, sentence: str) -> None:
    with pytest.raises(GralisError, match=sentence):
        minimum_variance(covariance, method)


# ---- common features


def test_overlap_keeps_sums_and_splits_by_area() -> None:
    cells, pixels = grid((5, 3, 3), 1), grid((2, 8, 8), 2)
    shares = overlap(cells, pixels)
    assert shares.sum(0) == pytest.approx(np.ones(9), abs=1e-12)
    assert (shares >= 0).all()
    # The middle cell covers [8/3, 16/3] of each axis; the patch rows are [2, 4] and [4, 6] there.
    middle = shares[:, 4].reshape(4, 4)
    assert middle[1:3, 1:3] == pytest.approx(np.full((2, 2), 0.25))
    corner = shares[:, 0].reshape(4, 4)
    assert corner[0, 0] == pytest.approx((2 / (8 / 3)) ** 2)


def test_overlap_of_partitions_of_one_shape_counts_coordinates() -> None:
    rng = np.random.default_rng(0)
    a, b = groups(rng.permutation(np.arange(24) % 4)), groups(rng.permutation(np.arange(24) % 6))
    expected = np.array([[(a.labels[0][b.labels[0] == t] == s).sum() / 6 for s in range(4)] for t in range(6)])
    assert overlap(a, b) == pytest.approx(expected)


def test_channels_have_no_place_in_the_input() -> None:
    with pytest.raises(GralisError, match="differ between channels"):
        overlap(channels((6, 4, 4)), grid((2, 8, 8), 2))
    with pytest.raises(GralisError, match="spatial axes"):
        overlap(groups(np.arange(5)), grid((2, 8, 8), 2))


# ---- the combination


def test_levels_are_their_own_explanations_and_sums_are_kept() -> None:
    net, x = network(), image()
    result = multiscale(net, x, [grid(x.shape, 2), grid(x.shape, 4), "1"], target=1, budget=600, seed=3)
    assert result.features.n_features == 16
    fine = explain(net, x, features=grid(x.shape, 2), target=1, budget=600, seed=3, replicates=12)
    assert result.levels[0].explanation.values == pytest.approx(fine.values, abs=1e-12)
    for level in result.levels:
        assert level.estimate.values.sum() == pytest.approx(level.explanation.values.sum(), abs=1e-9)
    expected = sum(w * level.estimate.values for w, level in zip(result.weights, result.levels, strict=True))
    assert result.values == pytest.approx(expected, abs=1e-12)
    assert result.weights.sum() == pytest.approx(1)
    assert result.to_input().shape == (2, 8, 8)
    assert "3 levels" in repr(result)


def test_the_combination_has_the_form_of_the_input() -> None:
    x = {"a": torch.ones(3, dtype=torch.float64), "b": torch.ones(2, dtype=torch.float64)}
    ours = explain(lambda a, b: (a**2).sum(1) + b.prod(1), x)
    result = multiscale(lambda a, b: (a**2).sum(1) + b.prod(1), x, [ours, ours.features], weights="uniform")
    assert {name: values.shape for name, values in result.to_input().items()} == {"a": (3,), "b": (2,)}


def test_a_coarse_level_is_spread_evenly() -> None:
    net, x = network(), image()
    result = multiscale(net, x, [grid(x.shape, 2), grid(x.shape, 4)], weights=[0.0, 1.0], target=0, budget=300)
    coarse = explain(net, x, features=grid(x.shape, 4), target=0, budget=300).values.reshape(2, 2)
    assert result.values.reshape(4, 4) == pytest.approx(np.kron(coarse, np.ones((2, 2))) / 4, abs=1e-9)


@pytest.mark.parametrize("method", ["inverse-variance", "covariance", "nonnegative"])
def test_an_enumerated_level_does_not_silence_a_level_that_disagrees(method: str) -> None:
    net, x = network(), image()
    levels = [grid(x.shape, 2), grid(x.shape, 4)]  # sixteen regions are sampled, four are enumerated
    result = multiscale(net, x, levels, weights=method, target=0, budget=300)
    assert result.weights == pytest.approx([0.5, 0.5], abs=0.05)
    assert (result.between > 100 * result.variance).mean() > 0.5
    alone = multiscale(net, x, levels, weights=method, target=0, budget=300, disagreement=False)
    assert alone.weights == pytest.approx([0.0, 1.0], abs=1e-9)
    assert alone.stderr == pytest.approx(np.zeros(16), abs=1e-12)


def test_the_quadrature_error_counts_in_the_weights() -> None:
    """Two enumerated levels of one quantity, one with two midpoints per ray: it must get the smaller weight."""
    net, x = network(), image()
    cells = grid(x.shape, 4)
    rough = explain(net, x, features=cells, target=0, plan="exhaustive", quadrature="midpoint", n_nodes=2)
    fine = explain(net, x, features=cells, target=0, plan="exhaustive", n_nodes=8)
    result = multiscale(net, x, [rough, fine], target=0)
    assert np.abs(rough.values - fine.values).max() > 1e-5
    assert result.weights[1] > 0.95


# ---- the variance between levels


def test_the_variance_between_levels_in_closed_form() -> None:
    """Without errors it is the variance of the values; errors d of two replicates have the variance d^2."""
    rng = np.random.default_rng(0)
    values = rng.standard_normal((4, 7))
    assert between_levels(values, np.zeros((4, 3, 7))) == pytest.approx(values.var(0, ddof=1).mean())
    # Two levels, one feature: Q = (y1 - y2)^2 / 2 = 50, E = (s1 + s2) / 2 = 5 / 2, S = sqrt(2) E.
    departures = np.array([[1.0, -1.0, 0, 0], [0, 0, 2.0, -2.0]])[..., None] * np.sqrt(6.0)
    assert between_levels([[0.0], [10.0]], departures) == pytest.approx(50 - 2.5 * (1 + 4 * np.sqrt(2)))
    numerical = np.array([[3.0], [4.0]])
    assert between_levels([[0.0], [10.0]], departures, numerical) == pytest.approx(50 - 2.5 - 12.5 - 10 * np.sqrt(2))
    assert between_levels([[0.0]], departures[:1]) == 0
    with pytest.raises(GralisError, match="departures"):
        between_levels([[0.0]], departures)


@pytest.mark.parametrize(("n_levels", "n_features"), [(2, 1), (2, 12), (5, 3)])
def test_levels_that_agree_have_no_variance_between_them_and_others_have_theirs(n_levels: int, n_features: int) -> None:
    rng, n = np.random.default_rng(1), 12
    scale = np.exp(rng.standard_normal((n_levels, 1, 1)))
    agree, differ = [], []
    for _ in range(400):
        replicates = scale * rng.standard_normal((n_levels, n, n_features))
        values = replicates.mean(1)
        departures = replicates - values[:, None]
        agree.append(between_levels(values, departures))
        differ.append(between_levels(values + 20 * rng.standard_normal(values.shape), departures))
    assert np.mean(np.array(agree) == 0) > 0.95
    assert np.mean(differ) == pytest.approx(400, rel=0.15)


@pytest.mark.parametrize("method", ["inverse-variance", "covariance", "nonnegative", "uniform"])
def test_intervals_and_the_measured_variance(method: str) -> None:
    net, x = network(), image()
    levels = [grid(x.shape, 2), groups(np.repeat(np.arange(8)[:, None], 8, axis=1), shape=x.shape), "1"]
    result = multiscale(net, x, levels, weights=method, target=2, budget=400, replicates=24, per_feature=False)
    assert (result.stderr >= np.sqrt(result.variance) - 1e-15).all()
    assert result.interval(0.95).shape == (16, 2)
    assert result.measured.sum() > 0
    assert result.between.shape == (16,)


def test_covariance_weights_are_no_worse_than_the_best_level() -> None:
    """Levels that estimate one quantity: over seeds the combination varies less than each, and says how much."""
    net, x = network(), image()
    cells = grid(x.shape, 2)

    def level(seed: int, plan: str, budget: int) -> gralis.Explanation:
        return explain(net, x, features=cells, target=2, plan=plan, budget=budget, replicates=16, seed=seed)

    runs = []
    for seed in range(24):
        levels = [level(seed, "independent", 3200), level(100 + seed, "independent", 1600), level(seed, "shared", 160)]
        runs.append(multiscale(net, x, levels, weights="covariance", disagreement=False))
    combined = np.stack([run.values for run in runs]).var(0, ddof=1).sum()
    single = [np.stack([run.levels[k].estimate.values for run in runs]).var(0, ddof=1).sum() for k in range(3)]
    assert combined <= 1.3 * min(single)
    assert np.mean([run.measured.sum() for run in runs]) == pytest.approx(combined, rel=0.5)
    # With its weights taken as given, no run states more than its best level does.
    for run in runs:
        assert run.variance.sum() <= min((level.estimate.stderr**2).sum() for level in run.levels) * (1 + 1e-9)


def test_weights_of_levels_that_disagree_have_a_variance_too() -> None:
    """The stated error must cover what choosing the weights on the sample does to the result."""
    net, x = network(), image()
    levels = [grid(x.shape, 2), groups(np.repeat(np.arange(8)[:, None], 8, axis=1), shape=x.shape)]
    runs = [
        multiscale(
            net, x, levels, weights="covariance", target=2, budget=300, replicates=16, seed=seed, disagreement=False
        )
        for seed in range(24)
    ]
    combined = np.stack([run.values for run in runs]).var(0, ddof=1).sum()
    stated = np.mean([(run.stderr**2).sum() for run in runs])
    assert np.mean([run.variance.sum() for run in runs]) < 0.2 * combined
    assert 0.3 < stated / combined < 4


def test_shared_errors_make_independence_optimistic() -> None:
    """Two levels that are the same level are perfectly correlated: the variance is that of one, not half of it."""
    net, x = network(), image()
    result = multiscale(net, x, [grid(x.shape, 2), grid(x.shape, 2)], target=2, budget=300)
    assert result.weights == pytest.approx([0.5, 0.5])
    assert result.optimism == pytest.approx(2.0, rel=1e-6)
    assert result.between == pytest.approx(np.zeros(16), abs=1e-20)


def test_weights_per_feature() -> None:
    net, x = network(), image()
    levels = [grid(x.shape, 2), groups(np.repeat(np.arange(8)[:, None], 8, axis=1), shape=x.shape)]
    result = multiscale(net, x, levels, weights="nonnegative", per_feature=True, target=2, budget=400, replicates=12)
    assert result.weights.shape == (2, 16)
    assert result.weights.sum(0) == pytest.approx(np.ones(16))
    assert (result.weights >= 0).all()
    with pytest.raises(GralisError, match="more replicates"):
        multiscale(net, x, [levels[0]] * 5, weights="covariance", per_feature=True, target=2, budget=400, replicates=5)


def test_an_ensemble_of_segmentations_tells_what_the_segmentation_decides() -> None:
    pytest.importorskip("skimage")
    net, x = network(), image()
    levels = slic_ensemble(x[0].numpy(), (6, 10, 16), 1.0, shape=(2, 8, 8))
    result = multiscale(net, x, levels, weights="uniform", on="pixels", target=1, budget=500)
    assert result.values.shape == (128,)
    assert result.values.sum() == pytest.approx(np.mean([level.explanation.values.sum() for level in result.levels]))
    spread = np.stack([level.explanation.to_input().ravel() for level in result.levels])
    sizes = np.stack(
        [level.explanation.features.sizes[level.explanation.features.labels[0]].ravel() for level in result.levels]
    )
    assert result.between == pytest.approx((spread / sizes).var(0, ddof=1), abs=1e-12)
    assert result.between.max() > 0


def test_bad_levels() -> None:
    net, x = network(), image()
    cells = grid(x.shape, 2)
    with pytest.raises(GralisError, match="at least one level"):
        multiscale(net, x, [], target=0)
    with pytest.raises(GralisError, match="levels"):
        multiscale(net, x, [3.5], target=0)
    with pytest.raises(GralisError, match="on=Features"):
        multiscale(net, x, ["1"], target=0, budget=300)
    with pytest.raises(GralisError, match="sum to 1"):
        multiscale(net, x, [cells, "1"], weights=[0.5, 0.6], target=0, budget=300)
    with pytest.raises(GralisError, match="'0'"):
        multiscale(net, x, [cells, "00"], target=0, budget=300)
    ours = explain(net, x, features=cells, target=0, budget=300, replicates=6)
    with pytest.raises(GralisError, match="same replicates"):
        multiscale(net, x, [ours, "1"], target=0, budget=300)
    with pytest.raises(GralisError, match="leave features"):
        multiscale(net, x, [cells], features=cells, target=0)


@pytest.mark.parametrize(
    ("method", "apart"), [("inverse-variance", 0.0), ("inverse-variance", 12.0), ("covariance", 6.0)]
)
def test_intervals_with_weights_per_feature_cover(method: str, apart: float) -> None:
    """Levels that differ by 0 to 30 standard errors, with normal replicates: the truth is known.

    The intervals must hold for the weights that the result shows, and for the weights that other samples would give.
    """
    x = torch.ones(4, dtype=torch.float64)
    known = explain(lambda z: z.sum(1), x, budget=100, plan="independent", replicates=12)
    rng = np.random.default_rng(0)
    truth = rng.standard_normal((2, 4))
    truth[1] = truth[0] + apart * np.array([1.0, -1.0, 0.5, 0.0]) / np.sqrt(12)
    runs = []
    for _ in range(100):
        replicates = rng.standard_normal((2, 12, 4)) * np.array([1.0, 0.6])[:, None, None]
        estimates = [Estimate(t + r.mean(0), r - r.mean(0), "known") for t, r in zip(truth, replicates, strict=True)]
        levels = [replace(known, estimate=estimate) for estimate in estimates]
        runs.append(multiscale(lambda z: z.sum(1), x, levels, weights=method, per_feature=True, target=None))
    weights, half = np.stack([run.weights for run in runs]), np.stack([run.half_widths() for run in runs])
    for chosen in (weights, weights.mean(0)):
        error = np.stack([run.values for run in runs]) - (chosen * truth).sum(-2)
        assert (np.abs(error) <= half).all(1).mean() >= 0.92
