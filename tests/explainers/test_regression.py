"""KernelSHAP and LIME against weighted least squares written out; the lasso's choice against scikit-learn's path."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import lars_path

from explainers.definitions import all_masks, as_function, game_of, lime_weights, random_game, weighted_ridge
from gralis import Explanation, baselines, explain, models
from reference import game, network, point, shapley_by_orders


def explained(v: np.ndarray) -> Explanation:
    n = int(np.log2(len(v)))
    return explain(models.blackbox(as_function(v)), np.ones(n), plan="endpoint", budget=None)


def test_kernel_shap_on_all_coalitions_is_shapley() -> None:
    n = 6
    model, x, base = network("softplus", n, 1), point(n, 1), np.full(n, 0.3)
    found = explain(model, x, baseline=base, plan="exhaustive", budget=None).kernel_shap()
    assert (found.method, found.exact) == ("KernelSHAP", True)
    np.testing.assert_allclose(found.values, shapley_by_orders(game(model, x, base), n), rtol=0, atol=1e-12)
    assert (found.stderr == 0).all()


@pytest.mark.parametrize("ridge", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("sigma", [0.15, 0.25, 2.0])
def test_lime_is_the_weighted_ridge(sigma: float, ridge: float) -> None:
    v = random_game(7, 1)
    found = explained(v).lime(ridge=ridge, sigma=sigma)
    coefficients, intercept, r2 = weighted_ridge(v, sigma, ridge)
    np.testing.assert_allclose(found.values, coefficients, rtol=0, atol=1e-9)
    assert found.intercept == pytest.approx(intercept, abs=1e-9)
    assert found.r2 == pytest.approx(r2, abs=1e-9)
    assert found.support == tuple(range(7))
    assert found.exact
    assert f"weighted R2 {r2:.4g}" in repr(found)


def test_lime_of_an_additive_game_is_that_game() -> None:
    effects = np.array([2.0, -1.0, 0.5, 0.0, 3.0])
    found = explained(all_masks(5) @ effects).lime(ridge=0.0)
    assert found.values == pytest.approx(effects, abs=1e-10)
    assert (found.intercept, found.r2) == (pytest.approx(0, abs=1e-10), pytest.approx(1, abs=1e-10))


def test_lime_over_several_baselines_is_that_of_the_mean_game() -> None:
    n = 5
    model, x = network("softplus", n, 2), point(n, 2)
    background = np.random.default_rng(1).standard_normal((4, n))
    found = explain(model, x, baseline=baselines.sample(background), plan="exhaustive", budget=None).lime(ridge=2.0)
    coefficients, intercept, _ = weighted_ridge(game_of(model, x, background), 0.25, 2.0)
    np.testing.assert_allclose(found.values, coefficients, rtol=0, atol=1e-9)
    assert found.intercept == pytest.approx(intercept, abs=1e-9)


def test_ridge_stands_against_as_many_coalitions_as_were_evaluated() -> None:
    """Of 2^n coalitions d were drawn: the data weigh d / 2^n of what all of them would, the ridge weighs the same."""
    n, ridge = 10, 60.0
    model, x = network("softplus", n, 3), point(n, 3)
    explanation = explain(model, x, budget=500)
    drawn = explanation.ledger.masks[explanation.ledger.replicate != -1]
    d = len(np.unique(np.vstack([drawn, np.ones((1, n), bool), np.zeros((1, n), bool)]), axis=0))
    found, v = explanation.lime(ridge=ridge), game_of(model, x, np.zeros((1, n)))
    off, unscaled = (found.values - weighted_ridge(v, 0.25, r)[0] for r in (ridge * 2**n / d, ridge))
    assert (np.abs(off) < 5 * found.stderr).all()
    assert (np.abs(unscaled) > 10 * found.stderr).any()


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_lasso_support_against_scikit_learn(seed: int) -> None:
    n = 8
    v = random_game(n, seed) + all_masks(n) @ np.random.default_rng(seed).standard_normal(n)
    explanation = explained(v)
    w, z = lime_weights(n, 0.25), all_masks(n).astype(float)
    root = np.sqrt(w)[:, None]
    centred, target = z - np.average(z, axis=0, weights=w), v - np.average(v, weights=w)
    _, _, path = lars_path(centred * root, target * root[:, 0], method="lasso")
    for k in range(1, n):
        step = next(column for column in path.T if (column != 0).sum() >= k)
        expected = tuple(np.flatnonzero(step).tolist())
        found = explanation.lime(k_features=k)
        assert found.support == expected
        coefficients, intercept, r2 = weighted_ridge(v, 0.25, 1.0, expected)
        np.testing.assert_allclose(found.values, coefficients, rtol=0, atol=1e-9)
        assert (found.intercept, found.r2) == (pytest.approx(intercept, abs=1e-9), pytest.approx(r2, abs=1e-9))
        assert f"conditional on its {k} features" in found.note


def test_the_largest_coefficients() -> None:
    v = random_game(7, 4)
    coefficients, _, _ = weighted_ridge(v, 0.25, 1.0)
    for k in (1, 3, 6):
        largest = tuple(sorted(np.argsort(-np.abs(coefficients))[:k].tolist()))
        found = explained(v).lime(k_features=k, select="largest")
        assert found.support == largest
        np.testing.assert_allclose(found.values, weighted_ridge(v, 0.25, 1.0, largest)[0], rtol=0, atol=1e-9)


def test_all_features_are_no_choice() -> None:
    explanation = explained(random_game(5, 5))
    assert (explanation.lime(k_features=5).values == explanation.lime().values).all()
