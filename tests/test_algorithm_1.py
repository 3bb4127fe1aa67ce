"""Algorithm 1 to the letter: the printed settings, the rule for Z = 0, and orders that are given and not drawn."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import torch

import gralis
from gralis import Gaussian, GralisError, Uniform, explain, plans
from gralis.certificates import Smoothness
from reference import algorithm_1, gaussian, network

X = np.array([0.9, -1.2, 0.7, 1.1, -0.4])
MODEL = network("softplus", 5, 2)


def product(z: torch.Tensor) -> torch.Tensor:
    return z[:, 0] * z[:, 1] * z[:, 2]


# ---- the printed settings


@pytest.mark.parametrize(("m", "n_pairs"), [(30, 15), (60, 30)], ids=["30 in all", "30 and their reverses"])
def test_both_readings_of_the_printed_settings(m: int, n_pairs: int) -> None:
    """m = 30 with antithetic variants, k = 10 midpoints, sigma = 0.75, euclidean distance."""
    kernel = Gaussian(0.75, "euclidean")
    found = explain(MODEL, X, plan=plans.permutation(m), kernel=kernel, n_nodes=10, budget=None, seed=4)
    orders = found.ledger.owner.reshape(m, 5)
    assert (orders[1::2] == orders[::2, ::-1]).all()
    expected = algorithm_1(MODEL, X, np.zeros(5), gaussian(X**2, 0.75, "euclidean"), orders, 10)
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-12)
    assert (found.plan["n_replicates"], found.plan["quadrature"]) == (n_pairs, "midpoint")
    assert found.cost.n_gradients == m * 5 * 10
    assert found.certificate(method="paper", bound=9.0).constants["m"] == n_pairs  # pairs are independent, halves not


# ---- Z = 0


FAR = np.array([1.0, 38.5, 40.0])  # exponents 1/2, 741 and 800 with sigma = 1: exp(-741) is below the normal numbers
LATE = np.array([[1, 0, 2], [2, 0, 1], [1, 2, 0]])  # feature 0 never comes first


def test_a_feature_whose_every_weight_underflows_gets_the_undivided_sum() -> None:
    kernel = Gaussian(1.0, "euclidean")
    with pytest.warns(UserWarning, match=r"features \[0\].*Z = 0.*errors are unknown"):
        found = explain(lambda z: z.sum(1), FAR, plan=plans.permutation(orders=LATE), kernel=kernel, budget=None)
    assert found.values[0] == 0.0
    assert found.values[1:] == pytest.approx(FAR[1:])
    assert found.effective_rays.tolist() == [0.0, 2.0, 1.0]


def test_the_rule_agrees_with_the_algorithm_as_printed_where_the_weights_are_exactly_zero() -> None:
    x, orders = np.array([1.0, 40.0, 40.0, 0.5]), np.array([[1, 0, 2, 3], [2, 3, 1, 0], [3, 2, 0, 1]])
    model, kernel = network("softplus", 4, 1), Gaussian(1.0, "euclidean")
    expected = algorithm_1(model, x, np.zeros(4), gaussian(x**2, 1.0, "euclidean"), orders, 10)
    assert expected[0] == 0.0
    with pytest.warns(UserWarning, match=r"features \[0\]"):
        found = explain(model, x, plan=plans.permutation(orders=orders), kernel=kernel, budget=None)
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-12)


def test_the_error_of_an_undivided_sum_is_unknown_and_not_zero() -> None:
    x = np.concatenate([[1.0], np.full(29, 40.0)])  # feature 0 comes first with probability 1/30
    with pytest.warns(UserWarning, match=r"Z = 0"):
        found = explain(
            lambda z: z.sum(1), x, plan=plans.permutation(2), n_nodes=1, kernel=Gaussian(1.0, "euclidean"), budget=None
        )
    undivided = found.effective_rays == 0
    assert undivided[0]
    assert (found.values[undivided] == 0).all()
    assert np.isnan(found.stderr[undivided]).all()
    assert "unknown" in str(found)


def test_the_weight_of_a_kernel_has_no_floor_and_its_law_has() -> None:
    kernel, squares = Gaussian(1.0, "euclidean"), np.array([1.0, 3000.0])
    only = np.eye(2, dtype=bool)
    assert kernel.log_weight(only, squares).tolist() == [-0.5, -1500.0]
    assert math.exp(kernel.log_weight(only, squares)[1]) == 0.0
    assert np.isfinite(kernel.bind(squares).log_conditional(np.ones((1, 2), dtype=bool))).all()
    endless = Gaussian(1e-200, "euclidean").log_weight(np.array([[False, True], [True, True]]), squares)
    assert (np.isfinite(endless) & (endless < -1e200)).all()  # no NaN from 0 * infinity
    with pytest.raises(GralisError, match=r"pi_min.*underflows"):  # exp(-800), where exp(-700) would pass
        explain(lambda z: z.sum(1), np.array([1.0, 40.0]), plan=plans.permutation(2), kernel=kernel).certificate(
            method="paper", bound=40.0
        )


# ---- few rays that carry a value


def test_a_value_that_few_rays_carry_has_fewer_degrees_of_freedom() -> None:
    """relu(sum - 4.5) sees only the coalition of all five, so a feature's variance is made by the orders it ends."""
    plan = plans.permutation(12, antithetic=False)
    found = explain(
        lambda z: torch.relu(z.sum(1) - 4.5), np.ones(5), plan=plan, n_nodes=20, kernel=Uniform(), budget=None
    )
    last = found.ledger.owner.reshape(12, 5)[:, -1]
    ray = found.ledger.rays.max()
    for i in range(5):
        j = int((last == i).sum())
        parts = np.array([ray - j / 12 * ray] * j + [-j / 12 * ray] * (12 - j))
        expected = (parts**2).sum() ** 2 / (parts**4).sum() if j > 0 else math.inf
        assert found.estimate.carriers[i] == pytest.approx(expected)
    carried = found.estimate.carriers < 6
    assert carried.any()
    assert (found.estimate.dof[carried] < 8).all()


# ---- orders that are given


def given(orders: np.ndarray, **options: object) -> gralis.Explanation:
    plan = plans.permutation(orders=orders)
    return explain(product, torch.ones(3, dtype=torch.float64), plan=plan, budget=None, kernel=Uniform(), **options)


@pytest.mark.parametrize("orders", [np.array([[0, 1, 2]] * 8), np.array([[0, 1, 2], [2, 1, 0], [1, 0, 2]])])
def test_given_orders_have_no_certificate_of_any_kind(orders: np.ndarray) -> None:
    """Eight times the same order puts everything on the last feature, whatever m says."""
    found = given(orders)
    for method, options in (
        ("replicates", {}),
        ("paper", {"bound": 1.0, "smoothness": Smoothness(third=1.0)}),
        ("bernstein", {"bound": 1.0}),
    ):
        with pytest.raises(GralisError, match=r"orders.*given, not drawn at random.*n_permutations"):
            found.certificate(method=method, **options)
    assert np.isnan(found.stderr).all()
    assert np.isnan(found.half_widths()).all()
    assert np.isnan(found.residual.path.half_width)
    assert "exact" not in str(found)
    with pytest.raises(GralisError, match="half-widths are unknown"):
        found.budget_for(0.1)


def test_given_orders_stay_without_errors_under_other_kernels_and_in_files(tmp_path) -> None:
    found = given(np.array([[0, 1, 2], [2, 1, 0], [1, 0, 2]]))
    other = found.with_kernel(Gaussian(0.5))
    again = gralis.load(found.save(tmp_path / "given.gralis"))
    for explanation in (other, again):
        assert np.isnan(explanation.stderr).all()
        with pytest.raises(GralisError, match="not drawn at random"):
            explanation.certificate()
    np.testing.assert_array_equal(again.values, found.values)
    found.report(tmp_path / "given.html")


def test_other_explainers_of_given_orders_have_unknown_errors() -> None:
    x, orders = np.ones(8), np.array([np.roll(np.arange(8), shift) for shift in range(6)])
    found = explain(lambda z: z.prod(1) + z.sum(1), x, plan=plans.permutation(orders=orders), budget=None)
    for result in (found.shapley(), found.kernel_shap(), found.lime(), found.integrated_gradients()):
        assert np.isnan(result.stderr).all()
    assert np.isnan(found.interactions(2).stderr).all()
    drawn = explain(lambda z: z.prod(1) + z.sum(1), x, plan=plans.permutation(6), budget=None)
    assert np.isfinite(drawn.shapley().stderr).all()


def test_a_tolerance_is_not_reached_by_given_orders() -> None:
    found = given(np.array([[0, 1, 2]] * 6), tolerance=0.5)
    assert found.reached is False


def test_random_orders_keep_their_certificate() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = explain(product, torch.ones(3, dtype=torch.float64), plan=plans.permutation(8), kernel=Uniform())
    certificate = found.certificate(method="paper", bound=1.0, smoothness=Smoothness(third=1.0))
    assert certificate.kind == "guaranteed"
    assert np.isfinite(found.stderr).all()
