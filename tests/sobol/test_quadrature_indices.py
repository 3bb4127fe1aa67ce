"""Sensitivity by quadrature: within its stated error, exact where it says so, against closed forms and enumeration."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from gralis.games import Anova, Ishigami, Multilinear, SobolG, appendix_e
from gralis.sobol import sensitivity
from gralis.sobol.quadrature import UnresolvedError
from reference import network
from sobol_answers import by_enumeration, known


@pytest.mark.parametrize(
    "f",
    [
        Ishigami(),
        SobolG((0, 1, 4.5, 9)),
        SobolG((0, 1, 4.5, 9, 99)),
        appendix_e(),
        Multilinear.random(5, 5, seed=1),
        Multilinear({(0,): 1, (2,): 2}, 3, bounds=[(0, 1), (-1, 1), (2, 5)]),
    ],
    ids=["ishigami", "g4", "g5", "appendix-e", "polynomial", "inert"],
)
def test_quadrature_is_as_good_as_it_says(f: Anova) -> None:
    result = sensitivity(f, f.bounds)
    assert not result.exact  # finitely many points of a continuous input prove nothing
    assert not result.doubts
    for kind, expected in known(f).items():
        found, half = result.estimates[kind].values, np.asarray(result._half(kind))
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11, err_msg=kind)
        assert (np.abs(found - expected) <= half).all()
        assert (half < 1e-9 * max(1, result.variance)).all()
    assert result.quadrature_error is not None
    assert result.quadrature_error < 1e-9
    assert result.n_evaluations < 2**15


def test_the_accessors_are_the_answers() -> None:
    f = Ishigami()
    result = sensitivity(f, f.bounds)
    assert result.closed[0, 2] == pytest.approx(float(f.closed()[0, 2]))
    assert result.pairs[0, 2] == pytest.approx(float(f.pairs()[0, 2]))
    assert result.pairs[1, 2] == pytest.approx(0.0, abs=1e-12)
    assert result.shapley.sum() == pytest.approx(1.0)
    assert (result.mean, result.variance) == pytest.approx((3.5, float(f.variance())))
    assert result.first_half_width.tolist() == [result.quadrature_error] * 3
    assert 0 < result.closed_half_width[0, 1] == result.pairs_half_width[0, 1] < 1e-10


def test_the_eight_inputs_of_sobol_g_by_quadrature() -> None:
    f = SobolG()
    result = sensitivity(f, f.bounds, method="quadrature", budget=None)
    for kind, expected in known(f).items():
        np.testing.assert_allclose(result.estimates[kind].values, expected, rtol=0, atol=1e-10)


def test_few_distinct_values_are_enumerated() -> None:
    rng = np.random.default_rng(3)
    X = np.stack([rng.integers(0, 3, 40), rng.integers(0, 2, 40) * 2.5, rng.integers(-2, 2, 40)], axis=1)
    f = network("relu", 3, 1)
    result = sensitivity(f, X.astype(float))
    pairs = [np.unique(column, return_counts=True) for column in X.T]
    mean, closed = by_enumeration(
        lambda z: f(torch.from_numpy(z)).numpy(), [v for v, _ in pairs], [c / c.sum() for _, c in pairs]
    )
    full = frozenset(range(3))
    assert result.exact
    assert max(result.quadrature_error, result.first_half_width.max()) < 1e-12
    assert (result.mean, result.variance) == pytest.approx((mean, closed[full]), rel=1e-10)
    np.testing.assert_allclose(result.first, [closed[frozenset({i})] / closed[full] for i in range(3)], atol=1e-12)
    np.testing.assert_allclose(result.total, [1 - closed[full - {i}] / closed[full] for i in range(3)], atol=1e-12)
    for pair, index in result.closed.items():
        assert index == pytest.approx(closed[frozenset(pair)] / closed[full], abs=1e-12)
    assert "3 columns of X (40 rows) treated as independent" in result.inputs


def test_single_precision_is_good_to_single_precision() -> None:
    torch_model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in torch_model.parameters():
            p.copy_(torch.randn(p.shape, generator=generator))
    bounds = [(-1, 1), (0, 2)]
    single = sensitivity(torch_model, bounds)
    double = sensitivity(torch_model.double(), bounds)
    np.testing.assert_allclose(single.first, double.first, atol=1e-5)
    assert 0 < double.quadrature_error < 1e-9 < single.quadrature_error < 1e-3


def test_a_rough_model_is_sampled_and_quadrature_says_why_not() -> None:
    def step(z: torch.Tensor) -> torch.Tensor:
        return (z[:, 0] > 0.3).double() + z[:, 1]

    assert sensitivity(step, [(0, 1), (0, 1)], budget=5000).quadrature_error is None
    with pytest.raises(UnresolvedError, match="too rough along input 0"):
        sensitivity(step, [(0, 1), (0, 1)], method="quadrature")


def test_what_the_lines_do_not_meet_is_met_by_the_trials() -> None:
    def spot(z: torch.Tensor) -> torch.Tensor:
        return z[:, 2] + 5 * ((z[:, :2] > 0.11) & (z[:, :2] < 0.26)).all(1).double()

    bounds = [(0, 1)] * 3
    with pytest.raises(UnresolvedError, match="but the grid predicts"):
        sensitivity(spot, bounds, method="quadrature")
    result = sensitivity(spot, bounds)
    variance = 1 / 12 + 25 * 0.15**2 * (1 - 0.15**2)
    assert not result.exact
    assert abs(result.variance - variance) <= result.variance_half_width


@pytest.mark.parametrize("seed", range(6))
def test_a_narrow_spike_that_no_line_meets_is_not_hidden(seed: int) -> None:
    """A box of 0.12 % of the inputs with a third of the variance: 256 points miss it in three of four runs."""

    def spike(z: torch.Tensor) -> torch.Tensor:
        return z.sum(1) + 14 * (torch.abs(z[:, :2] - 0.3) < 0.0175).all(1).double()

    share = 0.035**2
    slope = 2 * 14 * share * (0.3 - 0.5)  # twice the covariance of the box with each of the two inputs
    first = 1 / 12 + slope + 14**2 * share * (0.035 - share)
    variance = 2 / 12 + 2 * slope + 14**2 * share * (1 - share)
    result = sensitivity(spike, [(0, 1), (0, 1)], seed=seed)
    assert result.quadrature_error is None
    assert abs(result.variance - variance) <= 1.3 * result.variance_half_width
    assert (np.abs(result.first - first / variance) <= result.first_half_width).all()


def test_departures_from_the_grid_widen_the_intervals() -> None:
    """A box of 2 % of the inputs that no line meets, with a height of 0.0002 standard deviations."""

    def dent(z: torch.Tensor) -> torch.Tensor:
        return z.sum(1) + 1e-4 * ((z > 0.11) & (z < 0.26)).all(1).double()

    result = sensitivity(dent, [(0, 1)] * 2)
    share, height = 0.15**2, 1e-4
    slope = 2 * height * share * (0.185 - 0.5)
    single = 1 / 12 + slope + height**2 * share * (0.15 - share)
    variance = 2 / 12 + 2 * slope + height**2 * share * (1 - share)
    assert result.quadrature_error is not None
    assert 1e-6 < result.first_half_width.max() < 1e-3
    assert (np.abs(result.first - single / variance) <= result.first_half_width).all()
    assert abs(result.variance - variance) <= result.variance_half_width
    assert abs(result.mean - 1 - height * share) <= result.mean_half_width
