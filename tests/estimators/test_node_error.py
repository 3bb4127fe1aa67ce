"""The bound on the error of fixed nodes holds on every ray and feature, and vanishes where the rule is exact."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import gralis
from gralis.estimators.node_error import node_errors
from honest_models import smooth

_FINE = (np.arange(200_000) + 0.5) / 200_000


def _errors(model, x, rule, n_nodes, **options):
    """The true errors of the rays and their bounds, (n_rays, n_features)."""
    e = gralis.explain(
        model, x, plan="exhaustive", quadrature=rule, n_nodes=n_nodes, kernel=gralis.Uniform(), budget=None, **options
    )
    truth = np.zeros(e.ledger.masks.shape)
    for ray, mask in enumerate(e.ledger.masks):
        points = torch.tensor(_FINE[:, None] * (mask * x.numpy()), requires_grad=True)
        (gradient,) = torch.autograd.grad(model(points).sum(), points)
        truth[ray] = gradient.numpy().mean(0) * mask * x.numpy()
    return np.abs(e.ledger.rays - truth), node_errors(e.ledger, rule)


@pytest.mark.parametrize("rule", ["gauss-legendre", "fejer", "midpoint", "riemann"])
@pytest.mark.parametrize("threshold", [0.2, 0.3, 0.52, 0.77])
def test_kinks_that_cancel_in_the_sum_are_seen_feature_by_feature(rule, threshold):
    """relu(a - t) - relu(b - t) has checksum zero on the ray of both, and yet each of them is off."""

    def model(z):
        return torch.relu(z[:, 0] - threshold) - torch.relu(z[:, 1] - threshold)

    true, bound = _errors(model, torch.ones(2, dtype=torch.float64), rule, 7)
    assert true.max() > 1e-3  # the rule is really off
    assert (true <= bound + 1e-5).all()


@pytest.mark.parametrize(("rule", "n_nodes"), [("gauss-legendre", 6), ("gauss-legendre", 12), ("fejer", 11)])
def test_smooth_rays_have_small_bounds_that_hold(rule, n_nodes):
    for seed in range(4):
        true, bound = _errors(smooth(3, seed), torch.ones(3, dtype=torch.float64), rule, n_nodes)
        assert (true <= bound + 1e-9).all()
        assert bound.max() < 0.03


def test_polynomials_leave_nothing_but_rounding():
    def model(z):
        return z[:, 0] ** 5 * z[:, 1] - 2 * z[:, 2]

    e = gralis.explain(model, torch.tensor([1.0, 2.0, -1.0], dtype=torch.float64), plan="exhaustive", n_nodes=8)
    assert e.exact
    assert (e.stderr == 0).all()
    assert node_errors(e.ledger, "gauss-legendre").max() < 1e-12
    assert 0 < e.half_widths().max() < 1e-13  # rounding


def test_without_coalition_values_one_node_shows_nothing():
    x = torch.ones(2, dtype=torch.float64)
    e = gralis.explain(
        lambda z: z.prod(1), x, plan="exhaustive", quadrature="midpoint", n_nodes=1, coalition_values=False
    )
    assert np.isnan(e.half_widths()).all()
    assert "not known" in e.doubts[0]
    again = gralis.explain(lambda z: z.prod(1), x, plan="exhaustive", quadrature="midpoint", n_nodes=2)
    assert np.isfinite(again.half_widths()).all()


@pytest.mark.parametrize("kinks", [{0.67: 1, 0.9: -2}, {0.31: 1, 0.08: -2}, {0.73: -2, 0.9: 3}])
def test_two_kinks_are_not_taken_for_a_smooth_ray(kinks):
    """With two kinks the last two groups of coefficients may fall fast by chance; the groups before them do not."""

    def bent(a):
        return sum(slope * torch.relu(a - place) for place, slope in kinks.items())

    true, bound = _errors(
        lambda z: bent(z[:, 0]) - bent(z[:, 1]), torch.ones(2, dtype=torch.float64), "gauss-legendre", 8
    )
    assert true.max() > 0.01
    assert (true <= bound + 1e-5).all()


def test_a_last_coefficient_that_vanishes_by_symmetry_does_not_hide_the_others():
    """The slope of a + clamp(a, 0.3, 0.7) is 1, 2, 1, even about 1/2, so all its odd Legendre coefficients are zero."""

    def model(z):
        bent = z + z.clamp(0.3, 0.7)
        return bent[:, 0] - bent[:, 1]

    true, bound = _errors(model, torch.ones(2, dtype=torch.float64), "gauss-legendre", 8)
    assert true.max() > 1e-3
    assert (true <= bound + 1e-5).all()


@pytest.mark.parametrize("seed", [0, 2, 3, 5])
def test_a_gradient_that_is_zero_up_to_a_kink_is_not_smooth(seed):
    """A product of ReLUs grows so slowly after its last kink that neither coefficients nor the checksum show it."""
    place = torch.from_numpy(np.random.default_rng([seed, 7, 77]).uniform(0.1, 0.7, 7))

    def model(z):
        return torch.relu(z - place).prod(1) / torch.relu(1 - place).prod()

    e = gralis.explain(model, torch.ones(7, dtype=torch.float64), plan="exhaustive", n_nodes=8, budget=None)
    points = torch.tensor(np.repeat(_FINE[:, None], 7, axis=1), requires_grad=True)
    (gradient,) = torch.autograd.grad(model(points).sum(), points)
    full = e.ledger.masks.all(1)  # the only ray on which F moves
    true = np.abs(e.ledger.rays[full][0] - gradient.numpy().mean(0))
    assert (true > 1e-5).any()
    assert (true <= node_errors(e.ledger, "gauss-legendre")[full][0] + 1e-9).all()


def test_a_gradient_that_a_discrete_feature_switches_on_is_exact():
    """The rule has a panel on each side of the jump, so zeros before it are no sign of a kink."""

    def model(z):
        return torch.round(z[:, 0]) * z[:, 1] ** 2 + z[:, 2]

    e = gralis.explain(
        model,
        torch.ones(3, dtype=torch.float64),
        features=gralis.features.columns(["a", "b", "c"], discrete=["a"]),
        plan="exhaustive",
    )
    assert e.exact


def test_right_endpoints_are_charged_with_their_step():
    """The slope of a^2 is 2t: k right endpoints are off by 1/k, and in a^2 - b^2 the checksum of both is zero."""
    true, bound = _errors(lambda z: z[:, 0] ** 2 - z[:, 1] ** 2, torch.ones(2, dtype=torch.float64), "riemann", 16)
    assert np.allclose(true[-1], 1 / 16, atol=1e-5)
    assert (true <= bound + 1e-9).all()
