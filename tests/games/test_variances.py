"""Hoeffding terms and Sobol indices of functions with closed forms, against conditional expectations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import torch

from games.definitions import as_reference, moebius, shapley
from gralis import GralisError
from gralis.games import Ishigami, Multilinear, SobolG
from reference import (
    exact_value,
    shapley_weight,
    subsets,
    without,
)


def brute_variances(f: Multilinear) -> tuple[Fraction, dict[frozenset[int], Fraction]]:
    """E F and Var E[F | x_T] for every T: three points per input have the first three moments of the uniform law."""
    n, c = f.n_features, as_reference(f)
    points = [[low, (low + high) / 2, high] for low, high in f.bounds]
    weights = [Fraction(1, 6), Fraction(2, 3), Fraction(1, 6)]
    grid = list(itertools.product(range(3), repeat=n))
    mass = {k: math.prod(weights[a] for a in k) for k in grid}
    value = {k: exact_value(c, [points[j][a] for j, a in enumerate(k)]) for k in grid}
    mean = sum(mass[k] * value[k] for k in grid)
    closed = {}
    for t in subsets(range(n)):
        groups: dict[tuple[int, ...], list[Fraction]] = {}
        for k in grid:
            group = groups.setdefault(tuple(k[j] for j in sorted(t)), [Fraction(0), Fraction(0)])
            group[0] += mass[k]
            group[1] += mass[k] * value[k]
        closed[t] = sum(total**2 / weight for weight, total in groups.values()) - mean**2
    return mean, closed


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_variances_of_polynomials_against_conditional_expectations(seed: int) -> None:
    n = 3
    bounds = [(0, 1), (Fraction(-1, 2), 2), (1, 3)]
    f = Multilinear({**Multilinear.random(n, n, seed).coefficients, (): 5}, n, bounds=bounds)
    mean, closed = brute_variances(f)
    full = frozenset(range(n))
    variance = closed[full]
    assert (f.mean(), f.variance()) == (mean, variance)
    assert f.first_order().tolist() == [closed[frozenset({i})] / variance for i in range(n)]
    assert f.total().tolist() == [1 - closed[full - {i}] / variance for i in range(n)]
    assert f.closed() == {pair: closed[frozenset(pair)] / variance for pair in itertools.combinations(range(n), 2)}
    parts = moebius(closed.__getitem__, n)
    assert f.pairs() == {pair: parts[pair] / variance for pair in itertools.combinations(range(n), 2)}
    assert f.shapley_effects().tolist() == [effect / variance for effect in shapley(closed.__getitem__, n)]
    assert f.shapley_effects().sum() == 1
    x = [Fraction(1, 3), 1, 2]
    terms = f.hoeffding(x)
    assert sum(terms.values()) == exact_value(as_reference(f), x) - mean
    assert sum(f.hoeffding([Fraction(1, 2), 1, 2]).get(t, 0) for t in terms if 0 in t) == 0  # x at its mean


def numeric(f: Callable, bounds: object, n_nodes: int, n_panels: int) -> tuple[float, dict[frozenset[int], float]]:
    """E F and Var E[F | x_T], on a fine tensor grid."""
    node, weight = np.polynomial.legendre.leggauss(n_nodes)
    u = ((np.arange(n_panels)[:, None] + (node + 1) / 2) / n_panels).ravel()
    w = np.tile(weight / 2 / n_panels, n_panels)
    axes = [low + (high - low) * u for low, high in bounds]
    n = len(axes)
    tensor = f(np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=1)).reshape((len(u),) * n)
    closed = {}
    for t in subsets(range(n)):
        mean = tensor
        for j in reversed(range(n)):
            if j not in t:
                mean = np.tensordot(mean, w, axes=([j], [0]))
        mass = np.ones(())
        for _ in t:
            mass = np.multiply.outer(mass, w)
        average = float((mass * mean).sum())
        closed[t] = float((mass * (mean - average) ** 2).sum())
    return average, closed


@pytest.mark.parametrize(
    ("f", "n_nodes", "n_panels"),
    [(Ishigami(), 24, 1), (Ishigami(2.0, 0.3), 24, 1), (SobolG((0, 1, 4.5)), 2, 2)],
    ids=["ishigami", "ishigami-other", "sobol-g"],
)
def test_closed_form_variances_against_quadrature(f: Ishigami | SobolG, n_nodes: int, n_panels: int) -> None:
    mean, closed = numeric(f, f.bounds, n_nodes, n_panels)
    n, full = f.n_features, frozenset(range(f.n_features))
    v = closed[full]
    assert f.mean() == pytest.approx(mean, abs=1e-12)
    assert f.variance() == pytest.approx(v, rel=1e-12)
    np.testing.assert_allclose(f.first_order(), [closed[frozenset({i})] / v for i in range(n)], atol=1e-12)
    np.testing.assert_allclose(f.total(), [1 - closed[full - {i}] / v for i in range(n)], atol=1e-12)
    effects = [
        sum(float(shapley_weight(n, len(s))) * (closed[s | {i}] - closed[s]) for s in without(n, i)) / v
        for i in range(n)
    ]
    np.testing.assert_allclose(f.shapley_effects(), effects, atol=1e-12)
    for pair, index in f.closed().items():
        assert index == pytest.approx(closed[frozenset(pair)] / v, abs=1e-12)


def test_ishigami_has_the_published_indices() -> None:
    f = Ishigami()
    np.testing.assert_allclose(f.first_order(), [0.3139, 0.4424, 0.0], atol=5e-5)
    np.testing.assert_allclose(f.total(), [0.5576, 0.4424, 0.2437], atol=5e-5)
    assert f.variance() == pytest.approx(7**2 / 8 + 0.1 * math.pi**4 / 5 + 0.01 * math.pi**8 / 18 + 0.5)


@pytest.mark.parametrize("f", [Ishigami(), SobolG((0, 1, 4.5))], ids=["ishigami", "sobol-g"])
def test_hoeffding_terms_sum_to_f_and_average_to_zero(f: Ishigami | SobolG) -> None:
    x = np.array([0.3, 0.9, 0.6])
    assert sum(f.hoeffding(x).values()) == pytest.approx(f(x[None])[0] - f.mean(), abs=1e-12)
    node, weight = np.polynomial.legendre.leggauss(24)
    for t in f.hoeffding(x):
        low, high = f.bounds[t[-1]]
        means = []
        for left, right in ((low, (low + high) / 2), ((low + high) / 2, high)):  # the kink of G lies between
            at = [np.where(np.arange(3) == t[-1], z, x) for z in left + (right - left) * (node + 1) / 2]
            means.append(weight @ [f.hoeffding(point)[t] for point in at] / 2)
        assert np.mean(means) == pytest.approx(0.0, abs=1e-12)


def test_sobol_g_for_many_inputs_agrees_with_its_parts() -> None:
    few = SobolG((0, 0.5, 1, 3, 9))
    parts = few.parts()
    for i in range(5):
        assert few.total()[i] == pytest.approx(sum(var for t, var in parts.items() if i in t) / few.variance())
        shared = sum(var / len(t) for t, var in parts.items() if i in t)
        assert few.shapley_effects()[i] == pytest.approx(shared / few.variance(), rel=1e-12)
    assert few.variance() == pytest.approx(sum(parts.values()), rel=1e-12)
    assert few.pairs()[1, 3] == pytest.approx(parts[1, 3] / few.variance())
    many = SobolG([1.0] * 60)
    assert many.shapley_effects() == pytest.approx(np.full(60, 1 / 60))
    with pytest.raises(GralisError, match="at most 20"):
        many.parts()


def test_functions_take_tensors_and_their_gradients() -> None:
    x = np.random.default_rng(0).random((5, 3))
    for f in (Ishigami(), SobolG((0, 1, 4.5))):
        np.testing.assert_allclose(f(torch.from_numpy(x)).numpy(), f(x), rtol=1e-14)
        assert torch.autograd.gradcheck(f, torch.from_numpy(x).requires_grad_())
