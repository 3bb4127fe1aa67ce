"""Integrated Gradients from the ray of all features; every feature on its own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from gralis import Uniform, baselines, explain
from reference import Model, conditioned_ig, game, gauss_panels, midpoints, network, point


def direct(model: Model, x: np.ndarray, base: np.ndarray, rule: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    """(x_i - x'_i) times the mean gradient on the straight line from x' to x."""
    everyone = frozenset(range(len(x)))
    return np.array([conditioned_ig(model, x, base, everyone - {i}, i, rule) for i in range(len(x))])


@pytest.mark.parametrize("kind", ["softplus", "tanh"])
def test_integrated_gradients_against_the_integral(kind: str) -> None:
    n = 5
    model, x, base = network(kind, n, 1, gain=0.7), point(n, 1), np.linspace(-0.4, 0.3, n)
    explanation = explain(model, x, baseline=base, plan="exhaustive", budget=None)
    found = explanation.integrated_gradients()
    errors = np.abs(found.values - direct(model, x, base, gauss_panels(40)))
    assert errors.max() < 1e-9
    assert (errors <= found.half_widths() + 1e-14).all()
    assert (found.stderr < 1e-6).all()
    assert np.abs(found.values - explanation.shapley().values).max() > 1e-3  # another method, another answer


def test_integrated_gradients_averaged_over_baselines() -> None:
    n = 4
    model, x = network("softplus", n, 2), point(n, 2)
    background = np.random.default_rng(0).standard_normal((3, n))
    found = explain(model, x, baseline=baselines.sample(background), plan="exhaustive", budget=None)
    expected = np.mean([direct(model, x, base, gauss_panels(40)) for base in background], axis=0)
    np.testing.assert_allclose(found.integrated_gradients().values, expected, rtol=0, atol=1e-9)


def test_fixed_nodes_give_their_own_rule_whatever_the_rounding() -> None:
    """Every row is the same midpoint sum, with an error of its own; rounding between rows must not be regressed on."""
    n = 6
    model, x = network("tanh", n, 3), point(n, 3)
    explanation = explain(model, x, plan="permutation", n_nodes=2, budget=12 * 20)
    ledger = explanation.ledger
    noisy = replace(ledger, gradient=ledger.gradient * (1 + 1e-8 * np.arange(ledger.n_points)[:, None]))
    found = replace(explanation, ledger=noisy).integrated_gradients()
    np.testing.assert_allclose(found.values, direct(model, x, np.zeros(n), midpoints(2)), rtol=0, atol=1e-5)
    assert abs(found.values.sum() - explanation.delta) > 1e-2


@pytest.fixture(scope="module")
def sampled() -> tuple[np.ndarray, list, np.ndarray]:
    """The truth, thirty sampled attributions, and thirty plain means of the same rows."""
    n = 6
    model, x = network("tanh", n, 5), point(n, 5)
    truth = direct(model, x, np.zeros(n), gauss_panels(20, 50))
    attributions, plain = [], []
    for seed in range(30):
        found = explain(model, x, plan="independent", kernel=Uniform(), budget=400, seed=seed)
        attributions.append(found.integrated_gradients())
        plain.append(found.ledger.rays[found.ledger.masks.all(1)].mean(0))
    return truth, attributions, np.array(plain)


def test_the_checksum_lowers_the_error_and_keeps_the_mean(sampled: tuple[np.ndarray, list, np.ndarray]) -> None:
    truth, attributions, plain = sampled
    values = np.array([found.values for found in attributions])
    error_of_the_mean = values.std(0, ddof=1) / np.sqrt(len(values))
    assert (np.abs(values.mean(0) - truth) < 4 * error_of_the_mean).all()
    assert values.var(0).sum() < 0.1 * plain.var(0).sum()


def test_sampled_intervals_cover(sampled: tuple[np.ndarray, list, np.ndarray]) -> None:
    truth, attributions, plain = sampled
    assert not any(found.exact for found in attributions)
    low, high = np.moveaxis(np.array([found.interval() for found in attributions]), 2, 0)
    assert ((low <= truth) & (truth <= high)).all(1).sum() >= 25  # of 30; 95%: below that has probability 0.3%
    stated = np.median([found.stderr for found in attributions], axis=0)
    seen = np.std([found.values for found in attributions], axis=0, ddof=1)
    # Nor do they cover because they are wide.
    assert np.sqrt((stated**2).mean()) < 2 * np.sqrt((seen**2).mean())
    assert np.sqrt((stated**2).mean()) < 0.2 * np.sqrt(plain.var(0, ddof=1).mean())


def test_a_feature_whose_change_no_node_saw_is_not_called_sure() -> None:
    """|z_0 - 0.95| changes its slope where half of the runs have no node; the other feature shows how slopes change."""

    def model(z: torch.Tensor) -> torch.Tensor:
        return (z[:, 0] - 0.95).abs() + (z[:, 1] - 0.4).abs() + 0 * z.sum(1)

    held = sure = 0
    for seed in range(30):
        path = explain(model, torch.ones(9, dtype=torch.float64), budget=300, seed=seed).integrated_gradients()
        held += bool((np.abs(path.values - np.array([-0.9, 0.2, *[0.0] * 7])) <= path.half_widths()).all())
        sure += bool(path.stderr[0] < 1e-6)
    assert sure == 0
    assert held >= 23  # a plain mean of the nodes, with the error of their spread, holds in 13


def test_few_nodes_on_the_path_leave_the_error_unknown() -> None:
    x = torch.ones(40, dtype=torch.float64)
    for seed in range(20):
        explanation = explain(lambda z: z.sum(1) ** 2, x, budget=300, kernel=Uniform(), seed=seed)
        n_nodes = int((explanation.ledger.masks.all(1) & (explanation.ledger.replicate >= 0)).sum())
        if 0 < n_nodes < 4:
            assert np.isnan(explanation.integrated_gradients().stderr).all()
            return
    pytest.fail("no seed has one to three nodes on the path of all features")


def test_single_features_are_their_forwards() -> None:
    n = 9
    model, x, base = network("relu", n, 6), point(n, 6), np.full(n, 0.2)
    v = game(model, x, base)
    expected = [v(frozenset({i})) for i in range(n)]
    for options in ({"budget": 300}, {"plan": "endpoint", "budget": None}):
        found = explain(model, x, baseline=base, **options).singles()
        np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-12)
        assert found.exact


def test_single_features_from_rays_are_not_called_exact() -> None:
    n = 4
    model, x = network("softplus", n, 7), point(n, 7)
    found = explain(model, x, plan="exhaustive", budget=None, coalition_values=False).singles()
    v = game(model, x, np.zeros(n))
    np.testing.assert_allclose(found.values, [v(frozenset({i})) for i in range(n)], rtol=0, atol=1e-8)
    assert not found.exact
    assert "estimated" in repr(found)


def test_a_path_whose_nodes_miss_a_jump_says_how_much():
    """sigmoid(3000 (mean z - 0.5)): no random node of ten features sees the jump of one on the path of all features."""

    def model(z):
        return torch.sigmoid(3000 * (z.mean(1) - 0.5))

    path = explain(model, torch.ones(10, dtype=torch.float64), budget=400).integrated_gradients()
    assert (np.abs(path.values - 0.1) <= path.half_widths()).all()
