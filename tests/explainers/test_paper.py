"""What the paper claims of phi and of Shapley values: their relation, and which kernels keep efficiency."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from explainers.definitions import all_masks, as_function, random_game
from gralis import Uniform, explain, models
from gralis.games import Multilinear
from reference import shapley_weight

positive = st.floats(0.1, 10.0)


# ---- cor:siv-gralis-relation


@pytest.mark.parametrize(("n", "max_order", "seed"), [(2, 2, 1), (3, 3, 2), (5, 5, 3), (6, 2, 4), (8, 3, 5), (8, 8, 6)])
def test_shapley_divides_by_the_order_and_gralis_by_its_square(n: int, max_order: int, seed: int) -> None:
    x = np.random.default_rng(seed).uniform(0.5, 1.5, n)
    f = Multilinear.random(n, max_order, seed)  # the coefficients of the game at x against 0 are c_T prod x_j
    shapley, phi = np.zeros(n), np.zeros(n)
    for t, c in f.coefficients.items():
        for i in t:
            shapley[i] += float(c) * math.prod(x[list(t)]) / len(t)
            phi[i] += float(c) * math.prod(x[list(t)]) / len(t) ** 2
    found = explain(f, x, kernel=Uniform(), plan="exhaustive", budget=None)
    np.testing.assert_allclose(found.shapley().values, shapley, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found.values, phi, rtol=0, atol=1e-9)
    assert np.abs(shapley - phi).max() > 0.1


def test_the_two_agree_on_an_affine_function() -> None:
    f = Multilinear.random(6, 1, 7)
    found = explain(f, np.linspace(0.5, 2.0, 6), kernel=Uniform(), plan="exhaustive", budget=None)
    np.testing.assert_allclose(found.values, found.shapley().values, rtol=0, atol=1e-12)
    assert np.abs(found.values).max() > 0.5


@pytest.mark.parametrize("d", [2, 3, 5])
def test_a_pure_interaction_is_attenuated_by_its_order(d: int) -> None:
    f = Multilinear({tuple(range(d)): 3}, 6)
    found = explain(f, np.full(6, 1.2), kernel=Uniform(), plan="exhaustive", budget=None)
    expected = np.where(np.arange(6) < d, 3 * 1.2**d / d, 0.0)
    np.testing.assert_allclose(found.shapley().values, expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.values, expected / d, rtol=0, atol=1e-12)


# ---- prop:incompatibility: the endpoint form, in which the proposition holds


def endpoint_values(v: np.ndarray, pi: np.ndarray) -> np.ndarray:
    """N_i / Z_i of the game v under the kernel pi, both by code, as `explain` computes them."""
    n = int(np.log2(len(v)))
    return explain(models.blackbox(as_function(v)), np.ones(n), plan="endpoint", kernel=as_function(pi)).values


def normalisers(pi: np.ndarray) -> np.ndarray:
    """Z_i = sum over S without i of w(|S|) pi(S)."""
    n = int(np.log2(len(pi)))
    masks = all_masks(n)
    weight = np.array([float(shapley_weight(n, int(t))) if t < n else 0.0 for t in masks.sum(1)]) * pi
    return np.array([weight[~masks[:, i]].sum() for i in range(n)])


def numerator_coefficients(pi: np.ndarray) -> np.ndarray:
    """What v(T) counts in sum_i N_i, for every T but the empty one: explain the game that is 1 on T and 0 elsewhere."""
    games = np.eye(len(pi))[1:]
    return np.array([normalisers(pi) @ endpoint_values(v, pi) for v in games])


@pytest.mark.parametrize("n", [2, 3, 4])
def test_only_the_constant_kernel_keeps_the_numerator_efficient(n: int) -> None:
    efficient = np.eye(2**n - 1)[-1]  # v(F) counts once, nothing else counts
    constant = np.ones(2**n)
    np.testing.assert_allclose(numerator_coefficients(constant), efficient, rtol=0, atol=1e-12)
    constant[-1] = 7.0  # the full coalition precedes nobody
    np.testing.assert_allclose(numerator_coefficients(constant), efficient, rtol=0, atol=1e-12)
    rng = np.random.default_rng(n)
    for _ in range(5):
        assert np.abs(numerator_coefficients(rng.uniform(0.5, 2.0, 2**n)) - efficient).max() > 0.01
    one_off = np.ones(2**n)
    one_off[rng.integers(1, 2**n - 1)] = 1.1
    assert np.abs(numerator_coefficients(one_off) - efficient).max() > 0.01


def test_a_constant_that_is_not_one_scales_the_numerator() -> None:
    """Unnormalised, pi = 2 gives twice the difference; the recursion's boundary pi(empty) = 1 is needed."""
    np.testing.assert_allclose(numerator_coefficients(np.full(8, 2.0))[-1], 2.0, atol=1e-12)


# ---- two features: normalised efficiency if and only if a^2 = b c


@settings(max_examples=40)
@given(positive, positive, positive, st.integers(0, 1000))
def test_normalised_efficiency_of_two_features(a: float, b: float, c: float, seed: int) -> None:
    """v({1}) counts a / (a + c) - b / (a + b) in phi_1 + phi_2, v({2}) the same, and v({1, 2}) one less that."""
    v = random_game(2, seed)
    gap = endpoint_values(v, np.array([a, b, c, 1.0])).sum() - v[3]
    expected = (a**2 - b * c) / ((a + b) * (a + c)) * (v[1] + v[2] - v[3])
    assert gap == pytest.approx(expected, abs=1e-9)
    tuned = endpoint_values(v, np.array([a, b, a**2 / b, 1.0])).sum() - v[3]
    assert tuned == pytest.approx(0, abs=1e-9)


@settings(max_examples=20)
@given(positive, positive, st.floats(0.5, 2.0), st.floats(0.5, 2.0))
def test_the_condition_does_not_make_the_joint_path_efficient(a: float, b: float, x1: float, x2: float) -> None:
    """F = x1 x2 with a^2 = b c: endpoint differences sum to x1 x2, joint-path rays to half of it."""
    assume(abs(b - a) > 0.05)
    pi = as_function(np.array([a, b, a**2 / b, 1.0]))
    x = np.array([x1, x2])
    endpoint = explain(lambda z: z[:, 0] * z[:, 1], x, plan="endpoint", kernel=pi)
    joint = explain(lambda z: z[:, 0] * z[:, 1], x, plan="exhaustive", kernel=pi)
    assert endpoint.values.sum() == pytest.approx(x1 * x2, abs=1e-9)
    assert joint.values.sum() == pytest.approx(x1 * x2 / 2, abs=1e-9)


def test_the_joint_path_is_not_the_endpoint_form() -> None:
    """F = x1 x2, uniform kernel: x1 x2 / 4 each on the joint path, x1 x2 / 2 each by differences."""
    x = np.array([1.3, -0.8])
    joint = explain(lambda z: z[:, 0] * z[:, 1], x, plan="exhaustive", kernel=Uniform())
    assert joint.values == pytest.approx(np.full(2, x.prod() / 4), abs=1e-12)
    assert joint.shapley().values == pytest.approx(np.full(2, x.prod() / 2), abs=1e-12)
