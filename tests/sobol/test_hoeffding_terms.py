"""Hoeffding terms at one input, and Theorems 5 and 6: phi of an affine F with the baseline at the mean."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from scipy import stats

from gralis import Gaussian, Uniform, explain
from gralis.games import Anova, Ishigami, Multilinear, SobolG, appendix_e
from gralis.sobol import hoeffding, sensitivity
from reference import network, subsets


@pytest.mark.parametrize("f", [Ishigami(), SobolG((0, 1, 4.5)), appendix_e()], ids=["ishigami", "g", "appendix-e"])
def test_terms_at_a_point_are_exact(f: Anova) -> None:
    x = [0.3, 0.8, 0.9]
    result = hoeffding(f, x, f.bounds, max_order=3)
    expected = f.hoeffding(x)
    assert not result.exact
    assert set(result.terms) == {t for k in (1, 2, 3) for t in itertools.combinations(range(3), k)}
    for t, term in result.terms.items():
        assert abs(term - float(expected.get(t, 0))) <= result.half_width[t] < 1e-8
    assert result.mean == pytest.approx(float(f.mean()), abs=1e-12)
    assert result.remainder == pytest.approx(0.0, abs=1e-12)
    assert "could go unnoticed" in repr(result)


def test_terms_at_a_point_are_covered_by_their_intervals() -> None:
    f = SobolG()
    x = np.linspace(0.05, 0.95, 8)
    expected = f.hoeffding(x)
    scores = []
    for seed in range(12):
        result = hoeffding(f, x, f.bounds, method="sampling", budget=4000, seed=seed)
        assert not result.exact
        off = result.terms_estimate.values - [float(expected[t]) for t in result.sets]
        scores.append(off / result.terms_estimate.stderr)
        assert result.n_evaluations <= 4000
    every = np.array(scores)
    assert 0.7 < np.sqrt((every**2).mean()) < 1.4
    assert (np.abs(every) <= stats.t.ppf(0.975, 15)).mean() > 0.9
    assert result.f_x == pytest.approx(float(f(x[None])[0]))
    assert "larger sets of inputs" in repr(result)


def test_terms_are_the_moebius_coefficients_of_the_game_averaged_over_baselines() -> None:
    """Every baseline of the product law, each with its own game; the paper's F need not be affine."""
    X = np.array([[0.0, 1.0, 2.0], [1.0, -1.0, 0.5]])
    f, x = network("tanh", 3, 4), np.array([0.7, 0.2, -1.0])
    baselines = np.array(list(itertools.product(*X.T)))

    def value(t: frozenset[int]) -> float:
        points = np.where([j in t for j in range(3)], x, baselines)
        return float(f(torch.from_numpy(points)).mean())

    result = hoeffding(f, x, X, max_order=3)
    sampled = hoeffding(f, x, X, max_order=3, method="sampling", budget=2000)
    for t, term in result.terms.items():
        expected = sum((-1) ** (len(t) - len(s)) * value(s) for s in subsets(t))
        assert term == pytest.approx(expected, abs=1e-12)
        assert abs(sampled.terms[t] - expected) <= 2 * sampled.half_width[t] + 1e-12
    assert result.exact
    assert sampled.remainder == pytest.approx(0.0, abs=1e-12)


def test_the_variance_of_each_term_over_x_is_its_sobol_index() -> None:
    """S_T = Var_x[f_T(x)] / Var F for a function that is not affine."""
    f = Multilinear({(0,): 1, (1,): -2, (0, 1): 3}, 2, bounds=[(0, 1), (-1, 3)])
    result = sensitivity(f, f.bounds)
    grid = list(itertools.product([(0, 1 / 6), (0.5, 2 / 3), (1, 1 / 6)], [(-1, 1 / 6), (1, 2 / 3), (3, 1 / 6)]))
    squares = dict.fromkeys([(0,), (1,), (0, 1)], 0.0)
    for (a, p), (b, q) in grid:
        for t, term in hoeffding(f, [a, b], f.bounds).terms.items():
            squares[t] += p * q * term**2
    assert squares[0,] / result.variance == pytest.approx(result.first[0], rel=1e-10)
    assert squares[1,] / result.variance == pytest.approx(result.first[1], rel=1e-10)
    assert squares[0, 1] / result.variance == pytest.approx(result.pairs[0, 1], rel=1e-10)


# ---- Theorems 5 and 6: affine F, baseline at the mean, phi itself


@pytest.mark.parametrize("kernel", [Uniform(), Gaussian(0.3), Gaussian(1.0, "euclidean")], ids=str)
def test_phi_of_an_affine_model_has_the_sobol_indices_as_variances(kernel: object) -> None:
    slopes, bounds = np.array([1.0, -2.0, 0.5]), [(0.0, 1.0), (-1.0, 1.0), (2.0, 6.0)]
    f = Multilinear({(): 4, **{(i,): slope for i, slope in enumerate(slopes)}}, 3, bounds=bounds)
    low, high = np.array(bounds).T
    mean, half = (low + high) / 2, (high - low) / 2 / math.sqrt(3)  # two Gauss nodes: mean +- half
    phi = []
    for signs in itertools.product([-1, 1], repeat=3):
        x = mean + half * np.array(signs)
        result = explain(f, x, baseline=mean, kernel=kernel, plan="exhaustive", budget=None)
        terms = hoeffding(f, x, bounds).terms
        np.testing.assert_allclose(result.values, [terms[i,] for i in range(3)], atol=1e-10)  # T5
        assert result.f_baseline + result.values.sum() == pytest.approx(result.f_x, abs=1e-10)
        phi.append(result.values)
    spread = slopes**2 * (high - low) ** 2 / 12
    np.testing.assert_allclose(np.var(phi, axis=0) / spread.sum(), spread / spread.sum(), rtol=1e-9)  # T6
    np.testing.assert_allclose(sensitivity(f, bounds).first, spread / spread.sum(), rtol=1e-10)


def test_phi_of_a_model_that_is_not_affine_does_not() -> None:
    f = appendix_e()
    x, mean = np.array([1.0, 1.0, 1.0]), np.full(3, 0.5)
    phi = explain(f, x, baseline=mean, kernel=Uniform(), plan="exhaustive", budget=None).values
    terms = hoeffding(f, x, f.bounds).terms
    assert not np.allclose(phi, [terms[i,] for i in range(3)])
